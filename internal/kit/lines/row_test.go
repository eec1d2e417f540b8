package lines

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
)

// FuzzSplit compares split with the standard library, which treats line breaks and bare quotes differently.
func FuzzSplit(f *testing.F) {
	for _, line := range []string{"", "a", "a,b", ",,", `"webllm, c1",42,3.5000`, `"a ""b""",`, `"open`, `a,"b"c`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if line == "" || strings.ContainsAny(line, "\r\n") {
			return
		}
		want, wrong := csv.NewReader(strings.NewReader(line)).Read()
		if wrong != nil && strings.Contains(wrong.Error(), csv.ErrBareQuote.Error()) {
			return
		}
		var r Row
		if err := r.split([]byte(line)); (err == nil) != (wrong == nil) {
			t.Fatalf("%q: %v, want %v", line, err, wrong)
		}
		var got []string
		for _, field := range r.fields {
			got = append(got, string(field))
		}
		if wrong == nil && !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	})
}
