package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"llmparity/compare/explain"
	"llmparity/compare/settings"
	"llmparity/compare/verdict"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Effect is what a reason does to a comparison.
type Effect string

// The effects.
const (
	Refuses Effect = "refused" // no ratio
	Marks   Effect = "marked"  // a ratio with --allow-different only, marked
	Limits  Effect = "caveat"  // a ratio with a caveat
	Informs Effect = "note"    // none: it is about the result
)

// Reason is why cells are not compared, or a caveat of their ratios.
type Reason struct {
	Code   string `json:"code"`
	Text   string `json:"text"`
	Effect Effect `json:"effect"`
	Pairs  []int  `json:"pairs,omitempty"` // indexes into Comparisons

	many string
	bare verdict.Reason // without notComparable
}

const notComparable = "not comparable here: "

func reason(effect Effect, of explain.Reason, args ...any) Reason {
	d := Reason{Code: of.Code, Text: fmt.Sprintf(of.Text, args...), Effect: effect, many: of.Many}
	d.bare = verdict.ReasonOf(of, args...)
	if effect == Refuses {
		d.Text, d.many = notComparable+d.Text, notComparable+cmp.Or(d.many, d.Text)
	}
	return d
}

// valuesDiffer is the reason that two cells have different values of an axis or a setting.
func valuesDiffer(effect Effect, name, title, a, b string) Reason {
	of := explain.ValuesDiffer
	of.Code = strings.ReplaceAll(name, "_", "-")
	of.Text, of.Many = fmt.Sprintf(of.Text, title), fmt.Sprintf(of.Many, title)
	return reason(effect, of, a, b)
}

// names names two cells: by their engines if these differ, so that many pairs share a sentence.
func names(a, b *Cell) (x, y string) {
	switch {
	case a.Spec.Engine != b.Spec.Engine:
		return a.Title(), b.Title()
	case a.Label != b.Label:
		return a.Label, b.Label
	}
	return "the baseline run", "this run"
}

// sides are two cells with different names.
func sides(a, b *Cell) [2]side {
	x, y := names(a, b)
	return [2]side{{a, x}, {b, y}}
}

type side struct {
	*Cell
	name string
}

// oneAlone returns a reason if something holds for one of two cells only.
func oneAlone(a, b *Cell, of explain.Reason, holds func(*Cell) bool) []Reason {
	if holds(a) == holds(b) {
		return nil
	}
	x, y := names(a, b)
	if holds(b) {
		x = y
	}
	return []Reason{reason(Limits, of, x)}
}

// requestsDiffer returns why outputs cannot be the same: then neither outputs nor figures are compared.
func requestsDiffer(a, b *Cell) []Reason {
	return axesDiffer(a, b, axis.Nothing, Refuses)
}

// axesDiffer returns a reason for each axis with this rule along which two cells differ.
func axesDiffer(a, b *Cell, across axis.Across, effect Effect) []Reason {
	var out []Reason
	for _, x := range axis.Differ(&a.Spec, &b.Spec, func(x *axis.Axis) bool { return x.Across == across }) {
		out = append(out, valuesDiffer(effect, x.Name, x.Title, x.Value(&a.Spec), x.Value(&b.Spec)))
	}
	return out
}

// unknown returns what a ratio needs and is not known.
func unknown(a, b *Cell) []Reason {
	for _, c := range sides(a, b) {
		switch {
		case c.Launches.Counted == 0:
			return []Reason{reason(Refuses, explain.NoLaunch, c.name)}
		case c.Device == nil:
			return []Reason{reason(Refuses, explain.NoDevice, c.name)}
		case c.inconstant != "":
			return []Reason{reason(Refuses, explain.LaunchesDiffer, c.name, c.inconstant)}
		case deviceTitles[c.Device.Class] == "":
			return []Reason{reason(Refuses, explain.DeviceUnknown, c.name, c.Device.Class)}
		}
	}
	return nil
}

// unlikeReasons lists why a ratio needs --allow-different.
func unlikeReasons(a, b *Cell, effect Effect) []Reason {
	var out []Reason
	both := sides(a, b)
	if a.FormOf(b) {
		out = append(out, reason(Marks, explain.WeightsCompared, Sameness(a, b)))
	} else if at := slices.IndexFunc(both[:], func(c side) bool { return axis.Unverified(&c.Spec.Model) }); at >= 0 {
		out = append(out, reason(effect, explain.WeightsUnverified, both[at].name))
	} else {
		out = append(out, axesDiffer(a, b, axis.OnRequest, effect)...)
	}
	return append(out, devicesDiffer(a, b, effect)...)
}

// devicesDiffer returns why a ratio would compare devices rather than engines.
func devicesDiffer(a, b *Cell, effect Effect) []Reason {
	if a.Device == nil || b.Device == nil || a.Device.Class == b.Device.Class {
		return nil
	}
	for _, d := range []*record.Device{a.Device, b.Device} {
		if d.Class == record.SoftwareAdapter {
			return []Reason{reason(effect, explain.SoftwareGPU, cmp.Or(d.Name, "a software adapter"))}
		}
	}
	x, y := names(a, b)
	return []Reason{reason(effect, explain.DevicesDiffer, x, deviceWords(a.Device), y, deviceWords(b.Device))}
}

