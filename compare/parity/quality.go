package parity

import (
	"math"
	"slices"

	"llmparity/internal/record"
)

// Quality is how well an engine predicts a given text, which it scored in windows.
type Quality struct {
	Text      string   `json:"text"` // the file's path, or builtin
	SHA256    string   `json:"sha256"`
	Of        int      `json:"windows_of_text"`
	Reference string   `json:"reference,omitempty"` // label of the cell that it is compared with; its own: the reference
	Windows   []Window `json:"windows"`             // that were scored

	Compared int `json:"-"` // the record's number of the cell to compare with
}

// Window is a part of the text. Its figures are means over its tokens.
type Window struct {
	Number  int     `json:"window"` // from 1
	Attempt int     `json:"attempt"`
	Tokens  int     `json:"tokens"`
	NLL     float64 `json:"nll"` // negative log-likelihood, in nats
	// Against the reference; nil: it scored other tokens here, or nothing. KL is the Kullback-Leibler divergence from
	// the reference's distribution to this one's, in nats: of the tokens that both report and of all others taken
	// together, so the divergence of the whole distributions is at least this.
	KL   *float64 `json:"kl_at_least,omitempty"`
	Top1 *float64 `json:"top1_agreement,omitempty"` // share of tokens at which both predict the same one

	Was    float64 `json:"-"` // the reference's NLL
	prompt []int
	scores []record.Score
}

// least stands for a log-probability that is too small for the engine to report.
var least = math.Log(math.SmallestNonzeroFloat32)

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
			q = &Quality{Text: at.Text, SHA256: at.SHA256, Of: at.Of, Compared: a.Scoring.Reference}
		}
		w := Window{Number: at.Number, Attempt: a.ID, Tokens: len(a.Scores), prompt: a.Scoring.PromptIDs,
			scores: a.Scores}
		for _, s := range a.Scores {
			if math.IsNaN(s.LogProb) {
				s.LogProb = least
			}
			w.NLL -= s.LogProb / float64(w.Tokens)
		}
		q.Windows = append(q.Windows, w)
	}
	return q
}

// Whole reports whether every window was scored.
func (q *Quality) Whole() bool { return q != nil && len(q.Windows) == q.Of }

// Against fills in what compares each window with the same one of a reference.
func (q *Quality) Against(reference *Quality) {
	for i := range q.Windows {
		w := &q.Windows[i]
		at := slices.IndexFunc(reference.Windows, func(o Window) bool { return o.Number == w.Number && o.same(w) })
		if at < 0 {
			continue
		}
		d, agreed := Distance{}, 0
		for n, y := range w.scores {
			x := reference.Windows[at].scores[n]
			agreed += one(x.Chosen() == y.Chosen())
			d.add(n, x, y)
		}
		w.Was = reference.Windows[at].NLL
		w.KL, w.Top1 = new(d.KLMean/float64(w.Tokens)), new(float64(agreed)/float64(w.Tokens))
	}
}

// same reports whether two windows have the same tokens.
func (w Window) same(o *Window) bool {
	forced := func(a, b record.Score) bool { return a.Forced == b.Forced }
	return slices.Equal(w.prompt, o.prompt) && slices.EqualFunc(w.scores, o.scores, forced)
}

// Each returns a figure of each window; nil if one is unknown.
func (q *Quality) Each(of func(Window) *float64) (out []float64) {
	for _, w := range q.Windows {
		v := of(w)
		if v == nil {
			return nil
		}
		out = append(out, *v)
	}
	return out
}
