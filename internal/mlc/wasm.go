package mlc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"regexp"
)

// sectionImport lists what a module needs from its host.
const sectionImport = 2

// wasmMagic starts every module: magic number and version.
const wasmMagic = "\x00asm\x01\x00\x00\x00"

// CheckModule returns an error if a file is not a WebAssembly module.
func CheckModule(file []byte) error {
	if !bytes.HasPrefix(file, []byte(wasmMagic)) {
		return errors.New("not a WebAssembly module")
	}
	return nil
}

// imported matches the import of a function of TVM: the module env, the length of the name, the name, and the kind.
var imported = regexp.MustCompile(`(?s)\x03env.(TVM\w+)\x00`)

// importsOf returns the names of TVM's functions that a module imports, and checks that all sections are complete.
func importsOf(file []byte) (names []string, err error) {
	if err := CheckModule(file); err != nil {
		return nil, err
	}
	for rest := file[len(wasmMagic):]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, errors.New("unexpected end")
		}
		id, body := rest[0], rest[1+n:][:size]
		rest = rest[1+n+int(size):]
		if id != sectionImport {
			continue
		}
		for _, m := range imported.FindAllSubmatch(body, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names, nil
}
