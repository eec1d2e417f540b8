package reports_test

import (
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/gate"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/reports"
)

// gatedRun is a run whose gate has a check of each status, and names that are hostile.
func gatedRun(t *testing.T) (*compare.Result, *record.Run) {
	t.Helper()
	evil := hostile()
	evil.Cell.Engine = attack + " **b** | [l](http://x.y)"
	run := comparetest.Run(t, "gated", comparetest.Native(8), evil)
	g, err := plan.ParseGate([]byte("peak_pss_mb: {max: 9, engine: llamacpp}\nbaseline_pss: {max: 1, engine: llamacpp}\nttft_ms: {max: 1, level: warn}\nlatency: {max: 1e9}\nfailed: off\n"+
		"vs_baseline: {decode_tps: -5%}"), "gate")
	if err != nil {
		t.Fatal(err)
	}
	res := compare.Runs(run)
	res.Gate = gate.Evaluate(g, res, compare.Runs(run))
	return res, run
}

// What came of a gate is in every rendering, and a hostile name stays a name in each.
func TestEveryRenderingHasTheGate(t *testing.T) {
	res, run := gatedRun(t)
	seen := map[compare.GateStatus]bool{}
	for _, c := range res.Gate.Checks {
		seen[c.Status] = true
	}
	if len(seen) != 4 {
		t.Fatalf("statuses %v", seen)
	}
	const failing = "peak_pss_mb at most 9"
	for name, render := range map[string]func(io.Writer) error{
		"html":          func(w io.Writer) error { return colours.HTML(w, res, run) },
		"markdown":      func(w io.Writer) error { return reports.Markdown(w, res) },
		"junit":         func(w io.Writer) error { return reports.JUnit(w, res) },
		"table":         func(w io.Writer) error { return reports.Table(w, res) },
		"json":          func(w io.Writer) error { return reports.JSON(w, res) },
		"gate table":    func(w io.Writer) error { return reports.GateTable(w, res.Gate) },
		"gate markdown": func(w io.Writer) error { return reports.GateMarkdown(w, res.Gate) },
		"gate junit":    func(w io.Writer) error { return reports.GateJUnit(w, res.Gate) },
	} {
		text := rendered(t, render)
		said := strings.Join(strings.Fields(text), " ")
		if !strings.Contains(said, failing) {
			t.Errorf("%s does not say what fails", name)
		}
		switch name {
		case "html":
			page, err := html.Parse(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			section := byID(page, "gate")
			if section == nil {
				t.Fatal("the page has no section of the gate")
			}
			for n := range section.Descendants() {
				leads := slices.ContainsFunc(
					n.Attr, func(a html.Attribute) bool {
						return a.Key == "href" &&
							!strings.HasPrefix(a.Val, "#whole-")
					})
				if n.Type == html.ElementNode &&
					(leads || slices.Contains([]string{"script", "img", "iframe"}, n.Data)) {
					t.Errorf("a name has become <%s>", n.Data)
				}
			}
		case "gate markdown":
			for n := range asGitHub(t, text).Descendants() {
				if n.Type == html.ElementNode && slices.Contains([]string{"script", "img", "a", "code"}, n.Data) {
					t.Errorf("a name has become <%s>", n.Data)
				}
			}
		case "junit", "gate junit":
			if err := xml.Unmarshal([]byte(text), new(any)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	res.Gate = nil
	for name, render := range map[string]func(
		io.Writer) error{"html": func(w io.Writer) error { return colours.HTML(w, res, run) },
		"table":    func(w io.Writer) error { return reports.Table(w, res) },
		"markdown": func(w io.Writer) error { return reports.Markdown(w, res) },
		"junit":    func(w io.Writer) error { return reports.JUnit(w, res) }} {
		if text := rendered(t, render); strings.Contains(text, `id="h-gate"`) || strings.Contains(text, "Gate\n") ||
			strings.Contains(text, `name="gate"`) {
			t.Errorf("%s has a gate where there is none", name)
		}
	}
}

func byID(n *html.Node, id string) *html.Node {
	for d := range n.Descendants() {
		for _, a := range d.Attr {
			if a.Key == "id" && a.Val == id {
				return d
			}
		}
	}
	return nil
}
