package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/words"
)

// Reason is why some cells can't run, or may not.
type Reason struct {
	Answer  engine.Answer
	Engines []string // names in plans
	Err     error
	Cells   int
}

// Reasons returns the reasons of refused cells, in the order of the cells, and then those of unknown ones.
func (p *Plan) Reasons() (out []*Reason) {
	type key struct {
		answer engine.Answer
		text   string
	}
	by := map[key]*Reason{}
	for i := range p.Cells {
		c := &p.Cells[i]
		if c.Verdict.Reason == nil {
			continue
		}
		of := key{c.Verdict.Answer, c.Verdict.Reason.Error()}
		why := by[of]
		if why == nil {
			why = &Reason{Answer: c.Verdict.Answer, Err: c.Verdict.Reason}
			by[of] = why
			out = append(out, why)
		}
		if !slices.Contains(why.Engines, c.Engine) {
			why.Engines = append(why.Engines, c.Engine)
		}
		why.Cells++
	}
	slices.SortStableFunc(out, func(a, b *Reason) int { return cmp.Compare(a.Answer, b.Answer) }) // refused, unknown
	return out
}

// Refused counts the cells that can't run here.
func (p *Plan) Refused() (n int) {
	for i := range p.Cells {
		if p.Cells[i].Verdict.Answer == engine.Refused {
			n++
		}
	}
	return n
}

// Ends returns why nothing is to be launched: no cell can run here or, with strict, one can't.
func (p *Plan) Ends(strict bool) error {
	n := p.Refused()
	if n == 0 || n < len(p.Cells) && !strict {
		return nil
	}
	return p.Reasons()[0].Err
}

// mostReasons limits the lines on a screen.
const mostReasons = 20

// Lines says which cells can't run or may not, a line for each reason, and adds notes.
func (p *Plan) Lines() []string {
	cells := map[string]int{} // by engine
	for i := range p.Cells {
		cells[p.Cells[i].Engine]++
	}
	var out []string
	reasons := p.Reasons()
	for i, why := range reasons {
		if i == mostReasons {
			out = append(out, fmt.Sprintf("… and %d more reasons; --dry-run shows each cell", len(reasons)-i))
			break
		}
		of := 0
		for _, name := range why.Engines {
			of += cells[name]
		}
		what := "can't run here"
		if why.Answer == engine.Unknown {
			what = "may run here"
		}
		out = append(out, fmt.Sprintf("%s: %d of %s %s: %s", strings.Join(why.Engines, ", "), why.Cells,
			words.Count(of, "cell"), what, fault.OneLine(why.Err.Error())))
	}
	return append(out, p.Notes...)
}
