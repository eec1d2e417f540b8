package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"llmparity/internal/kit/words"
	"llmparity/internal/record"
)

// Room is the free memory of a place, and where that figure comes from.
type Room struct {
	Free int64
	How  string
}

// Shares of the free memory at which a need becomes doubtful.
const (
	// tight: predictions are within 10 to 15%, and "available" memory is itself an estimate.
	tight = 0.80
	// full: the last 5% of the available memory is the page cache of running programs. Without it, a system rereads
	// them from disk or kills processes.
	full = 0.95
)

// level judges a need. At a hard limit the best value alone decides.
func (n Need) level(free int64) record.RiskLevel {
	need, room := float64(n.Best), float64(free)
	switch {
	case n.Hard && n.Best > free, !n.Hard && need > full*room:
		return record.RiskHigh
	case n.High > free, !n.Hard && need > tight*room:
		return record.RiskMedium
	}
	return record.RiskLow
}

// Risk judges whether the predicted memory fits into the free memory. A place whose free memory is unknown is not
// judged; if it is RAM or VRAM, the risk is unknown unless another place decides.
func (e Estimate) Risk(rooms map[string]Room) record.Risk {
	r := record.Risk{Level: e.worst(rooms), Places: []record.Place{}}
	unknown := ""
	for _, n := range e.Needs() {
		room, ok := rooms[n.Place]
		if !ok {
			if isMemory(n.Place) {
				unknown = n.Place
			}
			continue
		}
		r.Places = append(r.Places, record.Place{Name: n.Place, Need: n.Best, High: n.High, Free: room.Free,
			Level: n.level(room.Free), How: room.How})
	}
	slices.SortStableFunc(r.Places, func(a, b record.Place) int { return cmp.Compare(filled(b), filled(a)) })
	if unknown != "" {
		r.Reasons = append(r.Reasons, "free "+placeWords[unknown]+" is unknown")
	}
	if e.beyond() {
		r.Reasons = append(r.Reasons, e.unsure(r))
	}
	if len(r.Reasons) > 0 && r.Level == record.RiskLow {
		r.Level = record.RiskUnknown
	}
	for _, p := range r.Places {
		if grave(p.Level) > grave(record.RiskLow) {
			r.Reasons = append(r.Reasons, e.reason(p))
		}
	}
	if i := slices.IndexFunc(r.Places, func(p record.Place) bool { return p.Level == r.Level }); i >= 0 &&
		r.Level != record.RiskLow {
		n, _ := e.NeedAt(r.Places[i].Name)
		r.Recommendations = e.recommend(n, rooms)
	}
	return r
}

// Unjudged returns the risk of something that is not predicted.
func Unjudged(why string) record.Risk {
	return record.Risk{Level: record.RiskUnknown, Places: []record.Place{}, Reasons: []string{why}}
}

// grave orders the levels.
func grave(l record.RiskLevel) int {
	return slices.Index([]record.RiskLevel{record.RiskUnknown, record.RiskLow, record.RiskMedium, record.RiskHigh}, l)
}

func filled(p record.Place) float64 { return float64(p.Need) / float64(max(p.Free, 1)) }

// reason says in one line why a place is doubtful.
func (e Estimate) reason(p record.Place) string {
	text := fmt.Sprintf("%s: needs %s", placeWords[p.Name], words.Size(p.Need))
	if p.High > p.Need {
		text += fmt.Sprintf(" (up to %s)", words.Size(p.High))
	}
	text += fmt.Sprintf(" of %s available (%s)", words.Size(p.Free), p.How) + kept(p)
	if isMemory(p.Name) {
		if parts := e.parts(); parts != "" {
			text += ": " + parts
		}
		if e.mapped && p.Name == RAM && e.Component(Weights).Best > p.Need/4 {
			text += "; the OS can drop mapped weights and reread them from disk for each token"
		}
	}
	return text
}

// placeWords names the places in sentences.
var placeWords = map[string]string{RAM: "memory", VRAM: "GPU memory", Buffer: "WebGPU buffer",
	Wasm: "WebAssembly memory", Renderer: "renderer memory"}

