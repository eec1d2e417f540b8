//go:build slow

package main

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"llmparity/compare"
	"llmparity/internal/host/cache"
)

// recomputed is the output of scripts/recompute.
type recomputed struct {
	Cells map[int]map[string]struct {
		Values   []float64
		Median   float64
		Interval *struct{ Lo, Hi, Confidence float64 }
	}
	// Ratios are by the numbers of both cells; an end of an interval lies between two values.
	Ratios map[string]map[string]struct {
		Ratio  float64
		Lo, Hi [2]float64
	}
}

// pandas recomputes the headline figures of a run's folder.
func pandas(t *testing.T, dir string) recomputed {
	t.Helper()
	scripts := filepath.Join("..", "..", "scripts", "recompute")
	text := readFile(t, filepath.Join(scripts, "requirements.txt"))
	python := filepath.Join(cache.Dir(os.Getenv), "python", fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12], "bin",
		"python")
	if !there(python) {
		t.Fatalf("there is no %s: run `scripts/setup pandas`", python)
	}
	cmd := exec.Command(python, "-B", filepath.Join(scripts, "recompute.py"), dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	check(t, err)
	return decoded[recomputed](t, string(out))
}

// differences lists where a result differs from what was recomputed, and counts the figures.
func (r recomputed) differences(res *compare.Result) (out []string, compared int) {
	near := func(what string, got, want float64) {
		compared++
		if !(math.Abs(got-want) <= 2e-6*max(1, math.Abs(want))) { // figures have six decimals
			out = append(out, fmt.Sprintf("%s: %v, recomputed %v", what, got, want))
		}
	}
	between := func(what string, got float64, want [2]float64) {
		compared++
		if got < want[0]-2e-6*max(1, want[0]) || got > want[1]+2e-6*max(1, want[1]) {
			out = append(out, fmt.Sprintf("%s: %v, recomputed %v to %v", what, got, want[0], want[1]))
		}
	}
	for _, c := range res.Cells {
		for name, want := range r.Cells[c.Spec.ID] {
			f, what := c.Figure(name), c.Label+", "+name
			near(what+", launches", float64(f.N), float64(len(want.Values)))
			near(what+", median", f.Center(), want.Median)
			for k, v := range want.Values[:min(f.N, len(want.Values))] {
				near(fmt.Sprintf("%s, launch %d", what, f.Values[k].Attempt), f.Values[k].Value, v)
			}
			if f.Interval == nil || want.Interval == nil {
				if f.Interval != nil || want.Interval != nil {
					out = append(out, fmt.Sprintf("%s: interval %v, recomputed %v", what, f.Interval, want.Interval))
				}
				continue
			}
			near(what+", lower end", f.Interval.Lo, want.Interval.Lo)
			near(what+", upper end", f.Interval.Hi, want.Interval.Hi)
			near(what+", confidence", f.Interval.Confidence, want.Interval.Confidence)
		}
	}
	for _, c := range res.Comparisons {
		all := r.Ratios[fmt.Sprintf("%d/%d", res.Cells[c.A].Spec.ID, res.Cells[c.B].Spec.ID)]
		for _, x := range c.Ratios {
			want, ok := all[x.Figure]
			if !ok || x.Ratio == nil || x.Interval == nil {
				out = append(out, fmt.Sprintf("%s: no ratio, or no interval, or not recomputed", x.Figure))
				continue
			}
			near(x.Figure+", ratio", *x.Ratio, want.Ratio)
			between(x.Figure+", lower end of the ratio", x.Interval.Lo, want.Lo)
			between(x.Figure+", upper end of the ratio", x.Interval.Hi, want.Hi)
		}
	}
	return out, compared
}

// Headline figures and intervals of a real run match what pandas computes from its CSV files.
func TestPandasRecomputesHeadlineFigures(t *testing.T) {
	run := program(t, "run", "--repetitions", "7", "--max-tokens", "16")
	well(t, run)
	o, r := compare.Defaults(), recorded(t, run.Dir)
	o.AllowDifferent = true
	res, again := compare.With(o, r), pandas(t, r.Dir)
	all, compared := again.differences(res)
	for _, d := range all {
		t.Error(d)
	}
	// Of two cells six figures of seven launches each, and ratios of all but the increase: one engine has no process
	// before the load.
	if want := 2*6*(7+5) + 5*3; compared != want {
		t.Errorf("%d numbers were compared, want %d", compared, want)
	}
	// The comparison can fail.
	res.Cells[0].Figures[0].Interval.Hi *= 1.0001
	if all, _ := again.differences(res); len(all) != 1 {
		t.Errorf("one altered interval: %q", all)
	}
}
