package mlc

import (
	"bytes"
	"errors"
	"fmt"
)

// CheckModule returns an error if a file is not a WebAssembly module.
func CheckModule(file []byte) error {
	if !bytes.HasPrefix(file, []byte(wasmMagic)) {
		return errors.New("not a WebAssembly module")
	}
	return nil
}

// sectionImport lists what a module needs from its host.
const sectionImport = 2

// wasmMagic starts every module: magic number and version.
const wasmMagic = "\x00asm\x01\x00\x00\x00"

// importsOf returns the names of the functions that a module imports. It allocates no more than the size of the file.
func importsOf(file []byte) (names []string, err error) {
	if !bytes.HasPrefix(file, []byte(wasmMagic)) {
		return nil, errors.New("not a WebAssembly module")
	}
	for in := (wasm{file[len(wasmMagic):]}); len(in.rest) > 0; {
		id, err := in.byte()
		if err != nil {
			return nil, err
		}
		body, err := in.bytes()
		if err == nil && id == sectionImport {
			names, err = (&wasm{body}).imports()
		}
		if err != nil {
			return nil, fmt.Errorf("section %d: %w", id, err)
		}
	}
	return names, nil
}

var errShort = errors.New("unexpected end")

// wasm is the unread rest of a module.
type wasm struct{ rest []byte }

func (w *wasm) byte() (byte, error) {
	if len(w.rest) == 0 {
		return 0, errShort
	}
	b := w.rest[0]
	w.rest = w.rest[1:]
	return b, nil
}

// number reads a LEB128 number of up to 64 bits. It also skips signed ones.
func (w *wasm) number() (uint64, error) {
	var n uint64
	for shift := 0; shift < 70; shift += 7 {
		b, err := w.byte()
		if err != nil {
			return 0, err
		}
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n, nil
		}
	}
	return 0, errors.New("a number is too long")
}

// bytes reads a length and that many bytes, without copying.
func (w *wasm) bytes() ([]byte, error) {
	n, err := w.number()
	if err != nil {
		return nil, err
	}
	if n > uint64(len(w.rest)) {
		return nil, errShort
	}
	b := w.rest[:n]
	w.rest = w.rest[n:]
	return b, nil
}

func (w *wasm) skipNumbers(n int) error {
	for range n {
		if _, err := w.number(); err != nil {
			return err
		}
	}
	return nil
}

// each reads a count and calls do that often. Items take at least a byte, which bounds the count.
func (w *wasm) each(do func() error) error {
	n, err := w.number()
	if err != nil {
		return err
	}
	if n > uint64(len(w.rest)) {
		return errShort
	}
	for range n {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

func (w *wasm) imports() ([]string, error) {
	var names []string
	err := w.each(func() error {
		if _, err := w.bytes(); err != nil { // the module's name
			return err
		}
		name, err := w.bytes()
		if err != nil {
			return err
		}
		kind, err := w.byte()
		if err != nil {
			return err
		}
		switch kind {
		case 0: // a function, by its type
			names = append(names, string(name))
			return w.skipNumbers(1)
		case 1: // a table: the type of its elements, limits
			if _, err := w.byte(); err != nil {
				return err
			}
			return w.limits()
		case 2: // a memory
			return w.limits()
		case 3: // a global: type and mutability
			return w.skipNumbers(2)
		}
		return fmt.Errorf("an import of kind %d", kind)
	})
	return names, err
}

func (w *wasm) limits() error {
	flags, err := w.byte()
	if err != nil {
		return err
	}
	return w.skipNumbers(1 + int(flags&1))
}
