package plain

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLabelsAreShortenedInTheMiddle(t *testing.T) {
	for width, test := range map[int][2][]string{
		16: {{"SmolLM2 135M Instruct Q4_K_M", "SmolLM2 135M Instruct Q4_0"}, {"SmolLM2…Q4_K_M", "SmolLM2…Q4_0"}},
		30: {{"WebLLM a-very-long-name-of-a-build, context 512", "WebLLM 0.2.80, context 512"},
			{"WebLLM a…a-build, context 512", "WebLLM 0.2.80, context 512"}},
		12: {{"builds/one/dist/index", "builds/two/dist/index"}, {"bui…one…ndex", "bui…two…ndex"}},
		99: {{"short"}, {"short"}},
	} {
		if got := Fit(test[0], width); !slices.Equal(got, test[1]) {
			t.Errorf("%d: %q, want %q", width, got, test[1])
		}
	}
}

// What fits stays, what is longer becomes as short as it was to be, and what differs still does.
func FuzzFit(f *testing.F) {
	f.Add("aaaa, bbbb\naaaa, cccc\naaab, bbbb", 5)
	f.Add(strings.Repeat("w", 300)+"\n"+strings.Repeat("w", 301), 9)
	f.Add("a…b\naxb\nayb", 3)
	f.Fuzz(func(t *testing.T, text string, width int) {
		labels := strings.Split(text, "\n")
		if width = 1 + (width&0xff)%120; len(labels) > 30 || !utf8.ValidString(text) {
			return
		}
		got := Fit(labels, width)
		if confused(labels, got) {
			t.Errorf("%q at %d: %q", labels, width, got)
		}
		if fits(labels, width) != slices.Equal(labels, got) {
			t.Errorf("%q at %d: %q", labels, width, got)
		}
	})
}
