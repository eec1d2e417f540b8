package gate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/internal/plan"
	"llmparity/internal/record"
)

// pair is a cell of the baseline and what became of it.
type pair struct {
	base, now *compare.Cell // now is nil where the cell is gone, base where it is new
	why       string        // why figures of the two can't be set against each other; empty: they can
}

// match finds each cell of the baseline in the run: first what was asked for in all respects alike, then what differs in some and can only be
// said to.
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
			p.why = asked(b, p.now)
			taken[p.now] = true
		}
		j.pairs = append(j.pairs, p)
	}
	machine := machineChanged(j.base.Runs[0].Environment, j.now.Runs[0].Environment)
	for i := range j.pairs {
		p := &j.pairs[i]
		if p.now == nil {
			check := compare.GateCheck{Name: "the baseline's cell is there", Kind: compare.GateCell, Cell: p.base.Label}
			j.add(check, otherwise(j.gate.Gone, plan.GateError), broken, "the cell is gone: the baseline has it, and the run has none that was asked for the same of the same engine")
			continue
		}
		p.why = firstOf(machine, p.why, partsChanged(p.base, p.now))
		j.versions(p.base, p.now)
	}
	for i := range j.now.Cells {
		if n := &j.now.Cells[i]; !taken[n] {
			j.pairs = append(j.pairs, pair{now: n})
			j.note("%s is new: the baseline has no such cell, and nothing is held against it", n.Label)
		}
	}
	if b, n := j.base.Runs[0].Tool, j.now.Runs[0].Tool; b.Version != n.Version {
		j.note("llmparity itself is another version: %s in the baseline, %s in the run", b.Version, n.Version)
	}
	if b, n := j.base.Runs[0].Environment.Kernel, j.now.Runs[0].Environment.Kernel; b != n {
		j.note("the kernel is another one: %s in the baseline, %s in the run", b, n)
	}
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

// same finds the cell that was asked for the same, among all that were. Of several, such as two versions of an engine, it is the one of the
// same version, else the one in the same place; nil where neither can be told.
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
	return fmt.Sprintf("%s %q %s %s %d %g %q %q %v %v %q %q", task(c), s.Model.Name, s.Model.SHA256, s.Model.DType, s.Model.Context, s.Temperature,
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

// asked says in which way cells differ that were asked nearly the same.
func asked(b, n *compare.Cell) string {
	var out []string
	differ := func(what, was, is string) {
		if was != is {
			out = append(out, fmt.Sprintf("%s was %s and is %s", what, orNone(was), orNone(is)))
		}
	}
	x, y := b.Spec, n.Spec
	differ("the model", x.Model.Name, y.Model.Name)
	if x.Model.Name == y.Model.Name {
		differ("the model's file", short(x.Model.SHA256), short(y.Model.SHA256))
	}
	differ("the type of the weights", x.Model.DType, y.Model.DType)
	differ("the context", fmt.Sprint(x.Model.Context), fmt.Sprint(y.Model.Context))
	differ("the temperature", fmt.Sprint(x.Temperature), fmt.Sprint(y.Temperature))
	differ("the isolation", isolation(x), isolation(y))
	differ("the prompt cache", x.PromptCache, y.PromptCache)
	differ("the type of the KV cache", x.KVDType, y.KVDType)
	differ("the start", x.Start, y.Start)
	if len(out) == 0 {
		return "which of several cells that were asked for the same is which can't be told"
	}
	return "what was asked for is another: " + strings.Join(out, "; ")
}

func isolation(c record.Cell) string {
	switch {
	case c.Shared:
		return c.Isolation + " shared"
	case c.Reused:
		return c.Isolation + " reused"
	}
	return c.Isolation
}

// short is enough of a hash to tell two apart.
func short(sha string) string { return sha[:min(len(sha), 12)] }

func orNone(s string) string {
	if s == "" {
		return "not said"
	}
	return s
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}
