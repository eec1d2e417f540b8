package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Room is what is free at a place, and how that was found out.
type Room struct {
	Free int64
	How  string
}

// Parts of what is free at which a need becomes doubtful.
const (
	// tight: an increase is predicted within 10 to 15 %, and what a system calls available is itself an estimate, so
	// that four fifths may turn out to be all.
	tight = 0.80
	// full: the last twentieth of what is available is the page cache of programs that run; a system that takes it
	// reads them from disk again and again, or ends processes.
	full = 0.95
)

// level judges a need. Where a place ends at a byte the best guess decides alone.
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

// Risk judges whether what is predicted fits into what is free. A place of which it is not known how much is free is
// not judged; where that is the memory itself the risk is unknown, unless another place decides.
func (e Estimate) Risk(rooms map[string]Room) record.Risk {
	r := record.Risk{Level: record.RiskLow, Places: []record.Place{}}
	unknown := ""
	needs := map[string]Need{}
	for _, n := range e.Needs() {
		room, ok := rooms[n.Place]
		if !ok {
			if n.Place == RAM || n.Place == VRAM {
				unknown = n.Place
			}
			continue
		}
		p := record.Place{Name: n.Place, Need: n.Best, High: n.High, Free: room.Free, Level: n.level(room.Free),
			How: room.How}
		r.Places = append(r.Places, p)
		needs[n.Place] = n
		if grave(p.Level) > grave(r.Level) {
			r.Level = p.Level
		}
	}
	slices.SortStableFunc(r.Places, func(a, b record.Place) int { return cmp.Compare(filled(b), filled(a)) })
	if unknown != "" {
		r.Reasons = append(r.Reasons, "how much is free of "+placeWords[unknown]+" is not known")
		if r.Level == record.RiskLow {
			r.Level = record.RiskUnknown
		}
	}
	for _, p := range r.Places {
		if grave(p.Level) > grave(record.RiskLow) {
			r.Reasons = append(r.Reasons, e.reason(p))
		}
	}
	if i := slices.IndexFunc(r.Places, func(p record.Place) bool { return p.Level == r.Level }); i >= 0 &&
		r.Level != record.RiskLow {
		r.Recommendations = e.recommend(needs[r.Places[i].Name], rooms)
	}
	return r
}

// Unjudged is the risk of what is not predicted.
func Unjudged(why string) record.Risk {
	return record.Risk{Level: record.RiskUnknown, Places: []record.Place{}, Reasons: []string{why}}
}

func grave(l record.RiskLevel) int {
	return map[record.RiskLevel]int{record.RiskUnknown: 0, record.RiskLow: 1, record.RiskMedium: 2,
		record.RiskHigh: 3}[l]
}

func filled(p record.Place) float64 { return float64(p.Need) / float64(max(p.Free, 1)) }

// reason says in a line why a place is doubtful.
func (e Estimate) reason(p record.Place) string {
	text := fmt.Sprintf("%s: %s needed", placeWords[p.Name], sized(p.Need))
	if p.High > p.Need {
		text += fmt.Sprintf(", %s at most", sized(p.High))
	}
	text += fmt.Sprintf(", of %s that can be had (%s)", sized(p.Free), p.How)
	if p.Name == RAM || p.Name == VRAM {
		text += ": " + e.parts()
		if e.settable() && !e.Setup.NoMmap && p.Name == RAM && e.Component(Weights).Best > p.Need/4 {
			text += "; weights that are mapped could be dropped and read again, token by token, from disk"
		}
	}
	return text
}

// placeWords are the places' names for sentences.
var placeWords = map[string]string{RAM: "memory", VRAM: "the GPU's memory", Buffer: "a buffer of WebGPU's",
	Wasm:     "WebAssembly's memory",
	Renderer: "the renderer"}

// change is something that would take less.
type change struct {
	say   string
	setup Setup
	step  bool // of several that take ever less: the first that fits is the one to advise
}

