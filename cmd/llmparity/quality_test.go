package main

import (
	"encoding/csv"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/figure"
)

// Both engines score a text as the reference implementation does.
func TestQualityOfTinyModel(t *testing.T) {
	browserTest(t)
	t.Parallel()
	text := put(t, t.TempDir(), "text.txt", readFile(t, "../../internal/bench/resolve/essays.txt")[:2500])
	cmd := oneLaunch(t, "webllm, llamacpp", "--max-tokens", "2", "--quality", text)
	well(t, cmd)
	dir := filepath.Join(cmd.Dir, "results", "latest")
	r := opened(t, dir)
	_, known := oracle(t, enginetest.Tiny(t, 1)[0].Model.Path)
	nll, absent, windows := map[string]float64{}, map[string]int{}, map[string]int{}
	for _, w := range r.Scorings {
		if w.Scoring.Checks() {
			continue
		}
		f := engine.Forced{Prompt: w.Scoring.PromptIDs}
		for _, s := range w.Scores {
			f.IDs = append(f.IDs, s.Forced)
		}
		if len(f.Prompt) != 129 || len(f.IDs) != 127 {
			t.Fatalf("window of %d and %d tokens", len(f.Prompt), len(f.IDs))
		}
		name, sum, present := r.CellByID(w.Cell).Engine, 0.0, 0
		for i, s := range thirdOpinion(known, f) { // where the engine has a value
			if math.IsNaN(w.Scores[i].LogProb) {
				absent[name]++
				continue
			}
			sum -= s.LogProb
			present++
		}
		nll[name] += sum / float64(present)
		windows[name]++
	}
	res := compare.Runs(r)
	for _, c := range res.Cells {
		name := c.Spec.Engine
		want, ppl := nll[name]/float64(windows[name]), c.Figure(figure.Perplexity)
		if got := math.Log(ppl.Center()); !c.Quality.Whole() || windows[name] < 4 || math.Abs(got-want) > 1e-3*want {
			t.Errorf("%s: %g nats per token, the reference has %g", c.Label, got, want)
		}
		if kl := c.Figure(figure.KL); kl.Known() && !(kl.Center() < 1e-4) {
			t.Errorf("%s: KL divergence %g", c.Label, kl.Center())
		}
		meaningless := ppl.Center() > float64(c.Spec.Model.Vocab)
		if c.Quality.Absent != absent[name] || ppl.Meaningless != meaningless {
			t.Errorf("%s: %d of %d absent, want %d; %g: %q", c.Label, c.Quality.Absent, c.Quality.Tokens, absent[name],
				ppl.Center(), ppl.Note)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(readFile(t, filepath.Join(dir, "summary.csv")))).ReadAll()
	check(t, err)
	at := slices.Index(rows[0], "perplexity")
	want := nll["webllm"] / float64(windows["webllm"])
	if v, err := strconv.ParseFloat(rows[1][at], 64); err != nil || math.Abs(math.Log(v)-want) > 1e-3*want {
		t.Errorf("summary.csv: perplexity %s", rows[1][at])
	}
	mentions(t, details(t, cmd.Dir), "All other figures are against llama.cpp")
}
