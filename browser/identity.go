package browser

import (
	"debug/elf"
	"encoding/hex"
	"path/filepath"
	"strconv"
)

// buildOf is the build's number of the program that a process runs. A browser's program has hundreds of MB, and a
// script may start it: of the one that runs the number is read, which the linker makes of all that is in it. It is
// empty where there is none, or it is not ours to read: then the version has to do.
func buildOf(pid int) string {
	return BuildID(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
}

// BuildID is the number that the linker gave a program for Linux; empty where it has none, or is none.
func BuildID(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const header, most = 16, 1 << 10 // sizes of name, content and type, and the name: GNU and a zero
	s := f.Section(".note.gnu.build-id")
	if s == nil || s.Size <= header || s.Size > most {
		return ""
	}
	note, err := s.Data()
	if err != nil || len(note) <= header {
		return ""
	}
	return hex.EncodeToString(note[header:])
}
