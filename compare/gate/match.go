package gate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"llmparity/compare"
	"llmparity/internal/gates"
)

// pair is a cell of the baseline and what became of it.
type pair struct {
	base, now *compare.Cell // now is nil where the cell is gone, base where it is new
	why       string        // why figures of the two can't be set against each other; empty: they can
}

// match finds each cell of the baseline in the run: first what was asked for in all respects alike, then what differs
// in some and can only be said to.
func (j *judge) match() {
	taken := map[*compare.Cell]bool{}
	var left []*compare.Cell
	before, after := by(j.base, request), by(j.now, request)
	for i := range j.base.Cells {
		b := &j.base.Cells[i]
		if n := same(b, before[request(b)], after[request(b)], taken); n != nil {
			taken[n] = true
			j.pairs = append(j.pairs, pair{base: b, now: n})
		} else {
			left = append(left, b)
		}
	}
	tasks := by(j.now, task)
	for _, b := range left {
		p := pair{base: b}
		if at := slices.IndexFunc(tasks[task(b)], func(n *compare.Cell) bool { return !taken[n] }); at >= 0 {
			p.now = tasks[task(b)][at]
			taken[p.now] = true
			if len(askedChanged(b, p.now)) == 0 {
				p.why = "several cells were asked for the same: which is which is not known"
			}
		}
		j.pairs = append(j.pairs, p)
	}
	system := machineChanged(j.base.Runs[0].Environment, j.now.Runs[0].Environment)
	system.add(gates.TestSystem, "llmparity", j.base.Runs[0].Tool.Version, j.now.Runs[0].Tool.Version)
	for i := range j.pairs {
		p := &j.pairs[i]
		if p.now == nil {
			check := compare.GateCheck{Name: "cell of the baseline run", Kind: compare.GateCell, Cell: p.base.Label}
			j.add(check, cmp.Or(j.gate.Gone, gates.Error), broken,
				"missing: the run has no cell of that engine, prompt and length")
			continue
		}
		parts := partsChanged(p.base, p.now).tidy()
		p.why = cmp.Or(p.why, j.sort(slices.Concat(system, askedChanged(p.base, p.now), parts)))
	}
	for i := range j.now.Cells {
		if n := &j.now.Cells[i]; !taken[n] {
			j.pairs = append(j.pairs, pair{now: n})
		}
	}
}

// Differences says in which way the parts and machines of two runs of one plan differ.
func Differences(was, is *compare.Result) []string {
	all := machineChanged(was.Runs[0].Environment, is.Runs[0].Environment)
	before, after := by(was, request), by(is, request)
	for i := range was.Cells {
		b := &was.Cells[i]
		if n := same(b, before[request(b)], after[request(b)], nil); n != nil {
			all = append(all, partsChanged(b, n).tidy()...)
		}
	}
	var out []string
	for _, d := range all {
		if text := d.String(); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// by sorts cells by what they have in common.
func by(r *compare.Result, key func(*compare.Cell) string) map[string][]*compare.Cell {
	out := map[string][]*compare.Cell{}
	for i := range r.Cells {
		k := key(&r.Cells[i])
		out[k] = append(out[k], &r.Cells[i])
	}
	return out
}

// same finds the cell that was asked for the same, among all that were. Of several, such as two versions of an engine,
// it is the one of the same version, else the one in the same place; nil where neither can be told.
func same(b *compare.Cell, before, after []*compare.Cell, taken map[*compare.Cell]bool) *compare.Cell {
	if len(before) == 1 && len(after) == 1 {
		return after[0]
	}
	for _, n := range after {
		if !taken[n] && version(n) == version(b) {
			return n
		}
	}
	if at := slices.Index(before, b); len(before) == len(after) && !taken[after[at]] {
		return after[at]
	}
	return nil
}

func version(c *compare.Cell) string {
	if c.Engine == nil {
		return ""
	}
	return c.Engine.Version
}

// request is all that a cell was asked for, in one text.
func request(c *compare.Cell) string {
	s := c.Spec
	return fmt.Sprintf("%s %q %s %s %d %g %q %q %v %v %q %q", task(c), s.Model.Name, s.Model.SHA256, s.Model.DType,
		s.Model.Context, s.Temperature,
		s.Isolation, s.PromptCache, s.Reused, s.Shared, s.KVDType, s.Start)
}

// task is the least that two cells must have in common to be the same one, changed.
func task(c *compare.Cell) string {
	s := c.Spec
	traffic, _ := json.Marshal(s.Traffic) // plain data
	prompt := s.Prompt
	if s.InputTokens > 0 {
		prompt = fmt.Sprintf("of %d tokens", s.InputTokens) // made by whoever knows the tokenizer
	}
	return fmt.Sprintf("%q %q %d %s", s.Engine, prompt, s.MaxTokens, traffic)
}
