package resolve

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
)

// Windows are those of llama-perplexity -c 256, and then those of the text from its 129th token on. quick is the
// beginning of builtin.
func TestWindowsOfText(t *testing.T) {
	m, r := enginetest.TinyModel(t), &Resolver{cache: cache{}}
	tokens, err := r.tokenizer(m)
	check.Err(t, err)
	path := filepath.Join(t.TempDir(), "a.txt")
	text := strings.Repeat("The clocks were striking. ", 60)
	check.Err(t, os.WriteFile(path, []byte(text), 0o600))
	ids := tokens.Prompt(text)
	got, err := r.quality(path, m)
	check.Err(t, err)
	if n, shifted := len(ids)/256, (len(ids)-128)/256; len(got.IDs) != n+shifted || n < 2 || shifted < 1 {
		t.Fatalf("%d windows of %d tokens", len(got.IDs), len(ids))
	}
	for i, w := range got.IDs {
		from := 256 * i
		if n := len(ids) / 256; i >= n {
			from = 128 + 256*(i-n)
		}
		if len(w) != 256 || !slices.Equal(w[1:], ids[from+1:from+256]) || tokens.AddBOS && w[0] != tokens.BOS {
			t.Errorf("window %d is not that from token %d on", i+1, from+1)
		}
	}
	all, err := r.quality("builtin", m)
	check.Err(t, err)
	first, err := r.quality("quick", m)
	check.Err(t, err)
	if len(first.IDs) != 16 || len(all.IDs) != 166 || first.SHA256 != all.SHA256 ||
		!slices.EqualFunc(first.IDs, all.IDs[:16], slices.Equal[[]int]) {
		t.Errorf("%d windows, of which %d are quick", len(all.IDs), len(first.IDs))
	}
}