// worst is the level of the place that is the worst off.
func (e Estimate) worst(rooms map[string]Room) record.RiskLevel {
	level := record.RiskLow
	for _, n := range e.Needs() {
		if room, ok := rooms[n.Place]; ok && grave(n.level(room.Free)) > grave(level) {
			level = n.level(room.Free)
		}
	}
	return level
}

// recommend says what would take less of a place, with what it would come to: what would fit first, and what wouldn't
// only where nothing does.
func (e Estimate) recommend(n Need, rooms map[string]Room) []string {
	advice := map[record.RiskLevel][]string{}
	stepped := map[record.RiskLevel]bool{}
	for _, c := range e.changes() {
		other, err := Of(e.Model, c.setup)
		if err != nil {
			continue
		}
		needs := other.Needs()
		i := slices.IndexFunc(needs, func(o Need) bool { return o.Place == n.Place })
		if i < 0 || n.Best-needs[i].Best < n.Best/20 { // not worth a word
			continue
		}
		level := other.worst(rooms)
		if c.step && (stepped[level] || stepped[record.RiskLow]) {
			continue
		}
		stepped[level] = stepped[level] || c.step
		advice[level] = append(advice[level], fmt.Sprintf("%s: %s in place of %s, %s", c.say, sized(needs[i].Best),
			sized(n.Best), map[record.RiskLevel]string{record.RiskLow: "which fits", record.RiskMedium: "which may fit",
				record.RiskHigh: "which is still too much by itself"}[level]))
	}
	out := append(advice[record.RiskLow], advice[record.RiskMedium]...)
	if len(out) == 0 {
		out = advice[record.RiskHigh]
	}
	switch {
	case n.Place == RAM:
		out = append(out, "close other programs, or run on a machine with more memory")
	case n.Place == Buffer && n.What == largestTensor:
		out = append(out, "take an adapter with larger buffers (--adapter), or a model with a smaller vocabulary")
	}
	return out
}

// changes are what a user could choose otherwise.
func (e Estimate) changes() []change {
	s := e.Setup
	var out []change
	add := func(say string, set func(*Setup)) {
		c := change{say: say, setup: s}
		set(&c.setup)
		out = append(out, c)
	}
	text := s.InputLen + s.OutputLen
	for n := s.Context / 2; n >= 512; n /= 2 {
		if most := e.Model.MaxContext; most > 0 && n > most {
			continue // a run refuses it
		}
		if n >= text || s.OutputLen == 0 {
			add(fmt.Sprintf("a context of %d tokens (--context %d)", n, n), func(c *Setup) {
				c.Context = n
				if c.InputLen+c.OutputLen > n {
					c.InputLen = n - c.OutputLen
				}
			})
			out[len(out)-1].step = true
		}
	}
	wide := strings.HasSuffix(e.DTypes.KVCache, "32") || strings.HasSuffix(e.DTypes.KVCache, "16")
	if e.runs(engine.GGML) && wide {
		add("a KV cache of q8_0 (in llama.cpp with flash attention on)",
			func(c *Setup) { c.KVDType, c.ValueType, c.NoFlash = "q8_0", "", false })
	}
	if e.settable() && s.UBatch > 128 {
		add("fewer tokens at a time (--llamacpp-ubatch 128)", func(c *Setup) { c.UBatch = 128 })
	}
	if n, _ := e.repacked(); n > 0 && !s.NoMmap {
		add("the file read in place of mapped (--llamacpp-mmap off), so that what is laid out anew is there once",
			func(c *Setup) { c.NoMmap = true })
	}
	if bits := float64(8*e.Component(Weights).Best) / float64(max(e.Model.Parameters, 1)); e.Model.Parameters > 0 &&
		bits > 6 {
		quantization := s.Engine.FourBits
		add("the model's weights in "+quantization, func(c *Setup) { c.Quantization, c.DType = quantization, "" })
	}
	return out
}
