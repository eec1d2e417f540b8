package lines

import (
	"os"
	"path/filepath"
	"testing"

	"llmparity/internal/kit/check"
)

// A kill may cut the last line, and a power failure may leave zeros.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv")
	a, err := Create(path, []string{"a", "b"})
	check.Err(t, err)
	for _, line := range []string{"1,2\n", "3,4\n", "5,"} {
		check.Err(t, a.Write([]byte(line)))
	}
	check.Err(t, a.Flush())
	check.Err(t, a.Sync())
	check.Err(t, a.Close())
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	check.Err(t, err)
	_, err = f.Write(make([]byte, 100_000))
	check.Err(t, err)
	check.Err(t, f.Close())

	a, err = Reopen(path, []string{"a", "b"})
	check.Err(t, err)
	check.Err(t, a.Write([]byte("6,7\n")))
	check.Err(t, a.Flush())
	check.Err(t, a.Close())
	text, err := os.ReadFile(path)
	if want := "a,b\n1,2\n3,4\n6,7\n"; err != nil || string(text) != want || a.Size() != int64(len(want)) {
		t.Errorf("%d bytes %q, %v", a.Size(), text, err)
	}
	if _, err := Reopen(path, []string{"a", "c"}); err == nil {
		t.Error("other columns are accepted")
	}
}