// change is a setting that would need less memory.
type change struct {
	say   string
	setup Setup
}

// worst returns the highest level of all places.
func (e Estimate) worst(rooms map[string]Room) record.RiskLevel {
	level := record.RiskLow
	for _, n := range e.Needs() {
		if room, ok := rooms[n.Place]; ok && grave(n.level(room.Free)) > grave(level) {
			level = n.level(room.Free)
		}
	}
	return level
}

// recommend lists the changes that need less memory of a place, with the result: those that fit, or the others if none
// does.
func (e Estimate) recommend(n Need, rooms map[string]Room) []string {
	advice, now := map[record.RiskLevel][]string{}, grave(e.worst(rooms))
	for _, c := range e.changes(rooms) {
		other, err := Of(e.Model, c.setup)
		if err != nil {
			continue
		}
		less, ok := other.NeedAt(n.Place)
		level := other.worst(rooms)
		if !ok || grave(level) >= now && n.Best-less.Best < n.Best/20 { // saves less than 5%
			continue
		}
		advice[level] = append(advice[level], fmt.Sprintf("%s: %s instead of %s, %s", c.say, words.Size(less.Best),
			words.Size(n.Best), level.Words()))
	}
	out := append(advice[record.RiskLow], advice[record.RiskMedium]...)
	if len(out) == 0 {
		out = advice[record.RiskHigh]
	}
	switch {
	case n.Place == RAM:
		out = append(out, "close other programs, or use a machine with more memory")
	case n.Place == Buffer && n.What == largestTensor:
		out = append(out, "use an adapter with larger buffers (--adapter), or a model with a smaller vocabulary")
	}
	return out
}

// contexts returns the largest shorter contexts that fit and that are tight, in steps of 256 tokens; if none does, the
// shortest.
func (e Estimate) contexts(rooms map[string]Room) []int {
	const step = 256
	s := e.Setup
	least, most := 2, (s.Context-1)/step
	if s.OutputLen > 0 {
		least = max(least, int(ceil(int64(s.InputLen+s.OutputLen), step)))
	}
	if longest := e.Model.MaxContext; longest > 0 { // a run refuses longer ones
		most = min(most, longest/step)
	}
	if most < least {
		return nil
	}
	now, out := grave(e.worst(rooms)), []int{}
	for _, level := range []record.RiskLevel{record.RiskLow, record.RiskMedium} {
		n := sort.Search(most-least+1, func(i int) bool {
			other, err := Of(e.Model, e.at(step*(least+i)))
			return err != nil || grave(other.worst(rooms)) > grave(level)
		})
		if n > 0 && grave(level) < now {
			out = append(out, step*(least+n-1))
		}
	}
	if len(out) == 0 {
		out = append(out, step*least)
	}
	return slices.Compact(out)
}

// at returns the setup with another context.
func (e Estimate) at(context int) Setup {
	s := e.Setup
	s.Context = context
	s.InputLen = min(s.InputLen, context-s.OutputLen)
	return s
}

// changes returns the settings that a user could change.
func (e Estimate) changes(rooms map[string]Room) []change {
	s := e.Setup
	var out []change
	add := func(say string, set func(*Setup)) {
		c := change{say: say, setup: s}
		set(&c.setup)
		out = append(out, c)
	}
	for _, n := range e.contexts(rooms) {
		add(fmt.Sprintf("a context of %d tokens (--context %d)", n, n), func(c *Setup) { *c = e.at(n) })
	}
	r := e.runtime()
	if r.saves != nil {
		r.saves(e, add)
	}
	for _, o := range r.settings {
		if o.reducible(s) {
			add(o.Advice, func(c *Setup) { o.set(c, o.Less) })
		}
	}
	if bits := float64(8*e.Component(Weights).Best) / float64(max(e.Model.Parameters, 1)); e.Model.Parameters > 0 &&
		bits > 6 {
		quantization := s.Engine.FourBits
		add("weights in "+quantization, func(c *Setup) { c.Quantization, c.DType = quantization, "" })
	}
	return out
}
