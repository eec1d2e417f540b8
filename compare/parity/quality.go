package parity

import (
	"math"
	"slices"

	"llmparity/internal/record"
)

// Quality is how well an engine predicts a given text, which it scored in windows.
type Quality struct {
	Text      string `json:"text"` // the file's path, builtin or quick
	SHA256    string `json:"sha256"`
	Of        int    `json:"windows_of_text"`
	Reference string `json:"reference,omitempty"` // label of the cell to compare with, or its own
	Tokens    int    `json:"tokens"`              // that were scored
	// Absent tokens have a log-probability that is too small for the engine to report: no figure has them, so
	// perplexity is too low.
	Absent  int      `json:"absent,omitempty"`
	Windows []Window `json:"windows"` // that were scored

	Compared int `json:"-"` // the record's number of the cell to compare with
	vocab    int // size of the vocabulary; 0: unknown
}

// Window is a part of the text. Its figures are means over its tokens; nil without one.
type Window struct {
	Number  int      `json:"window"` // from 1
	Attempt int      `json:"attempt"`
	Tokens  int      `json:"tokens"`
	NLL     *float64 `json:"nll,omitempty"` // negative log-likelihood, in nats
	// The fields below compare with the reference; nil if it scored other tokens here, or none.

	Paired int      `json:"paired,omitempty"`     // tokens whose log-probabilities both engines report
	Change *float64 `json:"nll_change,omitempty"` // by how much NLL is higher over these tokens
	// KL is the Kullback-Leibler divergence from the reference's distribution to this one's, in nats: of the tokens
	// that both report and of all others taken together, so the divergence of the whole distributions is at least this.
	KL   *float64 `json:"kl_at_least,omitempty"`
	Top1 *float64 `json:"top1_agreement,omitempty"` // share of tokens at which both predict the same one

	prompt []int
	scores []record.Score
}

// QualityOf collects what the engine of a cell scored, under any cell with the same start settings; nil: nothing. Of
// several texts, the last counts.
func QualityOf(run *record.Run, spec record.Cell) *Quality {
	var q *Quality
	for _, a := range run.Scorings {
		by, at := run.CellByID(a.Cell), a.Scoring.At()
		if len(a.Scores) == 0 || at.Number == 0 || by.Engine != spec.Engine || by.Setup != spec.Setup {
			continue
		}
		if q == nil || q.SHA256 != at.SHA256 {
			q = &Quality{Text: at.Text, SHA256: at.SHA256, Of: at.Of, Compared: a.Scoring.Reference,
				vocab: spec.Model.Vocab}
		}
		w := Window{Number: at.Number, Attempt: a.ID, Tokens: len(a.Scores), prompt: a.Scoring.PromptIDs,
			scores: a.Scores}
		present := 0
		w.NLL, present = meanOf(a.Scores, func(n int) float64 { return -a.Scores[n].LogProb })
		q.Tokens, q.Absent = q.Tokens+w.Tokens, q.Absent+w.Tokens-present
		q.Windows = append(q.Windows, w)
	}
	return q
}

// meanOf is the mean over the positions that have a value, and their number; nil if none has.
func meanOf(scores []record.Score, value func(n int) float64) (mean *float64, present int) {
	sum := 0.0
	for n := range scores {
		if v := value(n); !math.IsNaN(v) {
			sum += v
			present++
		}
	}
	if present == 0 {
		return nil, 0
	}
	return new(sum / float64(present)), present
}

// Whole reports whether every window was scored.
func (q *Quality) Whole() bool { return q != nil && len(q.Windows) == q.Of }

// Against fills in what compares each window with the same one of a reference.
func (q *Quality) Against(reference *Quality) {
	for i := range q.Windows {
		w := &q.Windows[i]
		w.Paired, w.Change, w.KL, w.Top1 = 0, nil, nil, nil
		at := slices.IndexFunc(reference.Windows, func(o Window) bool { return o.Number == w.Number && o.same(w) })
		if at < 0 {
			continue
		}
		was := reference.Windows[at].scores
		d, agreed := Distance{}, 0
		for n, y := range w.scores {
			agreed += one(was[n].Chosen() == y.Chosen())
			d.add(n, was[n], y)
		}
		w.KL, w.Top1 = new(d.KLMean/float64(w.Tokens)), new(float64(agreed)/float64(w.Tokens))
		w.Change, w.Paired = meanOf(w.scores, func(n int) float64 { return was[n].LogProb - w.scores[n].LogProb })
	}
}

// same reports whether two windows have the same tokens.
func (w Window) same(o *Window) bool {
	forced := func(a, b record.Score) bool { return a.Forced == b.Forced }
	return slices.Equal(w.prompt, o.prompt) && slices.EqualFunc(w.scores, o.scores, forced)
}

// Each returns a figure of each window that has it, and these windows.
func (q *Quality) Each(of func(Window) *float64) (values []float64, windows []Window) {
	for _, w := range q.Windows {
		if v := of(w); v != nil {
			values, windows = append(values, *v), append(windows, w)
		}
	}
	return values, windows
}
