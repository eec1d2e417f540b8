package reports_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/parity"
	"llmparity/internal/record"
	"llmparity/reports"
	"llmparity/reports/reportstest"
)

// asGitHub is Markdown as GitHub shows it.
func asGitHub(t *testing.T, markdown string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(reportstest.AsHTML(t, markdown)))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// A hostile label is shown as it stands: it makes no element, no link, no field of a table.
func TestMarkdownIsInert(t *testing.T) {
	const evil = attack + " **b** _i_ `c` [l](http://x.y) ![i](http://x.y) | ~~s~~ https://x.y www.x.y @all a@b.cd $1$ &lt; <b> # h"
	for _, name := range []string{evil, "# " + evil, "1. " + evil, "- " + evil, "> " + evil, "    " + evil, "```",
		"---", "===", "+ x", "12) x", "[^1]"} {
		e := hostile()
		e.Cell.Engine, e.Warnings = name, []record.Warning{{Code: "code", Text: name}}
		res := compare.Runs(comparetest.Run(t, "hostile", e, comparetest.Native(2)))
		doc := asGitHub(t, rendered(t, func(w io.Writer) error { return reports.Markdown(w, res) }))
		seen := map[string]int{}
		for n := range doc.Descendants() {
			if n.Type == html.ElementNode {
				seen[n.Data]++
			}
			if n.Type == html.ElementNode && n.Data == "tr" {
				fields := 0
				for range n.ChildNodes() {
					fields++
				}
				seen[fmt.Sprintf("row of %d", fields/2)]++
			}
		}
		for element := range seen {
			if !strings.HasPrefix(element, "row of") &&
				!slices.Contains([]string{"html", "head", "body", "h2", "h3", "h4", "p", "ul", "li", "table", "thead",
					"tbody", "tr", "th", "td", "details", "summary"}, element) {
				t.Errorf("%q makes <%s>", name, element)
			}
		}
		if seen["h2"] != 1 || seen["ul"] > 8 {
			t.Errorf("%q: %v", name, seen)
		}
		if text := words(textOf(doc)); name == evil &&
			!strings.Contains(text, "**b** _i_ `c` [l](http://x.y) ![i](http://x.y) | ~~s~~ https://x.y www.x.y @all a@b.cd $1$ &lt; <b> # h") {
			t.Errorf("the label is not shown as it stands:\n%s", text)
		}
	}
}

func words(s string) string { return strings.Join(strings.Fields(s), " ") }

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// What is written is what benchstat reads: every value of every launch, and which way is better.

// Where two cells part at a tie that rounding turns, nothing is wrong with either; where they part otherwise, something
// is.
func TestJUnitPassesNearTies(t *testing.T) {
	same, other := true, false
	for name, c := range map[string]struct {
		change func(*parity.Parity)
		passes bool
	}{
		"rounding is enough":      {func(p *parity.Parity) { p.SamePrompt = &same }, true},
		"rounding is not enough":  {func(p *parity.Parity) { p.First.Rounding = false }, false},
		"nobody asked":            {func(p *parity.Parity) { p.First = nil }, false},
		"the prompts differ, too": {func(p *parity.Parity) { p.SamePrompt = &other }, false},
	} {
		p := parity.Parity{Compared: true, Verdict: "they part at token 3",
			First: &parity.Divergence{Index: 2, Rounding: true}}
		c.change(&p)
		res := &compare.Result{Cells: []compare.Cell{{Label: "left"}, {Label: "right"}}, Parity: []parity.Parity{p}}
		res.Parity[0].A, res.Parity[0].B = 0, 1
		text := rendered(t, func(w io.Writer) error { return reports.JUnit(w, res) })
		if failed := strings.Contains(text, `type="parity"`); failed == c.passes {
			t.Errorf("%s: failed is %v in\n%s", name, failed, text)
		}
		if c.passes && !strings.Contains(text, "passed, though they part: they part at token 3") {
			t.Errorf("%s: nothing is said of it in\n%s", name, text)
		}
	}
}
