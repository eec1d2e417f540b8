package compare

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
)

// label names every cell by its engine and by what else differs between cells, no more.
func (r *Result) label() {
	asked := []func(*Cell) string{
		func(c *Cell) string { return c.Spec.Model.Name },
		func(c *Cell) string { return c.Prompt() },
		func(c *Cell) string { return fmt.Sprintf("%d tokens", c.Spec.MaxTokens) },
		func(c *Cell) string { return c.Traffic() },
		func(c *Cell) string { return fmt.Sprintf("temperature %g", c.Spec.Temperature) },
		(*Cell).CacheType,
		func(c *Cell) string { return c.Start() },
		func(c *Cell) string { return c.Isolation() },
		func(c *Cell) string { return fmt.Sprintf("context %d", c.Spec.Model.Context) },
		func(c *Cell) string { return r.Runs[c.Run].Name },
	}
	// What an engine is differs between engines anyway: it tells cells of one engine apart. What follows from a setting
	// that the plan varies goes without saying.
	ran := []func(*evidence.Setup) string{(*evidence.Setup).Set, (*evidence.Setup).ShortVersion,
		(*evidence.Setup).ShortLibrary, (*evidence.Setup).Weights, (*evidence.Setup).DTypes, (*evidence.Setup).Threads,
		(*evidence.Setup).Worker, (*evidence.Setup).Browser, (*evidence.Setup).On}
	for _, c := range r.Cells {
		var what []string
		for i, part := range ran {
			word := part(&c.Setup)
			if word != "" && slices.ContainsFunc(r.Cells, func(o *Cell) bool {
				return o.Refused == "" && o.Spec.Engine == c.Spec.Engine && (i == 0 || o.Set() == c.Set()) &&
					part(&o.Setup) != word
			}) {
				what = append(what, word)
			}
		}
		words := []string{c.Title()}
		if len(what) > 0 {
			words[0] += " (" + strings.Join(what, "; ") + ")"
		}
		for _, part := range asked {
			if slices.ContainsFunc(r.Cells,
				func(o *Cell) bool { return o.Foreign() == c.Foreign() && part(o) != part(c) }) && part(c) != "" {
				words = append(words, part(c))
			}
		}
		c.Label = strings.Join(words, ", ")
	}
	r.tellApart()
}

// tellApart names cells that are called alike by their runs, which may have one plan's name, and where that is not
// enough numbers them.
func (r *Result) tellApart() {
	var runs evidence.Groups[string, int] // in which a label is
	for _, c := range r.Cells {
		evidence.AddNew(&runs, c.Label, c.Run)
	}
	seen := map[string]int{}
	for _, c := range r.Cells {
		if len(runs.Of[c.Label]) > 1 {
			c.Label += ", " + r.RunName(c.Run)
		}
		if seen[c.Label]++; seen[c.Label] > 1 {
			c.Label = fmt.Sprintf("%s #%d", c.Label, seen[c.Label])
		}
	}
}

// Distinct are the values of cells, in the order in which they come first.
func (r *Result) Distinct(of func(*Cell) string) []string {
	var out []string
	for _, c := range r.Cells {
		if s := of(c); s != "" {
			out = explain.AppendNew(out, s)
		}
	}
	return out
}

// CacheType is the type of the KV cache's numbers, where it was asked for.
func (c *Cell) CacheType() string {
	if c.Spec.KVDType == "" {
		return "its own KV cache"
	}
	return "KV cache " + c.Spec.KVDType
}

// Engines groups cells by what they ran with: what is said of each group holds for all of its cells.
func (r *Result) Engines() []Ran {
	type key struct{ engine, with string }
	var by evidence.Groups[key, int]
	of := map[string]int{} // groups of an engine
	for i, c := range r.Cells {
		k := key{c.Spec.Engine, c.With}
		if by.Of[k] == nil {
			of[k.engine]++
		}
		by.Add(k, i)
	}
	var out []Ran
	for k, cells := range by.All() {
		g := Ran{Name: r.Cells[cells[0]].Title(), With: k.with}
		if of[k.engine] > 1 {
			var labels []string
			for _, i := range cells {
				labels = append(labels, r.Cells[i].Label)
			}
			g.Name = strings.Join(labels, "; ")
		}
		out = append(out, g)
	}
	return out
}

// Ran is a group of cells whose engine ran with the same things.
type Ran struct {
	Name string // the engine, or the cells where it did not always run with the same
	With string
}
