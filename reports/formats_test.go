package reports_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/perf/benchfmt"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/parity"
	"llmparity/internal/figure"
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
					"tbody", "tr", "th", "td"}, element) {
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
func TestBenchstat(t *testing.T) {
	for name, runs := range cases(t) {
		res := compare.Runs(runs...)
		text := rendered(t, func(w io.Writer) error { return reports.Benchstat(w, res) })
		read := benchfmt.NewReader(strings.NewReader(text), name)
		values := map[string][]float64{} // by engine and unit
		for read.Scan() {
			switch rec := read.Result().(type) {
			case *benchfmt.SyntaxError:
				t.Errorf("%s: %v", name, rec)
			case *benchfmt.Result:
				_, parts := rec.Name.Parts()
				engine := strings.TrimPrefix(string(parts[0]), "/engine=")
				for _, v := range rec.Values {
					values[engine+" "+v.Unit] = append(values[engine+" "+v.Unit], v.Value)
				}
				for _, key := range []string{"goos", "goarch", "cpu", "device", "model-sha256"} {
					if at, ok := rec.ConfigIndex(key); !ok || len(rec.Config[at].Value) == 0 {
						t.Errorf("%s: no %s", name, key)
					}
				}
			}
		}
		if err := read.Err(); err != nil {
			t.Fatal(err)
		}
		if name == "hostile" {
			continue // its engine's name is another there
		}
		for i := range res.Cells {
			for figure, unit := range map[string]struct {
				name  string
				scale float64
			}{figure.PeakPSS: {"peak-B", 1 << 20}, figure.TTFT: {"ttft-sec", 1e-3},
				figure.DecodeTPS: {"decode-tokens/s", 1}, figure.LoadTime: {"load-sec", 1e-3}} {
				c := &res.Cells[i]
				var want []float64
				for _, v := range c.Figure(figure).Values {
					want = append(want, v.Value*unit.scale)
				}
				got := values[c.Spec.Engine+" "+unit.name]
				if !slices.EqualFunc(got, want,
					func(a, b float64) bool { return a == b || (a-b)/b < 1e-12 && (b-a)/b < 1e-12 }) {
					t.Errorf("%s: %s of %s is %v, want %v", name, unit.name, c.Label, got, want)
				}
			}
		}
		if better := read.Units().Get("decode-tokens/s", "better"); better == nil || better.Value != "higher" {
			t.Errorf("%s: which way is better for decode is not told: %v", name, better)
		}
	}
}

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
