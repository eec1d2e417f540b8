package parity

import (
	"fmt"
	"math"
	"slices"

	"llmparity/compare/explain"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
)

// Checked has the scores of a cell's engine, or of the reference implementation, for the score check.
type Checked struct {
	from, asPrompt int   // where scoring begins, and how many positions were computed as a prompt
	ids            []int // the whole text
	at             []record.Score
	Arithmetic     []rounding.Arithmetic
	Anchor         *record.Anchor // nil: an engine scored it
	Failed         string         // why there are no scores; empty: there are
}

// CheckedBy finds the score check of a cell's engine, of any cell with the same start settings; nil if there is none.
func CheckedBy(run *record.Run, spec record.Cell) *Checked {
	for _, a := range slices.Backward(run.Scorings) {
		by := run.CellByID(a.Cell)
		if a.Scoring.Checks() && !a.Scoring.Anchored() && by.Engine == spec.Engine && by.Setup == spec.Setup {
			return newChecked(a)
		}
	}
	return nil
}

// AnchorOf finds the reference implementation's scores for a cell's weights, those beside cells with the same start
// settings first: they have yardsticks for what these compute in. It returns nil if there are none.
func AnchorOf(run *record.Run, spec record.Cell) (anchor *Checked) {
	for _, a := range slices.Backward(run.Scorings) {
		if !a.Scoring.Anchored() || a.Scoring.Check.Anchor.SHA256 != spec.Model.Values() || len(a.Scores) == 0 {
			continue
		}
		if run.CellByID(a.Cell).Setup == spec.Setup {
			return newChecked(a)
		}
		if anchor == nil {
			anchor = newChecked(a)
		}
	}
	return anchor
}

func newChecked(a *record.Attempt) *Checked {
	check := a.Scoring.Check
	c := &Checked{from: len(a.Scoring.PromptIDs), asPrompt: check.AsPrompt, ids: check.IDs, at: a.Scores,
		Anchor: check.Anchor}
	for _, name := range check.Arithmetic {
		c.Arithmetic = append(c.Arithmetic, rounding.Arithmetic(name))
	}
	if len(a.Scores) == 0 {
		c.Failed = a.Error
		if c.Failed == "" {
			c.Failed = "it did not end"
		}
	}
	return c
}

// Check is how far apart the log-probabilities of two sides are, over all tokens that both report at each position.
type Check struct {
	With      string `json:"with"` // the other side
	Positions int    `json:"positions"`
	AsPrompt  int    `json:"as_prompt"` // positions that were computed as a prompt; the others step by step
	Compared  int    `json:"compared"`  // log-probabilities
	// Max is the largest difference in nats, at position MaxAt, from 1. MaxSteps is the largest at positions computed
	// step by step.
	Max       float64 `json:"max_abs"`
	MaxAt     int     `json:"max_at"`
	MaxSteps  float64 `json:"max_abs_steps"`
	Tolerance `json:"tolerance"`
	Within    bool `json:"within"` // the tolerance
	// Absent says why no scores are compared; empty if some are.
	Absent string `json:"absent,omitempty"`
}

// Known reports whether scores were compared.
func (c *Check) Known() bool { return c != nil && c.Absent == "" }

// Differs reports whether scores are further apart than rounding explains.
func (c *Check) Differs() bool { return c.Known() && !c.Within }

// Words says how far apart the scores are.
func (c *Check) Words() string {
	switch {
	case c.Absent != "":
		return fmt.Sprintf(explain.ScoresAbsent, c.Absent)
	case c.Within && c.Max == 0:
		return fmt.Sprintf(explain.ScoresSame, c.Positions)
	case c.Within:
		return fmt.Sprintf(explain.ScoresWithin, Nats(c.Max), c.Positions, c.Explains())
	}
	return fmt.Sprintf(explain.ScoresBeyond, Nats(c.Max), c.explains(), Nats(c.Nats))
}

// Tolerance is how far apart rounding moves log-probabilities, and the rule behind it.
type Tolerance struct {
	Nats       float64 `json:"nats"`
	Arithmetic string  `json:"arithmetic"` // of both sides: float32, or what is coarser
	// Yardstick is how far a rounding step moves this model's scores in the reference implementation. Without one the
	// tolerance is from a table.
	Yardstick *float64 `json:"yardstick,omitempty"`

	plural bool // the arithmetic's name
}

// Explains is the rule as a sentence.
func (t Tolerance) Explains() string {
	if t.Yardstick != nil {
		return fmt.Sprintf(explain.ScoresByYardstick, t.explains(), Nats(t.Nats), Nats(*t.Yardstick))
	}
	return fmt.Sprintf(explain.ScoresExplained, t.explains(), Nats(t.Nats))
}

// explains is the subject and the verb of that sentence.
func (t Tolerance) explains() string {
	if t.plural {
		return fmt.Sprintf(explain.ScoresExplain, t.Arithmetic)
	}
	return fmt.Sprintf(explain.ScoresExplains, t.Arithmetic)
}

