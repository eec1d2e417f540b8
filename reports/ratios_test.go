package reports_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
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
	if err := reports.Details(&table, res); err != nil {
		t.Fatal(err)
	}
	if err := colours.HTML(&html, res, runs...); err != nil {
		t.Fatal(err)
	}
	return table.String(), html.String()
}

var section = regexp.MustCompile(`(?s)<section id="ratios".*?</section>`)

// Two series of the same launches: whatever is printed of them, no word and no number claims a difference.
func TestEqualRunsAreNotCalledDifferent(t *testing.T) {
	res, runs := again(t, compare.Defaults(), func(e *comparetest.Engine) { e.TTFT = comparetest.Native(1).TTFT })
	terminal, page := shown(t, res, runs)
	_, terminal, _ = strings.Cut(terminal, "\nafter compared with before, the baseline run\n")
	table, _, _ := strings.Cut(terminal, "p: Mann")
	if strings.Count(table, " no difference") < 10 || strings.Contains(table, "different") {
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
			if !strings.Contains(page, "no difference") || strings.Contains(x.Verdict, "times") {
				t.Errorf("%s", x.Verdict)
			}
		}
	}
}
