package compare

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare/explain"
)

// Settings sets side by side what engines report of their settings.
type Settings struct {
	// Sides are engines; of several runs, the engines of each.
	Sides []string `json:"sides"`
	// Rows are settings that several sides report, or all of them where there is one side.
	Rows []Setting `json:"rows"`
	// Only are settings that one of several sides reports. They are no differences.
	Only []Setting `json:"only"`
}

// Setting is one setting of all sides.
type Setting struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Values []string `json:"values"` // of each side; empty: it does not report the setting
	Same   bool     `json:"same"`   // all sides that report it have the same value
}

// Known titles of settings, and names of engines for what another engine calls differently.
var (
	settingTitles = map[string]string{"weights_dtype": "weights dtype", "kv_dtype": "KV cache dtype",
		"activations_dtype": "activations dtype", "context": "context window", "ubatch": "prefill batch",
		"ignore_eos": "after end of text", "mmap": "memory-mapped weights", "repacking": "repacked weights",
		"gpu_layers": "layers on the GPU", "threads_batch": "threads for prefill", "warmup": "engine's own warm-up",
		"garbage": "garbage collection", "profile": "browser profile", "window": "browser window",
		"thread": "page or worker", "parallel": "slots"}
	settingNames = map[string]string{"prefill_chunk": "ubatch"}
)

// decisive are settings that change the arithmetic or how much memory is reserved, whatever the engine.
var decisive = []string{"weights_dtype", "kv_dtype", "activations_dtype", "context"}

// settings are what a cell's engine reports of itself, by common names.
func settings(c *Cell) map[string]string {
	out := map[string]string{}
	if c.Engine == nil {
		return out
	}
	for old := range c.Engine.Policy {
		name := old
		if common, ok := settingNames[name]; ok {
			name = common
		}
		if v := c.Says(old); v != "" {
			out[name] = v
		}
	}
	return out
}

// versions are those of a cell's engine and of its parts that readers know by name.
func versions(c *Cell) map[string]string {
	if c.Engine == nil {
		return nil
	}
	out := map[string]string{"version": c.Engine.Version}
	for name, v := range c.Engine.Parts {
		if name == "browser" || strings.HasSuffix(name, "_origin") {
			out[name] = v
		}
	}
	return out
}

func settingTitle(name string) string {
	if t := settingTitles[name]; t != "" {
		return t
	}
	return strings.ReplaceAll(name, "_", " ")
}

// settings compares all engines that report any.
func (r *Result) settings() *Settings {
	s := &Settings{Sides: []string{}, Rows: []Setting{}, Only: []Setting{}}
	values := map[string][][]string{} // by name, of each side
	for i := range r.Cells {
		c := &r.Cells[i]
		all := settings(c)
		if len(r.distinct((*Cell).Title)) == 1 {
			maps.Copy(all, versions(c))
		}
		if len(all) == 0 || c.Foreign() {
			continue
		}
		side := c.Title()
		if len(r.Runs) > 1 {
			side += " in " + r.runName(c.Run)
		}
		s.Sides = explain.AppendNew(s.Sides, side)
		at := slices.Index(s.Sides, side)
		for name, v := range all {
			for len(values[name]) <= at {
				values[name] = append(values[name], nil)
			}
			values[name][at] = explain.AppendNew(values[name][at], v)
		}
	}
	if len(s.Sides) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(values))
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	for _, name := range names {
		row := Setting{Name: name, Title: settingTitle(name), Values: make([]string, len(s.Sides)), Same: true}
		reported, first := 0, ""
		for at, of := range values[name] {
			if len(of) == 0 {
				continue
			}
			slices.SortFunc(of, byNumber)
			row.Values[at] = explain.Some(of, 5)
			if reported++; reported == 1 {
				first = row.Values[at]
			}
			row.Same = row.Same && len(of) == 1 && row.Values[at] == first
		}
		if reported > 1 || len(s.Sides) == 1 {
			s.Rows = append(s.Rows, row)
		} else {
			s.Only = append(s.Only, row)
		}
	}
	return s
}

// rank puts decisive settings first.
func rank(name string) int {
	if at := slices.Index(decisive, name); at >= 0 {
		return at
	}
	return len(decisive)
}

// byNumber sorts values that are numbers by their size.
func byNumber(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return strings.Compare(a, b)
}
