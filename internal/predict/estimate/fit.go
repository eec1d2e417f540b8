package estimate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/kit/words"
	"llmparity/internal/record"
)

// Fit is the answer to whether a model fits where it would run.
type Fit struct {
	Fits      *bool  // nil: unknown
	Available int64  // at the deciding place; 0: unknown
	Spare     int64  // Available less the need; negative if memory is missing
	Reason    string // why it does not fit, why that is unknown, or why it is tight
	answer    string
}

// Fit answers from a risk. A high risk means no, because a run refuses the cell. refused is the reason, if any, for
// which a run refuses the model regardless of its size.
func (e Estimate) Fit(r record.Risk, refused string) Fit {
	var f Fit
	p, known := deciding(r)
	if known {
		f.Available, f.Spare = p.Free, p.Free-p.Need
	}
	no, yes := false, true
	why := e.unsure(r)
	switch tooMuch := known && p.Level == record.RiskHigh; {
	case refused != "":
		f.Fits, f.Reason = &no, refused
		f.answer = "cannot run here: " + refused
	case tooMuch:
		f.Fits, f.Reason = &no, e.tooMuch(p)
		f.answer = "does not fit: " + f.Reason
	case why != "":
		f.Reason, f.answer = why, "unknown: "+why
	default:
		f.Fits, f.answer = &yes, "fits: "+needs(p)
		if p.Level == record.RiskMedium {
			f.Reason = "tight: more than 80% of it"
			if p.High > p.Free {
				f.Reason = "tight: may need up to " + words.Size(p.High)
			}
			f.answer += "; " + f.Reason
		}
		if most := e.Model.MaxContext; most > 0 && e.Setup.Context > most {
			f.answer += fmt.Sprintf("; a run refuses more than the model's maximum of %d", most)
		}
	}
	return f
}

// String returns the answer as one line.
func (f Fit) String() string { return f.answer }

// deciding returns the place that decides: the fullest place that is too small, memory first; then memory that is
// tight; then GPU memory, if the model is there.
func deciding(r record.Risk) (record.Place, bool) {
	high := func(p record.Place) bool { return p.Level == record.RiskHigh }
	for _, is := range []func(record.Place) bool{
		func(p record.Place) bool { return high(p) && isMemory(p.Name) }, high,
		func(p record.Place) bool { return p.Level == record.RiskMedium && isMemory(p.Name) },
		func(p record.Place) bool { return p.Name == VRAM },
		func(p record.Place) bool { return isMemory(p.Name) },
	} {
		if i := slices.IndexFunc(r.Places, is); i >= 0 {
			return r.Places[i], true
		}
	}
	return record.Place{}, false
}

func isMemory(place string) bool { return place == RAM || place == VRAM }

// kvFlags are the flags that give the size of the KV cache.
const kvFlags = "--num-layers, --num-heads, --num-kv-heads and --head-dim"

// unsure returns why a small enough sum does not prove that the model fits, or "".
func (e Estimate) unsure(r record.Risk) string {
	for _, n := range e.Needs() {
		has := slices.ContainsFunc(r.Places, func(p record.Place) bool { return p.Name == n.Place })
		if !has && isMemory(n.Place) {
			flag := map[string]string{RAM: "--ram-gb", VRAM: "--gpu-memory-gb"}[n.Place]
			return fmt.Sprintf("needs about %s; free %s is unknown, set %s", words.Size(n.Best), placeWords[n.Place], flag)
		}
	}
	switch m, s := e.Model, e.Setup; {
	case e.beyond():
		p, _ := deciding(r)
		need, free := pair(p.Need, p.Free)
		return fmt.Sprintf("%s has a context of %d tokens and states no size for %d; that needs more than %s, %s available; "+
			"a config.json of the model gives it",
			m.Stated.By, m.Stated.Context, s.Context, need, free)
	case m.Stated == nil && e.Component(KVReserved).Name == "":
		return "the size of the KV cache is unknown; set " + kvFlags
	}
	return ""
}

// beyond reports whether a catalogue states the size only for a shorter context, and nothing else says what more takes.
func (e Estimate) beyond() bool {
	m := e.Model.Stated
	return m != nil && m.PerToken == 0 && e.Setup.Context > m.Context
}

// needs compares a need with the memory of its place.
func needs(p record.Place) string {
	need, free := pair(p.Need, p.Free)
	return fmt.Sprintf("needs about %s, %s %s", need, free,
		map[bool]string{false: "available", true: "of GPU memory available"}[p.Name == VRAM])
}

// tooMuch returns in a few words what does not fit.
func (e Estimate) tooMuch(p record.Place) string {
	need, free := pair(p.Need, p.Free)
	holds, _ := e.NeedAt(p.Name)
	switch {
	case isMemory(p.Name):
		return needs(p) + kept(p)
	case p.Name == Buffer && p.Free == 0:
		return p.How
	case p.Name == Buffer:
		return fmt.Sprintf("%s needs a WebGPU buffer of %s; the limit is %s", holds.What, need, free)
	}
	return fmt.Sprintf("%s need about %s of %s; the limit is %s", holds.What, need, placeWords[p.Name], free)
}

// kept says which rule decides where a need is too much, although it is not more than what is free; else "".
func kept(p record.Place) string {
	if !isMemory(p.Name) || p.Level != record.RiskHigh || p.Need > p.Free {
		return ""
	}
	return fmt.Sprintf(", of which %.0f%% must stay free", 100*(1-full))
}

// pair formats two sizes with as few digits as tell them apart.
func pair(a, b int64) (string, string) {
	for digits := 1; ; digits++ {
		if x, y := short(a, digits), short(b, digits); x != y || a == b || digits == 4 {
			return x, y
		}
	}
}

func short(n int64, digits int) string {
	unit, v := "MiB", float64(n)/mib
	if n >= gib {
		unit, v = "GiB", v/kib
	}
	text := strconv.FormatFloat(v, 'f', digits, 64) // has a point: digits is above 0
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + " " + unit
}
