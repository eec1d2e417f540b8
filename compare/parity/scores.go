package parity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare/explain"
	"llmparity/internal/record"
)

// Scored has an engine's scores for a text.
type Scored struct {
	prompt, text []int
	at           []record.Score
	Reference    int // the record's number of the cell whose text it is
}

// ScoredBy finds the last text that a cell scored completely; nil if there is none.
func ScoredBy(run *record.Run, cell int) *Scored {
	for _, a := range slices.Backward(run.Scorings) {
		if a.Cell != cell || len(a.Scores) == 0 || a.Scoring.Window != nil || a.Scoring.Checks() {
			continue
		}
		s := &Scored{prompt: a.Scoring.PromptIDs, at: a.Scores, Reference: a.Scoring.Reference}
		for _, sc := range a.Scores {
			s.text = append(s.text, sc.Forced)
		}
		return s
	}
	return nil
}

// behind is the score of the position after a prompt and some tokens; false if the engine did not score it.
func (s *Scored) behind(prompt, tokens []int) (record.Score, bool) {
	if s == nil || len(tokens) >= len(s.at) || !slices.Equal(prompt, s.prompt) || agreed(s.text, tokens) < len(tokens) {
		return record.Score{}, false
	}
	return s.at[len(tokens)], true
}

// Margin is the gap at a position: the log-probability of the most likely token minus that of the next, in nats.
type Margin struct {
	Nats   float64 `json:"nats"`
	ID     int     `json:"id"`      // the likeliest
	NextID int     `json:"next_id"` // the next one

	// At the first difference of two outputs: the gap between the most likely token and the less likely of the two that
	// were generated, which need not be the top two, and the id of that token. If the engine did not report it, the gap
	// is at least that to the last token that it did report.
	turn    float64
	lower   int
	atLeast bool
}

func marginOf(s record.Score) *Margin {
	return &Margin{Nats: s.Margin(), ID: s.Top[0].ID, NextID: s.Top[1].ID}
}

// tieOf is the margin at the first difference of two outputs, for the tokens that were generated there.
func tieOf(s record.Score, said ...int) *Margin {
	m := marginOf(s)
	m.turn, m.lower = m.Nats, m.NextID
	for _, id := range said {
		p, known := s.LogProbOf(id)
		if !known {
			p = s.Top[len(s.Top)-1].LogProb
		}
		if apart := s.Top[0].LogProb - p; apart > m.turn {
			m.turn, m.lower, m.atLeast = apart, id, !known
		}
	}
	return m
}

// Forced compares what two engines predict at every position of one text, so that an earlier difference does not change
// later positions. The text is the output of a third cell, or of one of the two.
type Forced struct {
	Of        string     `json:"text_of"` // the label of the cell whose text it is
	Positions int        `json:"positions"`
	Agreed    int        `json:"agreed"` // places at which both would have said the same
	Share     float64    `json:"share"`
	OwnA      int        `json:"says_the_text_a"` // places at which A would have said what stands there
	OwnB      int        `json:"says_the_text_b"`
	Differing []Differed `json:"differing"` // places at which they would not have
	Distance  *Distance  `json:"distance,omitempty"`
}

// Differed is a position of the text at which two engines predict different tokens.
type Differed struct {
	Index   int    `json:"index"` // from 0
	MarginA Margin `json:"margin_a"`
	MarginB Margin `json:"margin_b"`
}

// Distance is how far apart the log-probabilities of two engines are, over the tokens that both report at each
// position.
type Distance struct {
	Compared  int     `json:"compared"` // log-probabilities that both sides have
	Max       float64 `json:"max_abs"`
	Mean      float64 `json:"mean_abs"`
	MaxAt     int     `json:"max_at"`         // its place, from 0
	MaxLikely float64 `json:"max_abs_likely"` // of tokens that either side gives at least one percent
	// KL is a lower bound of the Kullback-Leibler divergence of B from A in nats. It treats all tokens that are not
	// reported by both as one, and the whole distributions can only be further apart.
	KLMean float64 `json:"kl_mean_at_least"`
	KLMax  float64 `json:"kl_max_at_least"`
}

