package browser

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"llmparity/assets/page"
)

// PageSHA256 is the sum of the page's own files, without WebLLM: their names, lengths and contents in the order of
// their names.
func PageSHA256() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(page.Files(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, "dist/") {
			return err
		}
		text, err := fs.ReadFile(page.Files(), path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n", path, len(text))
		_, err = h.Write(text)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// identify adds what page and browser are known by. A browser's program has hundreds of MB, and a script may start it:
// of the one that runs the build's own number is read, which the linker makes of all that is in it. Where there is
// none, or it is not ours to read, the version has to do.
func identify(parts map[string]string, pid int) {
	if sum, err := PageSHA256(); err == nil {
		parts["page_sha256"] = sum
	}
	if pid == 0 {
		return
	}
	if id := BuildID(filepath.Join("/proc", strconv.Itoa(pid), "exe")); id != "" {
		parts["browser_build_id"] = id
	}
}

// BuildID is the number that the linker gave a program for Linux; empty where it has none, or is none.
func BuildID(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const header, name = 12, 4 // sizes of name, content and type; GNU and a zero
	s := f.Section(".note.gnu.build-id")
	if s == nil || s.Size > 1<<10 {
		return ""
	}
	note, err := s.Data()
	if err != nil || len(note) <= header+name || string(note[header:header+name]) != "GNU\x00" {
		return ""
	}
	n := int(f.ByteOrder.Uint32(note[4:]))
	if n < 1 || n > len(note)-header-name {
		return ""
	}
	return hex.EncodeToString(note[header+name : header+name+n])
}
