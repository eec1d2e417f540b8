package reports

import (
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/compare/evidence"
	"llmparity/internal/record"
	"llmparity/reports/chart"
	"llmparity/reports/section"
)

func TestLongNamesAreCut(t *testing.T) {
	long, hebrew := strings.Repeat("w", 10000)+" one", "מנוע"
	other := strings.Repeat("w", 10000) + " two"
	res := &compare.Result{Cells: []*compare.Cell{{Label: long, Setup: evidence.Setup{Spec: record.Cell{Engine: long}}},
		{Label: hebrew}, {Label: "plain"}, {Label: other}}}
	n := newNames(res)
	if s := string(n.sentence(long + " beats <b> and plain, as " + other + " did")); len(s) > 3*nameLimit ||
		!strings.Contains(s, " one beats") || !strings.Contains(s, " two did") || !strings.Contains(s, "&lt;b&gt;") {
		t.Errorf("%s", s)
	}
	if s := string(n.name(long)); !strings.Contains(s, `title="`+long) || !strings.HasSuffix(s, " one</bdi>") {
		t.Errorf("%s", s)
	}
	if s := string(n.name(hebrew)); s != "<bdi>"+hebrew+"</bdi>" {
		t.Errorf("%s", s)
	}
	if s := string(n.cell(1, strings.Repeat("v ", 400))); !strings.HasPrefix(s, `<details class="whole"><summary><bdi>v v`) {
		t.Errorf("%s", s)
	}
}

// Every section that the page has to show is in one of its chapters, except for what its first screen says.
func TestChaptersHoldEverySection(t *testing.T) {
	run := comparetest.Run(t, "all", comparetest.Measured(comparetest.Browser(6), comparetest.Page()),
		comparetest.Loaded(comparetest.Native(6), 2, 2, 20))
	res := compare.Runs(run)
	res.Notes = append(res.Notes, evidence.Warning{Where: "run"})
	v := &chart.View{Res: res, Runs: []*record.Run{run}}
	placed := map[string]bool{"verdict": true}
	for _, c := range chapters(v, answer.Of(res)) {
		placed[c.ID] = true
		for _, s := range c.Parts {
			placed[s.ID] = true
		}
	}
	for _, s := range section.ShownTo(section.Drawn(v, section.All(v)), section.OnPage) {
		if !placed[s.ID] {
			t.Errorf("no chapter has section %q", s.ID)
		}
	}
}
