//go:build !race

package reports_test

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/recount"
	"llmparity/reports"
)

// reportAgain works a folder's report out again.
func reportAgain(t *testing.T, dir string) *compare.Result {
	t.Helper()
	run, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	res := compare.Runs(run)
	page := rendered(t, func(w io.Writer) error { return reports.HTML(w, res, run) })
	recount.Check(t, []byte(rendered(t, func(w io.Writer) error { return reports.JSON(w, res) })), page, dir)
	return res
}

// slowly are engines that take so long for a token that memory is read between them.
func slowly() []comparetest.Engine {
	a, b := comparetest.Measured(comparetest.Browser(7), comparetest.Page()), comparetest.Native(8)
	b.Token, b.Vary = 30*time.Millisecond, 0.1
	b.Failing = map[int]record.Class{3: record.DeviceLost}
	return []comparetest.Engine{a, b}
}

func TestTokensAreThoseOfTheRecord(t *testing.T) {
	for name, engines := range map[string]func() []comparetest.Engine{
		"slow": slowly,
		"one launch for all": func() []comparetest.Engine {
			a := comparetest.Measured(comparetest.Browser(7), comparetest.Page())
			a.Reused = true
			return []comparetest.Engine{a}
		},
		"too few, and no times": func() []comparetest.Engine {
			a, b := comparetest.Browser(2), comparetest.Native(3)
			b.Usage = func(u *record.Usage) { u.Spans = u.Spans[:1] }
			return []comparetest.Engine{a, b}
		},
	} {
		t.Run(name, func(t *testing.T) {
			reportAgain(t, comparetest.Write(t, t.TempDir(), "folder", engines()...))
		})
	}
}

// Of long launches some places are kept, and of their readings some.
func TestTokensOfLongLaunchesAreThoseOfTheRecord(t *testing.T) {
	res := reportAgain(t, comparetest.Long(t, t.TempDir(), 12_000, 6_000))
	lines := 0
	for _, c := range res.Cells {
		for _, l := range c.OverTokens.Lines {
			if len(l.Median) > 100 {
				lines++
			}
		}
	}
	if lines < 5 {
		t.Errorf("%d quantities over tokens, want both cells' RSS, and the page's processes and heap", lines)
	}
}

// prompted are engines with prompts of several lengths.
func prompted() []comparetest.Engine {
	var engines []comparetest.Engine
	for n, length := range []int{16, 64, 256} {
		for _, e := range []comparetest.Engine{comparetest.Measured(comparetest.Browser(4), comparetest.Page()),
			comparetest.Native(4)} {
			e.Cell.ID, e.Cell.PromptID, e.Cell.Prompt = 10*e.Cell.ID+n, n+1,
				fmt.Sprintf("a prompt of %d tokens", length)
			e.PromptIDs = comparetest.IDs(length)
			engines = append(engines, e)
		}
	}
	return engines
}

func TestTokensOverCellsAreThoseOfTheRecord(t *testing.T) {
	res := reportAgain(t, comparetest.Write(t, t.TempDir(), "folder", prompted()...))
	if len(res.Sweeps) != 2 || len(res.Sweeps[0].Rates) < 3 {
		t.Errorf("sweeps: %+v", res.Sweeps)
	}
}

// askedAgain are engines whose texts part at the seventh token, and that were asked about the text of the second.
func askedAgain() []comparetest.Engine {
	a, b := comparetest.Browser(2), comparetest.Native(2)
	a.IDs[6] = 511
	for n, e := range []*comparetest.Engine{&a, &b} {
		e.Scored = record.Scoring{Reference: b.Cell.ID, Attempt: 2, PromptIDs: b.PromptIDs, Top: 3}
		for i, id := range b.IDs {
			off := 0.01*float64(i%5) + 0.002*float64(n*i)
			s := record.Score{Position: i, Forced: id, LogProb: -0.5 - off,
				Top: []record.Candidate{{ID: id, LogProb: -0.5 - off},
					{ID: 511, LogProb: -0.9 - off/2}, {ID: 900 + n*(i%2), LogProb: -4.5}}}
			switch {
			case i == 6 && n == 0: // what was said when it ran freely
				s.Top[0], s.Top[1] = record.Candidate{ID: 511, LogProb: -0.5}, record.Candidate{ID: id, LogProb: -0.53}
				s.LogProb = -0.53
			case i == 20: // the text is none of the likeliest
				s.Top[0].ID, s.LogProb = 700, -7
			}
			e.Scores = append(e.Scores, s)
		}
	}
	return []comparetest.Engine{a, b}
}

