package record

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// readOnly does something while nothing in a folder can be written.
func readOnly(t *testing.T, dir string, do func()) {
	t.Helper()
	set := func(file, folder os.FileMode) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				return os.Chmod(path, folder)
			}
			return os.Chmod(path, file)
		})
		if err != nil {
			t.Error(err)
		}
	}
	set(0o444, 0o555)
	defer set(0o644, 0o755)
	do()
}