// settingsDiffer lists settings that both engines report with different values, and versions if it is one engine.
// Settings that change the arithmetic of any engine come first; the rest is in the table of settings.
func settingsDiffer(a, b *Cell) (first, rest []Reason) {
	same := a.Spec.Engine == b.Spec.Engine
	x, y := settings.Of(&a.Setup, same), settings.Of(&b.Setup, same)
	for _, name := range slices.Sorted(maps.Keys(x)) {
		other, both := y[name]
		if !both || other == x[name] {
			continue
		}
		d := valuesDiffer(Limits, name, settings.Title(name), x[name], other)
		if same || settings.Decisive(name) {
			first = append(first, d)
		} else {
			rest = append(rest, d)
		}
	}
	return first, rest
}

// piecesDiffer returns a reason if one side reports tokens and the other pieces of text.
func piecesDiffer(a, b *Cell) []Reason {
	return oneAlone(a, b, explain.PiecesDiffer, func(c *Cell) bool { return c.Spec.Pieces })
}

// loadsDiffer returns a reason if only one side loads the model for every request.
func loadsDiffer(a, b *Cell) []Reason {
	return oneAlone(a, b, explain.LoadsDiffer, func(c *Cell) bool { return c.Spec.PerGeneration })
}

// bos is how many tokens of a prompt may come from a cache without a difference: the one that begins all texts.
const bos = 1

// cache returns the least and the most tokens of a prompt that came from a cache; false: unknown.
func (c *Cell) cache() (least, most float64, known bool) {
	f := c.Figure(figure.Cached)
	switch {
	case c.unknownPrefill:
		return 0, 0, false
	case !f.Known():
		return 0, 0, true // not reported by servers that had not seen the prompt before
	}
	return slices.Min(f.Numbers()), slices.Max(f.Numbers()), true
}

// cachesDiffer returns a reason if one side may have taken more of its prompt from a cache.
func cachesDiffer(a, b *Cell) []Reason {
	leastA, mostA, knownA := a.cache()
	leastB, mostB, knownB := b.cache()
	if knownA && knownB && (max(mostA, mostB) <= bos || leastA == leastB && mostA == mostB) {
		return nil
	}
	side := func(c *Cell) string {
		switch _, most, known := c.cache(); {
		case !known:
			return c.Spec.PromptCache + ", hits not reported"
		case most <= bos:
			return c.Spec.PromptCache
		}
		return c.Spec.PromptCache + ", " + c.Figure(figure.Cached).Count() + " tokens from it"
	}
	x, y := names(a, b)
	return []Reason{reason(Limits, explain.CachesDiffer, side(a), x, side(b), y)}
}

// memoryShared returns a reason if a side's figures may lack some of its memory.
func memoryShared(a, b *Cell) []Reason {
	for _, c := range sides(a, b) {
		if words := c.footprint.OthersWords(); words != "" {
			return []Reason{reason(Limits, explain.MemoryShared, c.name, words)}
		}
	}
	return nil
}

// Sameness says how the weights of two engines compare, where one of them converted the model's file; its zero value:
// neither did, or both.
func Sameness(a, b *Cell) record.Relation {
	if a.FormOf(b) {
		return otherForm(a, b)
	}
	if m, n := a.Spec.Model, b.Spec.Model; m.SHA256 != n.SHA256 && m.Values() == n.Values() {
		return record.Relation{Code: record.SameCompared}
	}
	x, y := a.Weights(), b.Weights()
	if a.Spec.Engine == b.Spec.Engine || x != "" && y != "" {
		return record.Relation{}
	}
	return record.Relation{Code: cmp.Or(x, y)}
}

// otherForm says how the weights of two forms of a model compare that are not known to be the same.
func otherForm(a, b *Cell) record.Relation {
	x, y := a.Spec.Model.Differs, b.Spec.Model.Differs
	if (x.Code == "") == (y.Code == "") { // each is compared with the first form
		return record.Relation{Code: record.OtherValues}
	}
	return cmp.Or(x, y)
}

// FormOf reports whether a plan names two files as forms of one model for two engines.
func (c *Cell) FormOf(of *Cell) bool { return axis.Forms(&c.Spec, &of.Spec) }

// caveats lists the caveats of the ratios of two cells.
func caveats(a, b *Cell) []Reason {
	var out []Reason
	if bothSoftware(a, b) && a.Spec.Engine == b.Spec.Engine {
		out = append(out, reason(Limits, explain.BothSoftware))
	}
	out = slices.Concat(out, otherShaders(a, b), shadersDiffer(a, b), memoryShared(a, b), cachesDiffer(a, b),
		loadsDiffer(a, b))
	for _, c := range sides(a, b) {
		if c.Load != nil {
			for _, text := range c.Load.Caveats {
				out = append(out, reason(Limits, explain.TrafficCaveat, c.name, text))
			}
		}
	}
	out = append(out, piecesDiffer(a, b)...)
	for _, c := range sides(a, b) {
		if origin := c.Device.Origin; origin != "" {
			from := map[string]string{record.DeviceStated: "stated by the plan",
				record.DeviceDerived: "derived from the GPU memory of its processes"}
			out = append(out, reason(Limits, explain.DeviceOrigin, c.name, c.Device.Class, from[origin]))
		}
	}
	if a.Device.Class == b.Device.Class && a.Device.Name != b.Device.Name {
		out = append(out, reason(Limits, explain.DeviceNames, a.Device.Name, b.Device.Name))
	}
	return out
}