func TestScoresAreThoseOfTheRecord(t *testing.T) {
	for name, change := range map[string]func(a, b *comparetest.Engine){
		"both":           func(a, b *comparetest.Engine) {},
		"one":            func(a, b *comparetest.Engine) { a.Scores = nil },
		"other prompts":  func(a, b *comparetest.Engine) { a.Scored.PromptIDs = []int{1} },
		"a near tie":     func(a, b *comparetest.Engine) { b.Scores[6].Top[1].LogProb = b.Scores[6].LogProb - 0.02 },
		"another text":   func(a, b *comparetest.Engine) { a.Scores[30].Forced, a.Scores[30].LogProb = 3, -9 },
		"another answer": func(a, b *comparetest.Engine) { a.Scores[2].Forced, a.Scores[2].LogProb = 3, -9 },
	} {
		t.Run(name, func(t *testing.T) {
			engines := askedAgain()
			change(&engines[0], &engines[1])
			res := reportAgain(t, comparetest.Write(t, t.TempDir(), "folder", engines...))
			if name == "both" && (res.Parity[0].Forced == nil || len(res.Parity[0].Forced.Differing) != 1 ||
				res.Parity[0].First.MarginA == nil) {
				t.Errorf("%+v", res.Parity[0])
			}
		})
	}
}

// A report that says something else of tokens than the record is found out.
func TestWhatIsWrongOfTokensIsFound(t *testing.T) {
	folder := func(name string, engines []comparetest.Engine) *recounted {
		return workedOut(t, comparetest.Write(t, t.TempDir(), name, engines...), compare.Defaults())
	}
	lengths, slow, scored := folder("lengths", prompted()), folder("slow", slowly()), folder("scored", askedAgain())
	rate := func(r *compare.Result, cell int, name string) *compare.Rate {
		rates := r.Cells[cell].Growth.Rates
		return &rates[slices.IndexFunc(rates, func(r compare.Rate) bool { return r.Name == name })]
	}
	for _, wrong := range []struct {
		in     *recounted
		says   string
		change func(*compare.Result)
	}{
		{slow, "p90 of inter_token_latency",
			func(r *compare.Result) { r.Cells[0].Distributions[1].Quantiles[1].Value *= 1.0001 }},
		{slow, "by launch, upper end", func(
			r *compare.Result) {
			r.Cells[1].Distributions[0].Quantiles[0].ByLaunch.Interval.Hi *= 1.0001
		}},
		{slow, "how latency is spread", func(
			r *compare.Result) {
			r.Cells[0].Distributions = r.Cells[0].Distributions[:2]
		}},
		{slow, "at token 9, median", func(
			r *compare.Result) {
			r.Cells[1].OverTokens.Lines[1].Median[9].Median += 0.00001
		}},
		{slow, "at token 9, lower end", func(
			r *compare.Result) {
			*r.Cells[1].OverTokens.Lines[1].Median[9].Lo -= 0.00001
		}},
		{slow, "at token 0: it is in the report", func(r *compare.Result) {
			r.Cells[1].OverTokens.Lines[1].Median = r.Cells[1].OverTokens.Lines[1].Median[1:]
		}},
		{slow, "total_pss over tokens", func(
			r *compare.Result) {
			r.Cells[1].OverTokens.Lines = r.Cells[1].OverTokens.Lines[1:]
		}},
		{slow, "growth of rss_sum, median", func(r *compare.Result) { *rate(r, 1, "rss_sum").Median *= 1.000001 }},
		{slow, "growth of kv_reserved, launch",
			func(r *compare.Result) { rate(r, 0, "kv_reserved").Values[2].Value += 0.001 }},
		{slow, "bytes a token by theory", func(r *compare.Result) { r.Cells[0].Growth.Theory.Bytes *= 2 }},
		{slow, "of theory", func(r *compare.Result) { *rate(r, 1, "rss_sum").OfTheory *= 1.001 }},
		{lengths, "peak_pss over input_len, slope", func(r *compare.Result) {
			rates := r.Sweeps[0].Rates
			*rates[slices.IndexFunc(rates,
				func(r compare.Rate) bool { return r.Name == figure.PeakPSS })].Median += 0.01
		}},
		{lengths, "kv_reserved over input_len, upper end", func(r *compare.Result) {
			rates := r.Sweeps[0].Rates
			rates[slices.IndexFunc(rates,
				func(r compare.Rate) bool { return r.Name == figure.KVReserved })].Interval.Hi += 0.01
		}},
		{scored, "places where both say the same", func(r *compare.Result) { r.Parity[0].Forced.Agreed++ }},
		{scored, "the mean distance", func(r *compare.Result) { r.Parity[0].Forced.Distance.Mean *= 1.001 }},
		{scored, "the mean divergence", func(r *compare.Result) { r.Parity[0].Forced.Distance.KLMean *= 1.001 }},
		{scored, "the margin of the first there",
			func(r *compare.Result) { r.Parity[0].Forced.Differing[0].MarginA.Nats += 0.001 }},
		{scored, "the margin of side 2 where they part",
			func(r *compare.Result) { r.Parity[0].First.MarginB.Nats += 0.001 }},
		{scored, "rounding is enough", func(
			r *compare.Result) {
			r.Parity[0].First.Rounding = !r.Parity[0].First.Rounding
		}},
	} {
		wrong.in.finds(t, wrong.says, wrong.change, false)
	}
}
