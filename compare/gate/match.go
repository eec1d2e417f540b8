package gate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"llmparity/compare"
	"llmparity/compare/explain"
	"llmparity/internal/gates"
)

// pair is a cell of the baseline and what became of it.
type pair struct {
	base, now *compare.Cell // now is nil where the cell is gone, base where it is new
	why       string        // why figures of the two can't be set against each other; empty: they can
}

// match finds each cell of the baseline run in the run, and says of each pair why its figures can't be compared.
func (j *judge) match() {
	j.pairs = pairs(j.base, j.now)
	system := machineChanged(j.base.Runs[0].Environment, j.now.Runs[0].Environment)
	system.add(gates.TestSystem, "llmparity", j.base.Runs[0].Tool.Version, j.now.Runs[0].Tool.Version)
	for i := range j.pairs {
		switch p := &j.pairs[i]; {
		case p.base == nil:
		case p.now == nil:
			check := gates.Check{Name: "cell of the baseline run", Kind: gates.KindCell, Cell: p.base.Label}
			j.add(check, cmp.Or(j.gate.Gone, gates.Error), gates.Failed,
				"missing: the run has no cell of that engine, prompt and length")
		default:
			all := slices.Concat(system, askedChanged(p.base, p.now), partsChanged(p.base, p.now))
			p.why = cmp.Or(p.why, j.sort(all))
		}
	}
}

// pairs finds cells of two runs that are the same: first those that asked for the same of the same version, then those
// that asked for the same, then those whose task is the same.
func pairs(base, now *compare.Result) []pair {
	out := make([]pair, len(base.Cells))
	for i, c := range base.Cells {
		out[i].base = c
	}
	taken := map[*compare.Cell]bool{}
	exact := func(c *compare.Cell) string { return request(c) + " " + version(c) }
	for _, like := range []func(*compare.Cell) string{exact, request, task} {
		before, after := by(base, like), by(now, like)
		for i := range out {
			p, key := &out[i], like(out[i].base)
			at := slices.IndexFunc(after[key], func(n *compare.Cell) bool { return !taken[n] })
			if p.now != nil || at < 0 {
				continue
			}
			p.now = after[key][at]
			taken[p.now] = true
			other := version(p.base) != version(p.now) && request(p.base) == request(p.now)
			if other && len(before[key]) != len(after[key]) {
				p.why = "several cells have the same settings; it is not known which of them belong together"
			}
		}
	}
	for _, n := range now.Cells {
		if !taken[n] {
			out = append(out, pair{now: n})
		}
	}
	return out
}

// Differences says in which way the parts and machines of two runs of one plan differ.
func Differences(was, is *compare.Result) []string {
	all := machineChanged(was.Runs[0].Environment, is.Runs[0].Environment)
	for _, p := range pairs(was, is) {
		if p.base != nil && p.now != nil && p.why == "" {
			all = append(all, partsChanged(p.base, p.now)...)
		}
	}
	var out []string
	for _, d := range all {
		out = explain.AppendNew(out, d.String())
	}
	return out
}

// by sorts cells by what they have in common.
func by(r *compare.Result, key func(*compare.Cell) string) map[string][]*compare.Cell {
	out := map[string][]*compare.Cell{}
	for _, c := range r.Cells {
		k := key(c)
		out[k] = append(out[k], c)
	}
	return out
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
	return fmt.Sprintf("%s %q %s %s %d %g %q %q %v %v %q %q %q %v", task(c), s.Model.Name, s.Model.SHA256, s.Model.DType,
		s.Model.Context, s.Temperature, s.Isolation, s.PromptCache, s.Reused, s.Shared, s.KVDType, s.Start, s.Weights,
		s.Settings)
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