// steps is how many rounding steps explain a difference: an engine rounds in more places than a yardstick moves.
const steps = 2

// tolerance is the tolerance for sides with these arithmetics. An unknown arithmetic counts as float32. anchor may be
// nil.
func tolerance(anchor *record.Anchor, sides ...[]rounding.Arithmetic) Tolerance {
	all := rounding.Sorted(slices.Concat(append(sides, []rounding.Arithmetic{rounding.Single})...))
	t := Tolerance{Nats: rounding.Nats(all), Arithmetic: rounding.Words(all), plural: rounding.Plural(all)}
	if anchor == nil {
		return t
	}
	widest := 0.0
	for _, side := range sides {
		moved, known := anchor.Yardsticks[rounding.Words(side)]
		if len(side) > 0 && !known {
			return t
		}
		widest = max(widest, moved)
	}
	t.Yardstick = &widest
	t.Nats = max(rounding.Nats([]rounding.Arithmetic{rounding.Single}), steps*widest)
	return t
}

// smallest is the log-probability below which a float32 loses digits. Engines that report probabilities lose them too.
var smallest = math.Log(0x1p-126)

// against compares the scores of two sides, as far as their texts agree.
func (c *Checked) against(other *Checked, with string, t Tolerance) *Check {
	out := &Check{With: with, Tolerance: t}
	switch {
	case c.Failed != "":
		out.Absent = fmt.Sprintf(explain.ScoresItFailed, c.Failed)
	case c.from != other.from || agreed(c.ids, other.ids) < c.from:
		out.Absent = explain.ScoresTexts
	}
	if out.Absent != "" {
		return out
	}
	// The position after the common beginning of both texts has the same tokens before it, so it counts too.
	out.Positions = min(len(c.at), len(other.at), agreed(c.ids, other.ids)-c.from+1)
	out.AsPrompt = min(c.asPrompt, out.Positions)
	for at := range out.Positions {
		apart, n := farthest(c.at[at], other.at[at])
		out.Compared += n
		if apart > out.Max {
			out.Max, out.MaxAt = apart, at+1
		}
		if at >= c.asPrompt {
			out.MaxSteps = max(out.MaxSteps, apart)
		}
	}
	out.Within = out.Max <= t.Nats
	return out
}

// farthest is the largest difference of a token's log-probability at a position, over n tokens that both report. A
// token that only one side reports is at most as likely for the other as that side's last token, which bounds the
// difference from below. Values below smallest count as smallest; two of them are not compared.
func farthest(x, y record.Score) (apart float64, n int) {
	for _, c := range x.Top {
		if p, known := y.LogProbOf(c.ID); known && max(c.LogProb, p) > smallest {
			n++
			apart = max(apart, math.Abs(max(c.LogProb, smallest)-max(p, smallest)))
		}
	}
	for _, side := range [][2]record.Score{{x, y}, {y, x}} {
		last := side[1].Top[len(side[1].Top)-1].LogProb
		for _, c := range side[0].Top {
			if _, known := side[1].LogProbOf(c.ID); !known && c.LogProb > smallest {
				apart = max(apart, c.LogProb-max(last, smallest))
			}
		}
	}
	return apart, n
}

// checked compares the score checks of two cells; nil if neither has one.
func checked(left, right Party) *Check {
	a, b := left.Checked, right.Checked
	none := func(format string, args ...any) *Check {
		return &Check{With: right.Label, Absent: fmt.Sprintf(format, args...)}
	}
	switch {
	case a == nil && b == nil:
		return nil
	case a == nil:
		return none(explain.ScoresUnreported, left.Label)
	case b == nil:
		return none(explain.ScoresUnreported, right.Label)
	case left.Requantised || right.Requantised, left.Values != right.Values && left.Values != "" && right.Values != "":
		return none(explain.ScoresWeights)
	case a.Failed != "":
		return none(explain.ScoresFailed, left.Label, a.Failed)
	case b.Failed != "":
		return none(explain.ScoresFailed, right.Label, b.Failed)
	}
	return a.against(b, right.Label, toleranceOf(left, right))
}

// toleranceOf is the tolerance for two cells. It has a yardstick if the reference implementation computed both cells'
// weights.
func toleranceOf(left, right Party) Tolerance {
	var anchor *record.Anchor
	if left.Anchor != nil && right.Anchor != nil && left.Anchor.Anchor.SHA256 == right.Anchor.Anchor.SHA256 {
		anchor = left.Anchor.Anchor
	}
	return tolerance(anchor, left.Arithmetic, right.Arithmetic)
}

// WithAnchor compares the scores of a cell with those of the reference implementation; nil if it did not compute them.
func WithAnchor(of Party) *Check {
	if of.Anchor == nil || of.Checked == nil || of.Requantised {
		return nil
	}
	return of.Checked.against(of.Anchor, "llmparity's reference implementation",
		tolerance(of.Anchor.Anchor, of.Arithmetic))
}
