package reports

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/safe"
	"llmparity/reports/plain"
	"llmparity/reports/reportstest"
)

// Whatever a text is, Markdown shows it as it stands, in a paragraph, in a list and in a table, and makes nothing of
// it.
func FuzzInert(f *testing.F) {
	for _, s := range []string{"plain", "1. one", "- x", "# h", "</td><script>x</script>", "a | b", `a \| b`, "`c`",
		"**b**", "_i_ a_b_c", "[l](u)", "![i](u)", "<https://x.y>", "https://x.y", "www.x.y",
		"a@b.cd", "~~s~~", "&lt;", "$x$", "\\", "\\`", "12) x", "+", "===", "---", "a  \nb", "\x00\x1b\u202e",
		"http://x.y|z", "_", "__a__", "*", "*a", "|", "ftp://x.y", "mailto:a@b.c", "a_ b_", "é_x_", "[^1]: x", "[x]: y",
		"- [ ] x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := strings.Join(strings.Fields(plain.Line(s)), " ")
		if want == "" {
			return
		}
		text := safe.Markdown(plain.Line(s))
		doc := "p: " + text + "\n\n" + text + "\n\n- " + text + "\n\n| head | other |\n|---|---|\n| " + text +
			" | o |\n"
		root, err := html.Parse(strings.NewReader(reportstest.AsHTML(t, doc)))
		check.Err(t, err)
		var shown []string
		for n := range root.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			if !slices.Contains([]string{"html", "head", "body", "p", "ul", "li", "table", "thead", "tbody", "tr", "th",
				"td"}, n.Data) {
				t.Fatalf("%q makes <%s> of\n%s", s, n.Data, doc)
			}
			if slices.Contains([]string{"p", "li", "td"}, n.Data) {
				shown = append(shown, reportstest.WordsOf(n))
			}
		}
		if all := []string{"p: " + want, want, want, want, "o"}; !slices.Equal(shown, all) {
			t.Errorf("%q is shown as %q, want %q, of\n%s", s, shown, all, doc)
		}
	})
}
