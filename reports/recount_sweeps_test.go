//go:build !race

package reports_test

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/recount"
	"llmparity/reports"
)

// axes are cells that differ in one thing from the first, each in another, and some in two.
func axes() []comparetest.Engine {
	var out []comparetest.Engine
	add := func(change func(*comparetest.Engine)) {
		e := comparetest.Native(4)
		e.Info.Policy = map[string]string{"kv_dtype": "f16", "weights_dtype": "f32", "context": "256", "threads": "1"}
		change(&e)
		e.Cell.ID = len(out) + 1
		out = append(out, e)
	}
	setup := func(context int, kv string) func(*comparetest.Engine) {
		return func(e *comparetest.Engine) {
			e.Cell.Model.Context, e.Info.Policy["context"], e.Info.Policy["kv_dtype"] = context, fmt.Sprint(context), kv
			e.Processes[0].Loaded += float64(context) / 1024
		}
	}
	add(func(*comparetest.Engine) {})
	add(setup(512, "f16"))
	add(setup(2048, "f16"))
	add(setup(512, "q8_0"))
	add(setup(256, "f32"))
	add(func(e *comparetest.Engine) {
		e.Cell.MaxTokens, e.IDs = 32, e.IDs[:32]
	})
	add(func(e *comparetest.Engine) { e.Info.Policy["threads"], e.Cell.MaxTokens = "2", 96 }) // alone
	add(func(e *comparetest.Engine) { *e = comparetest.Loaded(*e, 0, 2, 20) })
	add(func(e *comparetest.Engine) { *e = comparetest.Loaded(*e, 0, 3, 30) })
	add(func(e *comparetest.Engine) {
		*e = comparetest.Loaded(*e, 0, 4, 8)
		e.Cell.Traffic.Loop = record.Batch
	})
	return out
}

func TestSweepsAreThoseOfTheRecord(t *testing.T) {
	res := reportAgain(t, comparetest.Write(t, t.TempDir(), "folder", axes()...))
	var got []string
	for _, s := range res.Sweeps {
		got = append(got, s.Axis)
	}
	want := []string{"context", "output_len", "concurrency", "batch_size", "kv_cache_dtype", "kv_cache_dtype"}
	if !slices.Equal(slices.Compact(got), slices.Compact(want)) {
		t.Errorf("sweeps over %q, want %q", got, want)
	}
}

// Of several runs cells of one machine are seen together.
func TestSweepsOfSeveralRunsAreThoseOfTheRecords(t *testing.T) {
	var dirs []string
	var runs []*record.Run
	for n, e := range axes()[:3] {
		dirs = append(dirs, comparetest.Write(t, t.TempDir(), fmt.Sprint("context", n), e))
		run, err := record.Open(dirs[n])
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	res := compare.Runs(runs...)
	if len(res.Sweeps) != 1 || len(res.Sweeps[0].Rates) == 0 {
		t.Errorf("%+v", res.Sweeps)
	}
	page := rendered(t, func(w io.Writer) error { return reports.HTML(w, res, runs...) })
	recount.Check(t, []byte(rendered(t, func(w io.Writer) error { return reports.JSON(w, res) })), page, dirs...)
}

func TestWrongSweepsAreFound(t *testing.T) {
	folder := workedOut(t, comparetest.Write(t, t.TempDir(), "folder", prompted()...), compare.Defaults())
	rate := func(r *compare.Result, name string) *compare.Rate {
		rates := r.Sweeps[0].Rates
		return &rates[slices.IndexFunc(rates, func(r compare.Rate) bool { return r.Name == name })]
	}
	growth := func(r *compare.Result) *compare.Rate {
		rates := r.Cells[0].Growth.Rates
		return &rates[slices.IndexFunc(rates, func(r compare.Rate) bool { return r.Fit != nil })]
	}
	for says, change := range map[string]func(*compare.Result){
		"the report's sweeps are": func(r *compare.Result) { r.Sweeps = r.Sweeps[:1] },
		"and found again":         func(r *compare.Result) { r.Sweeps[0].Cells = []int{0, 2, 5} },
		"found again [\"input_len[] of cells [0 2 4] at [16 6": func(r *compare.Result) { r.Sweeps[0].At[1] = 65 },
		"peak:gpu-process over input_len, slope": func(
			r *compare.Result) {
			*rate(r, "peak:gpu-process").Median += 0.01
		},
		"peak:renderer over input_len, lower end": func(
			r *compare.Result) {
			rate(r, "peak:renderer").Interval.Lo += 0.01
		},
		"peak_pss over input_len: point 2": func(
			r *compare.Result) {
			rate(r, figure.PeakPSS).Points[1].MiB += 0.001
		},
		"peak_rss_sum over input_len, where the line begins": func(
			r *compare.Result) {
			rate(r, figure.PeakRSS).Fit.From.MiB += 0.001
		},
		"peak_rss_sum over input_len, where theory's line": func(
			r *compare.Result) {
			rate(r, figure.PeakRSS).Fit.Theory.MiB += 0.001
		},
		"peak_pss over input_len: the verdict is": func(
			r *compare.Result) {
			rate(r, figure.PeakPSS).Verdict = "it shrinks while tokens come"
		},
		"settled_pss over input_len: the verdicts are": func(
			r *compare.Result) {
			r.Sweeps[0].Verdict[2] = "peak total PSS: 9 bytes/token: no growth shows"
		},
		"peak_uss over input_len: a line": func(
			r *compare.Result) {
			rate(r, figure.PeakPSS).Name = "peak_uss"
		},
		", where the line ends": func(
			r *compare.Result) {
			growth(r).Fit.To.MiB += 0.001
		},
		": the verdict is": func(
			r *compare.Result) {
			growth(r).Verdict = "it grows"
		},
		"verdicts on growth": func(
			r *compare.Result) {
			r.Cells[0].Growth.Verdict = nil
		},
	} {
		folder.finds(t, says, change, false)
	}
}
