package recount

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// What of a run and a baseline is not the same thing on both sides, so that a gate can't set the one against the other.

// known tells whether it is known what of a cell is, and that it is one thing: verified weights, launches that all ran
// the same on a class of device that there is.
func (c *gateCell) known() bool {
	named := c.Model.Format == "served" && c.Model.SHA256 == ""
	class, _, _ := strings.Cut(c.device, " ")
	return !named && !c.mixed && slices.Contains([]string{"cpu", "gpu", "software-adapter"}, class)
}

// steady finds cells whose counted launches told of other devices, versions or parts.
func (f *gateFolder) steady(of *folder) error {
	type told struct {
		device, version string
		parts           map[string]string
		words           int
	}
	by := map[int]*told{}
	err := eachLine(filepath.Join(of.dir, "journal.jsonl"), func(line []byte) error {
		var l struct {
			Attempt int
			Event   *struct {
				Engine *struct {
					Version       string
					Parts, Policy map[string]string
				}
				Device *struct{ Class, Name string }
			}
		}
		if err := json.Unmarshal(line, &l); err != nil || l.Event == nil {
			return err
		}
		if by[l.Attempt] == nil {
			by[l.Attempt] = &told{}
		}
		t := by[l.Attempt]
		if d := l.Event.Device; d != nil {
			t.device = fmt.Sprint(d.Class, " ", d.Name)
		}
		// What it said when it said most.
		if e := l.Event.Engine; e != nil && (t.parts == nil || len(e.Parts)+len(e.Policy) >= t.words) {
			t.version, t.words, t.parts = e.Version, len(e.Parts)+len(e.Policy), maps.Clone(e.Parts)
			if t.parts == nil {
				t.parts = map[string]string{}
			}
		}
		return nil
	})
	for _, c := range f.cells {
		var first *told
		for _, a := range of.attempts {
			now := by[a.id]
			if a.cell != c.ID || !a.counted || now == nil {
				continue
			}
			if first == nil {
				first = now
			}
			c.mixed = c.mixed || now.device != first.device || now.version != first.version
			for name, is := range now.parts {
				c.mixed = c.mixed || is != first.parts[name]
			}
		}
	}
	return err
}

// unlike tells whether a figure is of other things on both sides: an increase with and without what was there before,
// memory that programs outside share, prompts of which one came from a cache, loads that lie within the time to the
// first token.
func (g *Gated) unlike(figure string, p gatePair) bool {
	born := func(c *Cell) bool { return len(c.Figures["baseline_pss"].Values) > 0 }
	caches := func() bool {
		was, is := g.base.cache(p.base.ID), g.run.cache(p.now.ID)
		return was == nil || is == nil || max(was[1], is[1]) > 1 && *was != *is
	}
	loads := func() bool {
		return g.base.evidence[0].styles[p.base.ID].perGeneration != g.run.evidence[0].styles[p.now.ID].perGeneration
	}
	switch figure {
	case "memory_increase":
		return born(p.was) != born(p.is) || p.was.outside || p.is.outside
	case "peak_pss":
		return p.was.outside || p.is.outside
	case "ttft":
		return caches() || loads()
	case "prefill_tps":
		return caches()
	case "load_time":
		return loads()
	}
	return false
}

// cache are the fewest and the most tokens of a prompt that came from a cache in a launch; nil where nobody told of one
// that may have been asked for before.
func (w *Work) cache(id int) *[2]float64 {
	f, c := w.evidence[0].folder, w.worked(id)
	s := f.styles[id]
	for _, a := range f.attempts {
		if a.cell != id || !a.counted || s.cache != "on" {
			continue
		}
		for i, r := range a.measured() {
			if (r.Cached == nil || *r.Cached < 0) && (s.isolation != "launch" || a.opener != a.id || i > 0) {
				return nil
			}
		}
	}
	values := w.memory[0].again(c).cached().Values
	if len(values) == 0 {
		return &[2]float64{}
	}
	return &[2]float64{slices.Min(values), slices.Max(values)}
}