// forced compares the scores of two cells, as far as they scored the same text; nil if they did not.
func forced(left, right Party) *Forced {
	a, b := left.Scored, right.Scored
	if a == nil || b == nil || !slices.Equal(a.prompt, b.prompt) {
		return nil
	}
	// The position after the common beginning of both texts has the same tokens before it, so it counts too.
	n := min(agreed(a.text, b.text)+1, len(a.at), len(b.at))
	f := &Forced{Of: textOf(left, right), Positions: n, Differing: []Differed{}}
	d := &Distance{}
	for at := range n {
		x, y := a.at[at], b.at[at]
		f.OwnA += one(x.Chosen() == x.Forced)
		f.OwnB += one(y.Chosen() == y.Forced)
		if x.Chosen() == y.Chosen() {
			f.Agreed++
		} else {
			f.Differing = append(f.Differing, Differed{at, *marginOf(x), *marginOf(y)})
		}
		d.MaxLikely = max(d.MaxLikely, d.add(at, x, y))
	}
	f.Share = float64(f.Agreed) / float64(n)
	if d.Compared > 0 {
		d.Mean /= float64(d.Compared)
		d.KLMean /= float64(n)
		f.Distance = d
	}
	return f
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// textOf names the cell whose text was scored. Cells of two runs may each have scored the text of their own run.
func textOf(a, b Party) string {
	if a.TextOf == b.TextOf || slices.Equal(a.Scored.text, b.Scored.text) {
		return a.TextOf
	}
	return a.TextOf + " and " + b.TextOf
}

// likely is the log-probability of one percent.
var likely = math.Log(0.01)

// add adds a position and returns the largest difference over its likely tokens.
func (d *Distance) add(at int, x, y record.Score) (farthest float64) {
	kl, restX, restY := 0.0, 1.0, 1.0
	ids := append(slices.Clone(x.Top), y.Top...)
	if x.Forced == y.Forced {
		ids = append(ids, record.Candidate{ID: x.Forced})
	}
	seen := map[int]bool{}
	for _, c := range ids {
		p, known := x.LogProbOf(c.ID)
		q, too := y.LogProbOf(c.ID)
		if !known || !too || seen[c.ID] {
			continue
		}
		seen[c.ID] = true
		apart := math.Abs(p - q)
		d.Compared++
		d.Mean += apart
		if apart > d.Max {
			d.Max, d.MaxAt = apart, at
		}
		if max(p, q) >= likely {
			farthest = max(farthest, apart)
		}
		kl += math.Exp(p) * (p - q)
		restX, restY = restX-math.Exp(p), restY-math.Exp(q)
	}
	// The rest of both is a difference of numbers near 1, which were written with six digits.
	if restX > resolution {
		kl += restX * math.Log(restX/max(restY, resolution))
	}
	kl = max(kl, 0)
	d.KLMean += kl
	d.KLMax = max(d.KLMax, kl)
	return farthest
}

// resolution is that of log-probabilities in the record.
const resolution = 1e-6

// unforced says why two cells did not score one text.
func unforced(a, b Party) string {
	unasked := func(s Party) string {
		if s.NoTokenIDs {
			return fmt.Sprintf(explain.ForcedNoIDs, s.Label)
		}
		return fmt.Sprintf(explain.ForcedNone, s.Label)
	}
	switch x, y := a.Scored, b.Scored; {
	case x == nil && y == nil && !a.NoTokenIDs && !b.NoTokenIDs:
		return explain.ForcedNeither
	case x == nil && y == nil:
		return unasked(a) + ", " + unasked(b)
	case x == nil:
		return unasked(a)
	case y == nil:
		return unasked(b)
	}
	return explain.ForcedPrompts
}

// margins sets the gaps at the first difference of two outputs, if an engine scored that position.
func (d *Divergence) margins(p *Parity, a, b *Scored) {
	if p.SamePrompt != nil && !*p.SamePrompt {
		d.Unknown = explain.TiePrompts
		return
	}
	before := p.IDsA[:d.Index]
	if s, ok := a.behind(p.PromptA, before); ok {
		d.MarginA = tieOf(s, d.IDA, d.IDB)
	}
	if s, ok := b.behind(p.PromptB, before); ok {
		d.MarginB = tieOf(s, d.IDA, d.IDB)
	}
	switch {
	case d.MarginA != nil || d.MarginB != nil:
	case a == nil && b == nil:
		d.Unknown = explain.TieUnscored
	default:
		d.Unknown = explain.TieOtherTexts
	}
}

// words says what the margins at a divergence mean; empty if none is known.
func (d *Divergence) words(a, b Party, p *Parity) string {
	if d.MarginA == nil && d.MarginB == nil {
		return ""
	}
	sides := []struct {
		label string
		m     *Margin
		said  int
	}{{a.Label, d.MarginA, d.IDA}, {b.Label, d.MarginB, d.IDB}}
	var apart []string
	again, lower := "", ""
	for _, side := range sides {
		m := side.m
		if m == nil {
			continue
		}
		apart = append(apart, fmt.Sprintf(explain.TieFor, Nats(m.Nats), side.label))
		if m.ID != side.said {
			again += fmt.Sprintf(explain.TieAgain, side.label, m.ID)
		}
		if m.turn > m.Nats {
			least := ""
			if m.atLeast {
				least = explain.TieAtLeast
			}
			lower += fmt.Sprintf(explain.TieBelow, m.lower, least, Nats(m.turn), side.label)
		}
	}
	widest, _ := d.widest()
	t := toleranceOf(a, b)
	text := fmt.Sprintf(explain.TieApart, strings.Join(apart, " and ")) + again + lower
	if widest > 2*t.Nats { // two logits that move towards each other
		return text + fmt.Sprintf(explain.TieTooWide, t.explains(), Nats(2*t.Nats)) +
			unmerged(len(p.PromptA), a, b)
	}
	d.Rounding = true
	return text + fmt.Sprintf(explain.TieExplained, t.explains(), Nats(2*t.Nats))
}

// unmerged names the fault of kernels that merge the chunks of a long prompt; empty if it does not apply.
func unmerged(prompt int, sides ...Party) (words string) {
	for _, s := range sides {
		if s.Chunk > 0 && prompt > s.Chunk {
			words += fmt.Sprintf(explain.TieKernel, s.Label, s.Chunk)
		}
	}
	return words
}

// ties counts the pairs that differ at a tie that rounding explains.
func ties(pairs []Parity) string {
	parted, rounding, unknown := 0, 0, 0
	for _, p := range pairs {
		if p.State() != Parting {
			continue
		}
		parted++
		if p.First == nil { // by text
			unknown++
			continue
		}
		rounding += one(p.First.Rounding)
		unknown += one(p.First.Words == "")
	}
	switch {
	case parted == 0 || unknown == parted:
		return ""
	case unknown > 0:
		return fmt.Sprintf(explain.TiesSomeKnown, parted, rounding, unknown)
	}
	return fmt.Sprintf(explain.TiesOfPairs, parted, rounding)
}

// Nats writes a difference of logarithms with three digits after the point, or as many as show it.
func Nats(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 0.0005:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.*f", int(math.Ceil(-math.Log10(v))), v)
}
