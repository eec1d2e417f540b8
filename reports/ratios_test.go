package reports_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/reports"
)

// again are two runs of the same, of which the second may be changed.
func again(t *testing.T, o compare.Options, change func(*comparetest.Engine)) (*compare.Result, []*record.Run) {
	t.Helper()
	a, b := comparetest.Native(8), comparetest.Native(8)
	for _, e := range []*comparetest.Engine{&a, &b} {
		e.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 460, Shared: 3}}
	}
	other := comparetest.Native(8)
	other.Cell.ID, other.Cell.PromptID, other.Cell.Prompt = 7, 2, "There was"
	b.TTFT += b.TTFT / 300
	change(&b)
	runs := []*record.Run{comparetest.Run(t, "before", a, other), comparetest.Run(t, "after", b, other)}
	return compare.With(o, runs...), runs
}

func shown(t *testing.T, res *compare.Result, runs []*record.Run) (terminal, page string) {
	t.Helper()
	var table, html bytes.Buffer
	if err := reports.Table(&table, res); err != nil {
		t.Fatal(err)
	}
	if err := colours.HTML(&html, res, runs...); err != nil {
		t.Fatal(err)
	}
	return table.String(), html.String()
}

var section = regexp.MustCompile(`(?s)<section id="ratios".*?</section>`)

// Two series of the same launches: whatever is printed of them, no word and no number claims a difference.
func TestNothingIsSaidToDifferThatDoesNot(t *testing.T) {
	res, runs := again(t, compare.Defaults(), func(e *comparetest.Engine) { e.TTFT = comparetest.Native(1).TTFT })
	terminal, page := shown(t, res, runs)
	_, terminal, _ = strings.Cut(terminal, "\nafter against before, the baseline\n")
	table, _, _ := strings.Cut(terminal, "p by Mann")
	if strings.Count(table, " chance") < 10 || strings.Contains(table, "different") {
		t.Errorf("%s", table)
	}
	claims := regexp.MustCompile(`\d times|faster|slower|more than|less than|[<>]?[+-]\d\S*%\s+[+-]\d+\.\d+%? to`)
	if found := claims.FindString(table); found != "" {
		t.Errorf("%q in\n%s", found, table)
	}
	for _, part := range append(slices.Clone(res.Verdict), section.FindString(page)) {
		if found := regexp.MustCompile(`\d times|faster|slower|>different`).FindString(part); found != "" {
			t.Errorf("%q in %s", found, part)
		}
	}
	for _, c := range res.Comparisons {
		for _, x := range c.Ratios {
			if !strings.Contains(page, "chance") || strings.Contains(x.Verdict, "times") {
				t.Errorf("%s", x.Verdict)
			}
		}
	}
}

func TestComparisonsAreTheSameInTerminalAndPage(t *testing.T) {
	o := compare.Defaults()
	o.By = []string{"engine", "input_len"}
	res, runs := again(t, o, func(e *comparetest.Engine) { e.Token *= 2 })
	terminal, page := shown(t, res, runs)
	html := section.FindString(page)
	cells := regexp.MustCompile(`(?s)<t[dh][^>]*>(.*?)</t[dh]>`).FindAllStringSubmatch(html, -1)
	if len(cells) < 100 {
		t.Fatalf("%d cells in %s", len(cells), html)
	}
	plain := strings.NewReplacer("<bdi>", "", "</bdi>", "", "&#43;", "+", "&lt;", "<", "–", "-")
	flat := strings.Join(strings.Fields(terminal), " ")
	for _, c := range cells {
		text := plain.Replace(c[1])
		if strings.Contains(text, "<") && !strings.HasPrefix(text, "<0.001") {
			continue // a name that was cut, with a link to the whole
		}
		if !strings.Contains(flat, strings.Join(strings.Fields(text), " ")) {
			t.Errorf("the terminal does not have %q", text)
		}
	}
	for _, want := range []string{"geometric mean of 2 pairs: engine llamacpp, input_len 4, device cpu; over prompt (2)", "Groups of cells", "different", "chance"} {
		if !strings.Contains(terminal, want) {
			t.Errorf("no %q in\n%s", want, terminal)
		}
	}
}

// What is not alike is marked in the sentence, in the table and on the page.
func TestWhatIsNotAlikeIsMarkedWhereverItStands(t *testing.T) {
	o := compare.Defaults()
	o.AllowDifferent = true
	run := comparetest.Run(t, "x", comparetest.Browser(8), comparetest.Native(8))
	res := compare.With(o, run)
	ratios := res.Comparisons[0].Ratios
	if len(ratios) != 5 {
		t.Fatalf("%d ratios", len(ratios))
	}
	terminal, page := shown(t, res, []*record.Run{run})
	const mark = "webllm computed on a software adapter (SwiftShader), llamacpp on the CPU"
	for _, x := range ratios {
		if !strings.Contains(x.Different, mark) || !strings.Contains(x.Verdict, mark) {
			t.Errorf("%+v", x)
		}
	}
	html := section.FindString(page)
	if strings.Count(terminal, " ≠\n") != len(ratios) || strings.Count(html, " ≠") < len(ratios) ||
		!strings.Contains(html, mark) {
		t.Errorf("%s\n%s", terminal, html)
	}
	for _, sentence := range res.Verdict {
		if strings.Contains(sentence, "times") && !strings.Contains(sentence, mark) {
			t.Error(sentence)
		}
	}
	if got := compare.Runs(run); len(got.Comparisons[0].Ratios) != 0 || got.Comparisons[0].Refused == "" {
		t.Errorf("without being asked: %+v", got.Comparisons[0])
	}
}

// A warning stands beside the number that it is about.
func TestWarningsStandBesideTheirNumbers(t *testing.T) {
	run := comparetest.Run(t, "x", comparetest.Native(8))
	for n, a := range run.Attempts {
		for _, q := range a.Requests {
			for i := range q.Tokens {
				q.Tokens[i].NS += int64(n) * 3e6 // each launch a little later than the one before
			}
		}
	}
	res := compare.Runs(run)
	f := res.Cells[0].Figure(figure.TTFT)
	if !slices.ContainsFunc(f.Warnings, func(w record.Warning) bool { return w.Code == explain.Trend }) {
		t.Fatalf("%+v", f.Warnings)
	}
	terminal, page := shown(t, res, []*record.Run{run})
	if !regexp.MustCompile(`\d ±\S+%!`).MatchString(terminal) || !strings.Contains(terminal, "Mann-Kendall") ||
		!strings.Contains(page, "; ! trend") {
		t.Errorf("%s", terminal)
	}
}

// Folders that differ at their ends alone are told apart in a terminal, and what is to know of several figures is said
// once.
func TestHeadsAndNotesOfComparisons(t *testing.T) {
	a, b := comparetest.Native(8), comparetest.Native(8)
	runs := []*record.Run{comparetest.Run(t, "default", a), comparetest.Run(t, "default", b)}
	runs[0].Dir, runs[1].Dir = "/srv/measurements/of/november/first", "/srv/measurements/of/november/second"
	runs[1].Environment.Background = &record.Background{Seconds: 1, Cores: 1.5}
	res := compare.Runs(runs...)
	terminal, _ := shown(t, res, runs)
	if !regexp.MustCompile(`\n +first +second +change`).MatchString(terminal) {
		t.Errorf("the heads don't tell the runs apart:\n%s", terminal)
	}
	_, table, _ := strings.Cut(terminal, "p by Mann")
	if below, _, _ := strings.Cut(table, "\n\n"); strings.Count(below, "(busy-machine)") != 1 {
		t.Errorf("that a machine was busy is not said once:\n%s", table)
	}
}
