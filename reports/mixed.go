package reports

import (
	"fmt"
	"slices"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// ofKind is requests of one kind, in a mix or in a cell of their own.
type ofKind struct {
	cell   int
	name   string
	figure func(name string) evidence.Figure
}

// kindsAndAlone lists the kinds of all mixes, each after the cell that has it alone, if there is one.
func (v *view) kindsAndAlone() []ofKind {
	var out []ofKind
	seen := map[int]bool{}
	for i := range v.res.Cells {
		c := &v.res.Cells[i]
		if c.Load == nil {
			continue
		}
		for _, k := range c.Load.Kinds {
			for j := range v.res.Cells {
				if o := &v.res.Cells[j]; !seen[j] && byItself(o, c, k.Kind) {
					seen[j] = true
					out = append(out, ofKind{j, line(o.Label) + ": " + line(k.Kind) + " alone", o.Figure})
				}
			}
			out = append(out, ofKind{i, line(c.Label) + ": " + line(k.Kind) + " with others", k.Figure})
		}
	}
	return out
}

// byItself tells that a cell has only requests of one kind of another cell's mix.
func byItself(o, mixed *compare.Cell, kind string) bool {
	if o.Load == nil || len(o.Load.Kinds) > 0 || o.Run != mixed.Run || o.Spec.Engine != mixed.Spec.Engine ||
		o.Spec.Model.SHA256 != mixed.Spec.Model.SHA256 {
		return false
	}
	for _, k := range mixed.Spec.Traffic.Mix {
		if k.Name == kind {
			return sameRequest(k, o.Spec)
		}
	}
	return false
}

func sameRequest(k record.Kind, spec record.Cell) bool {
	if k.MaxTokens != spec.MaxTokens {
		return false
	}
	if k.InputTokens > 0 || spec.InputTokens > 0 {
		return k.InputTokens == spec.InputTokens
	}
	return k.Prompt == spec.Prompt
}

// mixedLengths draws latency percentiles of short and long requests, one drawing per kind of time.
func mixedLengths(v *view) []chart {
	kinds := v.kindsAndAlone()
	if len(kinds) == 0 {
		return nil
	}
	out := chart{ID: "fig5_mixed_lengths_latency", Title: "Short and long requests together",
		Choice: "Time", Height: rowsHeight(len(figure.Quantiles()), len(kinds)),
		Note:  "Percentiles of each launch's requests, median over launches. Percentiles with too few requests are missing.",
		Label: "Bars of latency percentiles for each kind of request, alone and with others; the table below has the same figures",
		Table: &grid{Head: []string{"requests", "time", "median", "95% interval", "launches"}}}
	for _, of := range figure.TimesOfTraffic() {
		// what no launch has requests enough for takes no room
		shares := slices.DeleteFunc(figure.Quantiles(), func(share float64) bool {
			return !slices.ContainsFunc(
				kinds, func(k ofKind) bool { return k.figure(figure.Percentile(of.Name, share)).Known() })
		})
		t := &barTable{apart: true}
		for _, share := range shares {
			t.bars = append(t.bars, fmt.Sprintf("p%g", 100*share))
		}
		for n, k := range kinds {
			at := func(bar int) evidence.Figure { return k.figure(figure.Percentile(of.Name, shares[bar])) }
			t.add(k.name, func(bar int) float64 { return at(bar).Center() }, inked(v.colour(k.cell), fade(n, kinds)))
			for bar, name := range t.bars {
				if f := at(bar); f.Known() {
					time := titleCase(of.Title) + ", " + name + " (ms)"
					out.Table.Rows = append(out.Table.Rows, []string{k.name, time,
						num(f.Center()), intervalWords(f), fmt.Sprint(f.N)})
				}
			}
		}
		if len(shares) > 0 {
			out.Drawings = append(out.Drawings, drawing{Name: titleCase(of.Title) + " (ms)", Options: t.options()})
		}
	}
	if len(out.Drawings) == 0 {
		return nil
	}
	return []chart{out}
}

// fade distinguishes kinds of one engine, which have the same colour.
func fade(at int, kinds []ofKind) float64 {
	before := 0
	for _, k := range kinds[:at] {
		if k.cell == kinds[at].cell {
			before++
		}
	}
	return []float64{1, 0.55, 0.3}[before%3]
}
