package estimate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/record"
)

// Fit is the answer to whether a model fits where it would run.
type Fit struct {
	Fits      *bool  // nil: not known
	Available int64  // at the place that decides; 0: not known
	Spare     int64  // what the model leaves of it; below zero is what is missing
	Reason    string // why it does not fit, why that is not known, or what makes it tight
	place     string
}

// Fit answers by a risk. A high risk is a no, because a run refuses the cell then. Refused is why a run refuses the
// model whatever its size is, or "".
func (e Estimate) Fit(r record.Risk, refused string) Fit {
	var f Fit
	p, known := deciding(r)
	if known {
		f = Fit{Available: p.Free, Spare: p.Free - p.Need, place: p.Name}
	}
	no, yes := false, true
	switch why := e.unsure(r); {
	case refused != "":
		f.Fits, f.Reason = &no, refused
	case known && p.Level == record.RiskHigh:
		f.Fits, f.Reason = &no, e.tooMuch(p)
	case why != "":
		f.Reason = why
	default:
		f.Fits = &yes
		if p.Level == record.RiskMedium && p.High > p.Free {
			f.Reason = "tight: it may take up to " + sized(p.High)
		} else if p.Level == record.RiskMedium {
			f.Reason = "tight"
		}
	}
	return f
}

// deciding is the place that settles the answer: the fullest one that is too small, memory first; else memory that is
// tight; else a GPU's, where the model lies there.
func deciding(r record.Risk) (record.Place, bool) {
	memory := func(p record.Place) bool { return p.Name == RAM || p.Name == VRAM }
	high := func(p record.Place) bool { return p.Level == record.RiskHigh }
	for _, is := range []func(record.Place) bool{
		func(p record.Place) bool { return high(p) && memory(p) }, high,
		func(p record.Place) bool { return p.Level == record.RiskMedium && memory(p) },
		func(p record.Place) bool { return p.Name == VRAM }, memory,
	} {
		if i := slices.IndexFunc(r.Places, is); i >= 0 {
			return r.Places[i], true
		}
	}
	return record.Place{}, false
}

// unsure says why a sum that is small enough does not prove that the model fits; "" where it does.
func (e Estimate) unsure(r record.Risk) string {
	for _, n := range e.Needs() {
		has := slices.ContainsFunc(r.Places, func(p record.Place) bool { return p.Name == n.Place })
		if !has && (n.Place == RAM || n.Place == VRAM) {
			flag := map[string]string{RAM: "--ram-gb", VRAM: "--gpu-memory-gb"}[n.Place]
			return fmt.Sprintf("needs about %s, and how much is free of %s is not known; give %s",
				sized(n.Best), placeWords[n.Place], flag)
		}
	}
	switch m, s := e.Model, e.Setup; {
	case m.Partial:
		return "parts of the model are not here, and their weights are not counted"
	case m.Stated != nil && s.Context > m.Stated.Context:
		return fmt.Sprintf("%s states %s for a context of %d tokens, and %d need more",
			m.Stated.By, sized(m.Stated.Bytes), m.Stated.Context, s.Context)
	case m.Stated == nil && e.Component(KVReserved).Name == "":
		return "nothing is known of the KV cache; --num-layers, --num-heads, --num-kv-heads and --head-dim give its size"
	}
	return ""
}

// tooMuch says in a few words what does not fit.
func (e Estimate) tooMuch(p record.Place) string {
	need, free := pair(p.Need, p.Free)
	i := slices.IndexFunc(e.Needs(), func(n Need) bool { return n.Place == p.Name })
	what, gpu := e.Needs()[i].What, ""
	if p.Name == VRAM {
		gpu = " of GPU memory"
	}
	switch memory := p.Name == RAM || p.Name == VRAM; {
	case memory && p.Need <= p.Free:
		return fmt.Sprintf("needs about %s of %s%s, and a run leaves %.0f%% free", need, free, gpu, 100*(1-full))
	case memory:
		return fmt.Sprintf("needs about %s%s, %s available", need, gpu, free)
	case p.Name == Buffer && p.Free == 0:
		return p.How
	case p.Name == Buffer:
		return fmt.Sprintf("%s needs a WebGPU buffer of %s, the largest is %s", what, need, free)
	}
	return fmt.Sprintf("%s need about %s of %s, which ends at %s", what, need, placeWords[p.Name], free)
}

// String is the answer as a line.
func (f Fit) String() string {
	switch {
	case f.Fits == nil:
		return "unknown: " + f.Reason
	case !*f.Fits:
		return "no: " + f.Reason
	}
	spare, all := pair(f.Spare, f.Available)
	text := fmt.Sprintf("fits: yes, %s spare of %s", spare, all)
	if f.place == VRAM {
		text += " (GPU memory)"
	}
	if f.Reason != "" {
		text += "; " + f.Reason
	}
	return text
}

// pair are two sizes in one unit, which the first one has, in as few digits as tell them apart. A first one that is
// far smaller has a unit of its own.
func pair(a, b int64) (string, string) {
	unit, bytes := "MiB", int64(mib)
	if max(a, b) >= gib {
		unit, bytes = "GiB", gib
	}
	in := func(n int64, digits int) string {
		text := strconv.FormatFloat(float64(n)/float64(bytes), 'f', digits, 64)
		return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") // there is a point: digits is above 0
	}
	if unit == "GiB" && a < gib/10 {
		return fmt.Sprintf("%.0f MiB", float64(a)/mib), in(b, 1) + " GiB"
	}
	digits := 1
	for ; a != b && digits < 4 && in(a, digits) == in(b, digits); digits++ {
	}
	return in(a, digits) + " " + unit, in(b, digits)
}
