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
	"llmparity/internal/tiny/reference"
)

// Both engines score the built-in text as the reference implementation does.
func TestQualityOfTinyModel(t *testing.T) {
	t.Parallel()
	cmd := oneLaunch(t, "webllm, llamacpp", "--max-tokens", "2", "--quality", "builtin")
	well(t, cmd)
	dir := filepath.Join(cmd.Dir, "results", "latest")
	r := opened(t, dir)
	_, known := oracle(t, enginetest.Tiny(t, 1)[0].Model.Path)
	windows := r.Scorings[:4] // of the first engine
	nll := 0.0
	for _, w := range windows {
		f := engine.Forced{Prompt: w.Scoring.PromptIDs}
		for _, s := range w.Scores {
			f.IDs = append(f.IDs, s.Forced)
		}
		if len(f.Prompt) != 129 || len(f.IDs) != 127 {
			t.Fatalf("window of %d and %d tokens", len(f.Prompt), len(f.IDs))
		}
		nll += meanNLL(known, f) / float64(len(windows))
	}
	for _, c := range compare.Runs(r).Cells {
		if got := math.Log(c.Figure(figure.Perplexity).Center()); !c.Quality.Whole() || math.Abs(got-nll) > 1e-3*nll {
			t.Errorf("%s: %g nats per token, the reference has %g", c.Label, got, nll)
		}
		if kl := c.Figure(figure.KL); kl.Known() && !(kl.Center() < 1e-4) {
			t.Errorf("%s: KL divergence %g", c.Label, kl.Center())
		}
	}
	rows, err := csv.NewReader(strings.NewReader(readFile(t, filepath.Join(dir, "summary.csv")))).ReadAll()
	check(t, err)
	at := slices.Index(rows[0], "perplexity")
	if v, err := strconv.ParseFloat(rows[1][at], 64); err != nil || math.Abs(math.Log(v)-nll) > 1e-3*nll {
		t.Errorf("summary.csv: perplexity %s", rows[1][at])
	}
	mentions(t, details(t, cmd.Dir), "Quality", "Top-1 agreement and KL divergence are against llama.cpp")
}

// meanNLL is the reference's mean negative log-likelihood of a text.
func meanNLL(m *reference.Model, f engine.Forced) (sum float64) {
	for _, s := range thirdOpinion(m, f) {
		sum -= s.LogProb / float64(len(f.IDs))
	}
	return sum
}
