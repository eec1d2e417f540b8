// Package axis has a row for everything in which cells can differ: its name, its value in a recorded cell, and what may
// be compared across it. Labels, comparability, gates, sweeps and tables derive from the table.
//
// It knows records only. How a plan varies an axis is a Field of internal/bench/plan.
package axis

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/record"
)

// Role says what may be compared across an axis.
type Role int

// Roles. Cells of another task answer another question. Cells with another setting are what people compare. Cells that
// were measured in another way have figures that mean something else.
const (
	Task Role = iota
	Setting
	Measurement
)

// Axis is something in which cells can differ.
type Axis struct {
	Name   string                    // field of a single value in plans, as in include and --by
	Of     func(*record.Cell) string // its value, for people and for keys; empty: nothing was requested
	Role   Role
	Phrase string // how a sentence names many: "contexts", "kinds of start"
}

// Names of axes that code refers to.
const (
	Engine      = "engine"
	Model       = "model"
	Prompt      = "prompt"
	Input       = "input_length"
	Output      = "output_length"
	Context     = "context"
	DType       = "dtype"
	KVDType     = "kv_cache_dtype"
	Weights     = "weights"
	Threads     = "threads"
	Start       = "start"
	BatchSize   = "batch_size"
	Concurrency = "concurrency"
	Traffic     = "traffic"
	Temperature = "temperature"
	Isolation   = "isolation"
	PromptCache = "cache"
)

// table is in the order in which sentences name axes.
var table = []*Axis{
	{Engine, func(c *record.Cell) string { return c.Engine }, Setting, "engines"},
	{Model, func(c *record.Cell) string { return c.Model.Name }, Task, "models"},
	{Prompt, func(c *record.Cell) string { return c.Prompt }, Task, "prompts"},
	{Input, func(c *record.Cell) string { return positive(c.InputTokens) }, Task, "input lengths"},
	{Output, func(c *record.Cell) string { return positive(c.MaxTokens) }, Setting, "output lengths"},
	{Context, func(c *record.Cell) string { return positive(c.Model.Context) }, Setting, "contexts"},
	{DType, func(c *record.Cell) string { return c.DType }, Setting, "dtypes"},
	{KVDType, func(c *record.Cell) string { return c.KVDType }, Task, "KV cache dtypes"},
	{Weights, func(c *record.Cell) string { return c.Weights }, Setting, "forms of weights"},
	{Threads, func(c *record.Cell) string { return positive(c.Threads) }, Setting, "numbers of threads"},
	{Start, func(c *record.Cell) string { return c.Start }, Task, "kinds of start"},
	{Temperature, temperature, Setting, "temperatures"},
	{Isolation, isolation, Measurement, "kinds of isolation"},
	{PromptCache, func(c *record.Cell) string { return c.PromptCache }, Measurement, "states of the prompt cache"},
}

// Of returns the axes of some cells: the table, and the settings of engines that the cells' plan varied, by name.
func Of(cells ...*record.Cell) []*Axis {
	keys := map[string]bool{}
	for _, c := range cells {
		for key := range c.Settings {
			keys[key] = true
		}
	}
	out := slices.Clone(table)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, setting(key))
	}
	return out
}

// setting is the axis of an engine's own field.
func setting(key string) *Axis {
	return &Axis{key, func(c *record.Cell) string { return c.Settings[key] }, Setting,
		"values of " + key}
}

// Named returns the axis with a name: a row of the table, else an engine's own field.
func Named(name string) *Axis {
	for _, a := range table {
		if a.Name == name {
			return a
		}
	}
	return setting(name)
}

// Differ returns the axes in which two cells differ.
func Differ(a, b *record.Cell) []*Axis {
	return slices.DeleteFunc(Of(a, b), func(x *Axis) bool { return x.Of(a) == x.Of(b) })
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func temperature(c *record.Cell) string { return strconv.FormatFloat(c.Temperature, 'g', -1, 64) }

func isolation(c *record.Cell) string {
	words := []string{c.Isolation}
	if c.Shared {
		words = append(words, "shared")
	} else if c.Reused {
		words = append(words, "reused")
	}
	return strings.Join(words, " ")
}
