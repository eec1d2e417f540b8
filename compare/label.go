package compare

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/compare/explain"
	"llmparity/internal/record"
)

// label names every cell by its engine and by what else differs between cells, no more.
func (r *Result) label() {
	asked := []func(*Cell) string{
		func(c *Cell) string { return c.Spec.Model.Name },
		promptWords,
		func(c *Cell) string { return fmt.Sprintf("%d tokens", c.Spec.MaxTokens) },
		func(c *Cell) string { return trafficWords(c.Spec.Traffic) },
		func(c *Cell) string { return fmt.Sprintf("temperature %g", c.Spec.Temperature) },
		cacheType, start, isolation,
		func(c *Cell) string { return fmt.Sprintf("context %d", c.Spec.Model.Context) },
		func(c *Cell) string { return r.Runs[c.Run].Name },
	}
	// What an engine is differs between engines anyway: it tells cells of one engine apart.
	ran := []func(*Cell) string{shortVersion, shortLibrary, numbers, threads, worker, chrome, device}
	for i := range r.Cells {
		c := &r.Cells[i]
		var what []string
		for _, part := range ran {
			if part(c) != "" && slices.ContainsFunc(
				r.Cells, func(o Cell) bool { return o.Spec.Engine == c.Spec.Engine && part(&o) != part(c) }) {
				what = append(what, part(c))
			}
		}
		words := []string{c.Spec.Engine}
		if len(what) > 0 {
			words[0] += " (" + strings.Join(what, "; ") + ")"
		}
		for _, part := range asked {
			if slices.ContainsFunc(r.Cells,
				func(o Cell) bool { return o.foreign() == c.foreign() && part(&o) != part(c) }) {
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
	runs := map[string]map[int]bool{} // in which a label is
	for i := range r.Cells {
		c := &r.Cells[i]
		if runs[c.Label] == nil {
			runs[c.Label] = map[int]bool{}
		}
		runs[c.Label][c.Run] = true
	}
	seen := map[string]int{}
	for i := range r.Cells {
		c := &r.Cells[i]
		if len(runs[c.Label]) > 1 {
			c.Label += ", " + r.runName(c.Run)
		}
		seen[c.Label]++
		if n := seen[c.Label]; n > 1 {
			c.Label = fmt.Sprintf("%s #%d", c.Label, n)
		}
	}
}

// promptWords tell prompts apart: by how many tokens were asked for, or by their numbers in the plan.
func promptWords(c *Cell) string {
	if c.Spec.InputTokens > 0 {
		return fmt.Sprintf("input of %d", c.Spec.InputTokens)
	}
	return fmt.Sprintf("prompt %d", c.Spec.PromptID)
}

// cacheType is the type of the KV cache's numbers, where it was asked for.
func cacheType(c *Cell) string {
	if c.Spec.KVDType == "" {
		return "its own KV cache"
	}
	return "KV cache " + c.Spec.KVDType
}

// start is what of a model's files lay in memory, where that was seen to.
func start(c *Cell) string {
	if c.Spec.Start == "" {
		return "start as it came"
	}
	return c.Spec.Start + " start"
}

// isolation is what a repetition has of its own, in a few words.
func isolation(c *Cell) string {
	if c.Spec.Shared {
		return c.Spec.Isolation + " shared"
	}
	if c.Spec.Reused {
		return c.Spec.Isolation + " reused"
	}
	return c.Spec.Isolation
}

// with says in a line what the cell's engine ran with.
func (c *Cell) with() string {
	words := slices.DeleteFunc([]string{version(c), library(c), numbers(c), threads(c), worker(c), chrome(c), device(c),
		capped(c)},
		func(s string) bool { return s == "" })
	return strings.Join(words, ", ")
}

// shortVersion and shortLibrary tell as much apart as version and library do, in fewer words: they are part of a name.
func shortVersion(c *Cell) string {
	if c.Engine == nil {
		return ""
	}
	if origin := c.part("webllm_origin"); origin != "" && origin != "built in" {
		return c.Engine.Version + " from " + origin
	}
	return c.Engine.Version
}

func shortLibrary(c *Cell) string {
	l := c.part("model_library")
	if variant, ours := strings.CutPrefix(l, "ours ("); ours {
		return strings.TrimSuffix(variant, ")")
	}
	return l
}

func (c *Cell) part(name string) string {
	if c.Engine == nil {
		return ""
	}
	return c.Engine.Parts[name]
}

func (c *Cell) policy(name string) string {
	if c.Engine == nil {
		return ""
	}
	return c.Engine.Policy[name]
}

func version(c *Cell) string {
	switch v, origin := c.part("webllm"), c.part("webllm_origin"); {
	case c.Engine == nil:
		return ""
	case v == "":
		return strings.TrimSpace(c.Engine.Name + " " + c.Engine.Version)
	case origin == "":
		return "WebLLM " + v
	default:
		return fmt.Sprintf("WebLLM %s (%s)", v, origin)
	}
}

// library is the model library that WebLLM's figures are those of.
func library(c *Cell) string {
	if l := c.part("model_library"); l != "" {
		return "library " + l
	}
	return ""
}

func numbers(c *Cell) string {
	weights, kv := c.policy("weights_dtype"), c.policy("kv_dtype")
	switch {
	case weights == kv:
		return weights
	case weights == "" || kv == "":
		return weights + kv
	}
	return weights + " with a KV cache of " + kv
}

func threads(c *Cell) string {
	switch n := c.policy("threads"); n {
	case "":
		return ""
	case "1":
		return "1 thread"
	default:
		return n + " threads"
	}
}

func worker(c *Cell) string {
	if c.policy("thread") == "worker" {
		return "in a worker"
	}
	return "" // on the page's thread, or in no page at all
}

// capped says so where less of a context was given than the model was made for: a KV cache of all of it takes more.
func capped(c *Cell) string {
	m := c.Spec.Model
	if m.Context <= 0 || m.MaxContext <= m.Context {
		return ""
	}
	return fmt.Sprintf("context capped at %d of the model's %d tokens", m.Context, m.MaxContext)
}

func chrome(c *Cell) string { return c.part("browser") }

func device(c *Cell) string {
	switch d := c.Device; {
	case d == nil:
		return ""
	case d.Class == record.CPU:
		return "on the CPU"
	default:
		return "on " + d.Name
	}
}

// Engines groups cells by what they ran with: what is said of each group holds for all of its cells.
func (r *Result) Engines() []Ran {
	var out []Ran
	for i := range r.Cells {
		c := &r.Cells[i]
		at := slices.IndexFunc(out, func(g Ran) bool { return g.engine == c.Spec.Engine && g.With == c.With })
		if at < 0 {
			out = append(out, Ran{engine: c.Spec.Engine, With: c.With})
			at = len(out) - 1
		}
		out[at].Cells = append(out[at].Cells, i)
	}
	for i := range out {
		g := &out[i]
		var labels []string
		for _, cell := range g.Cells {
			labels = append(labels, r.Cells[cell].Label)
		}
		g.Name = strings.Join(labels, "; ")
		if !slices.ContainsFunc(out, func(o Ran) bool { return o.engine == g.engine && o.With != g.With }) {
			g.Name = g.engine // all of its cells
		}
	}
	return out
}

// Ran is a group of cells whose engine ran with the same things.
type Ran struct {
	Name   string // the engine, or the cells where it did not always run with the same
	With   string
	Cells  []int // indexes
	engine string
}

// libraryWords says what follows from where model libraries came from.
func (r *Result) libraryWords() []string {
	var engines, libraries []string // of each, what several have in common is said once
	for i := range r.Cells {
		if l := r.Cells[i].part("model_library"); l != "" {
			libraries = explain.AppendNew(libraries, l)
			engines = explain.AppendNew(engines, r.Cells[i].Spec.Engine)
		}
	}
	var out, ours []string
	who := strings.Join(engines, ", ")
	for _, l := range libraries {
		switch origin, _, _ := strings.Cut(l, " ("); origin {
		case "ours":
			ours = append(ours, l)
		case "given":
			out = append(out, fmt.Sprintf(
				"%s ran a model library that was given to it: %s. Nothing is known of its kernels.",
				who, l))
		default:
			out = append(out, fmt.Sprintf("%s ran a model library of %s.", who, l))
		}
	}
	switch len(ours) {
	case 0:
		return out
	case 1:
		return append(out, fmt.Sprintf("%s ran a model library that llmparity compiled: %s. Its speed is not that of MLC's "+
			"own libraries.", who, ours[0]))
	}
	return append(out, fmt.Sprintf("%s ran model libraries that llmparity compiled: %s. Their speed is not that of MLC's "+
		"own.", who, strings.Join(ours, "; ")))
}
