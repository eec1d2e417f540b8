package resolve

import (
	"math"
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
		for id := range s.Cells() {
			c, _ := s.Cell(id)
			for _, a := range s.Commits(id) {
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
	perPrompt, perGenerated := p.perToken()
	return float64(launches)*stats.Median(p.around) + float64(prompt)*perPrompt + float64(generated)*perGenerated, true
}

// promptShare is the time of a prompt token relative to a generated one, if earlier runs are too similar to tell. On
// CPUs it was 1/3 to 1/20.
const promptShare = 1.0 / 8

// perToken returns the seconds for a prompt token and for a generated token, by least squares of relative errors.
func (p *past) perToken() (prompt, generated float64) {
	var pp, pg, gg, p1, g1 float64 // sums of products; durations are scaled to 1
	low, high := math.Inf(1), 0.0
	for _, m := range p.measured {
		x, y := m.prompt/m.seconds, m.generated/m.seconds
		pp, pg, gg, p1, g1 = pp+x*x, pg+x*y, gg+y*y, p1+x, g1+y
		low, high = min(low, m.prompt/m.generated), max(high, m.prompt/m.generated)
	}
	if det := pp*gg - pg*pg; high > 2*low && det > 0 {
		prompt, generated = (p1*gg-g1*pg)/det, (g1*pp-p1*pg)/det
		switch {
		case prompt < 0:
			return 0, g1 / gg
		case generated < 0:
			return p1 / pp, 0
		}
		return prompt, generated
	}
	var each []float64
	for _, m := range p.measured {
		each = append(each, m.seconds/(m.generated+promptShare*m.prompt))
	}
	generated = stats.Median(each)
	return promptShare * generated, generated
}
