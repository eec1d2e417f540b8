package reports

import (
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/evidence"
	"llmparity/internal/record"
)

func TestSortKey(t *testing.T) {
	for text, want := range map[string]string{"12.5": "12.5", "-0.3%": "-0.3", "+3.2%": "3.2", "±10%": "10",
		"367.7 (too few launches: 1)": "367.7", "<0.001": "0.001", ">-0.001": "-0.001",
		"1e+16": "1e+16", "3, 4, 5": "3", "64 of 64": "64", "": "", "–": "", "exactly": "", "f16": "", "12b": "",
		"2026-11-22": "", "1.2.3": ""} {
		if got := sortKey(text); got != want {
			t.Errorf("%q sorts by %q, want %q", text, got, want)
		}
	}
}

func TestColumnsOfNumbers(t *testing.T) {
	g := &grid{Head: []string{"cell", "MiB", "method", "of both"},
		Rows: [][]string{{"1", "12.5", "ledger", "3"}, {"2", "–", "log", "none"}, {"3", "– (none: why)", "", "4"}}}
	var got []bool
	for _, c := range g.Columns() {
		got = append(got, c.Number)
	}
	if want := []bool{false, true, false, false}; len(got) != 4 || got[0] != want[0] || got[1] != want[1] ||
		got[2] != want[2] || got[3] != want[3] {
		t.Errorf("columns of numbers: %v, want %v", got, want)
	}
}

func TestLongNamesAreCut(t *testing.T) {
	long, hebrew := strings.Repeat("w", 10000), "מנוע"
	res := &compare.Result{Cells: []compare.Cell{{Label: long, Setup: evidence.Setup{Spec: record.Cell{Engine: long}}},
		{Label: hebrew}, {Label: "plain"}}}
	n := newNames(res)
	if s := string(n.sentence(long + " beats <b> and plain, as " + long + " did")); len(s) > 3*nameLimit ||
		strings.Count(s, "… [1]") != 2 || !strings.Contains(s, "&lt;b&gt;") {
		t.Errorf("%s", s)
	}
	if s := string(n.name(long)); !strings.Contains(s, `title="`+long) || !strings.HasSuffix(s, "… [1]</bdi>") {
		t.Errorf("%s", s)
	}
	if s := string(n.name(hebrew)); s != "<bdi>"+hebrew+"</bdi>" {
		t.Errorf("%s", s)
	}
	if s := string(n.cell(1, strings.Repeat("v ", 400))); !strings.HasPrefix(s, `<details class="whole"><summary><bdi>v v`) {
		t.Errorf("%s", s)
	}
}

// An engine has its colour whatever else is in the report; no two that fit share one.
func TestEnginesKeepTheirColours(t *testing.T) {
	of := func(engines ...string) map[string]int {
		res := &compare.Result{}
		for _, e := range engines {
			res.Cells = append(res.Cells, compare.Cell{Setup: evidence.Setup{Spec: record.Cell{Engine: e}}})
		}
		return (&view{res: res, own: Colours{"webllm": 1, "llamacpp": 2, "ollama": 3, "hf": 5}}).engineColour()
	}
	if a, b := of("llamacpp", "webllm"),
		of("exec:mine", "webllm", "ollama", "llamacpp"); a["llamacpp"] != b["llamacpp"] || a["webllm"] != b["webllm"] {
		t.Errorf("%v, and %v beside others", a, b)
	}
	seen := map[int]string{}
	for e, c := range of("exec:a", "hf", "wllama", "webllm", "exec:b", "llamacpp") {
		if other, taken := seen[c]; taken || c < 1 || c > engineColours {
			t.Errorf("%s and %s have colour %d", e, other, c)
		}
		seen[c] = e
	}
}

// Every section that the page has to show is in one of its chapters, except for what its first screen says.
func TestChaptersHoldEverySection(t *testing.T) {
	run := comparetest.Run(t, "all", comparetest.Measured(comparetest.Browser(6), comparetest.Page()),
		comparetest.Loaded(comparetest.Native(6), 2, 2, 20))
	res := compare.Runs(run)
	res.Notes = append(res.Notes, evidence.Warning{Where: "run"})
	v := &view{res: res, runs: []*record.Run{run}}
	placed := map[string]bool{"verdict": true}
	for _, c := range chapters(v, res.Answer()) {
		placed[c.ID] = true
		for _, s := range c.Parts {
			placed[s.ID] = true
		}
	}
	for _, s := range shownTo(drawn(v, sections(v)), onPage) {
		if !placed[s.ID] {
			t.Errorf("no chapter has section %q", s.ID)
		}
	}
}
