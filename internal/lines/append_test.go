package lines

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"llmparity/internal/check"
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

func TestEachRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv")
	check.Err(t, os.WriteFile(path, []byte("n,mb,text\n1,,a\n2,0.5,\"b,c\"\n3,1"), 0o600))
	var names Names = map[string]string{}
	var got []string
	var sum float64
	cut, err := EachRow(path, func(h Header) func(*Row) error {
		n, mb, text := h.Column("n"), h.Column("mb"), h.Column("text")
		return func(r *Row) error {
			if size := r.Size(mb); size == size { // not NaN
				sum += size
			}
			sum += r.Number(n) + float64(r.Integer(n))
			got = append(got, names.Of(r.Text(text)))
			return r.Err
		}
	})
	if err != nil || !cut || !slices.Equal(got, []string{"a", "b,c"}) || sum != 6.5 {
		t.Errorf("%q, sum %g, cut %v, %v", got, sum, cut, err)
	}
}
