package resolve

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"llmparity/compare/stats"
	"llmparity/internal/record"
)

// history has the durations of earlier launches by engine and model. It does not know how busy the machine was.
type history map[pastKey]*past

type pastKey struct{ engine, model string } // names in records

// past is the successful launches.
type past struct {
	around   []float64 // seconds of a launch outside the measure phase
	measured []measured
}

// measured is the duration of a measure phase with its computed prompt tokens and generated tokens.
type measured struct{ seconds, prompt, generated float64 }

// mostRuns limits how many earlier runs are read, the newest first.
const mostRuns = 12

// pastRuns reads the runs in a results folder. It ignores what it can't read.
func pastRuns(out string) history {
	h := history{}
	entries, _ := os.ReadDir(out) // no folder: no history
	type aged struct {
		dir string
		at  time.Time
	}
	var found []aged
	for _, e := range entries {
		dir := filepath.Join(out, e.Name())
		if info, err := os.Stat(filepath.Join(dir, "journal.jsonl")); err == nil && e.IsDir() {
			found = append(found, aged{dir, info.ModTime()})
		}
	}
	slices.SortFunc(found, func(a, b aged) int { return b.at.Compare(a.at) })
	for _, f := range found[:min(len(found), mostRuns)] {
		s, err := record.Scan(f.dir)
		if err != nil {
			continue
		}
		for _, c := range s.Cells {
			for _, a := range s.Commits(c.ID) {
				h.take(pastKey{c.Engine, c.Model.Name}, a)
			}
		}
	}
	return h
}

// take adds an attempt if it succeeded and measured something.
func (h history) take(key pastKey, a *record.Attempt) {
	span, ok := a.Phase(record.Measure)
	if !ok || a.Status != record.OK || a.Scoring != nil {
		return
	}
	m := measured{seconds: float64(span.EndNS-span.BeginNS) / 1e9}
	for _, q := range a.Measured() {
		m.generated += float64(len(q.Tokens))
		m.prompt += float64(max(max(len(q.PromptIDs), q.PromptTokens)-max(q.CachedTokens, 0), 0))
	}
	if m.generated == 0 || m.seconds <= 0 {
		return
	}
	p := h[key]
	if p == nil {
		p = &past{}
		h[key] = p
	}
	p.measured = append(p.measured, m)
	if a.OpenedBy == 0 {
		p.around = append(p.around, max(float64(a.EndNS-a.BeginNS)/1e9-m.seconds, 0))
	}
}

// of predicts the duration of attempts with the given launches, prompt tokens and generated tokens in total.
func (h history) of(key pastKey, launches, prompt, generated int) (seconds float64, known bool) {
	p := h[key]
	if p == nil || len(p.around) == 0 {
		return 0, false
	}
	tokens := promptShare*float64(prompt) + float64(generated)
	return float64(launches)*stats.Median(p.around) + tokens*p.perToken(), true
}

// promptShare is the time of a prompt token relative to a generated one. On CPUs it was 1/3 to 1/20.
const promptShare = 1.0 / 8

// perToken returns the seconds for a generated token.
func (p *past) perToken() float64 {
	var each []float64
	for _, m := range p.measured {
		each = append(each, m.seconds/(m.generated+promptShare*m.prompt))
	}
	return stats.Median(each)
}
