package find

import (
	"debug/elf"
	"encoding/hex"
)

// BuildID returns the linker's build id of a Linux program. Hashing would be slow, as a browser's program has hundreds
// of MB. It is empty if there is none or it is unreadable; then the version must do.
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
