package chart

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/memory"
	"llmparity/internal/record"
	"llmparity/reports/plain"
)

// pointBudget bounds the points of all launches of the report together, and so the size of the file.
const pointBudget = 45000

// MemoryOverTime draws one chart per cell, with one drawing per launch.
func MemoryOverTime(v *View) []Chart {
	all, drawn := make([][]*record.Attempt, len(v.Res.Cells)), make([][]*record.Attempt, len(v.Res.Cells))
	lines := 0
	for i, c := range v.Res.Cells {
		all[i] = v.launchesOf(i)
		drawn[i] = v.fewer(c, all[i])
		for _, a := range drawn[i] {
			lines += len(a.Sources) + 2
		}
	}
	points := min(240, max(15, pointBudget/(lines+1)))
	var out []Chart
	for i := range v.Res.Cells {
		if c, ok := v.memoryOf(i, points, drawn[i]); ok {
			if v.Paper { // the page says it once above the charts
				c.Note = "Heavy line: total PSS. Thin lines: PSS of each process. Dashed: sum of RSS, which counts shared pages " +
					"more than once. Bands: phases."
			}
			if n := len(all[i]); n > len(drawn[i]) {
				c.Note = fmt.Sprintf("%d of %d launches are drawn, to keep the page small; the rest are in totals.csv and samples.csv.",
					len(drawn[i]), n)
			}
			out = append(out, c)
		}
	}
	return out
}

// launchesOf are the launches of a cell that have something to draw.
func (v *View) launchesOf(cell int) []*record.Attempt {
	c := v.Res.Cells[cell]
	var out []*record.Attempt
	for _, a := range v.Runs[c.Run].Attempts {
		if a.Cell == c.Spec.ID && (len(a.Totals) > 0 || c.Foreign()) {
			out = append(out, a)
		}
	}
	return out
}

// fewer keeps the launches that the page has room for: first the representative one, then those that failed, then the
// others in order.
func (v *View) fewer(c *compare.Cell, all []*record.Attempt) []*record.Attempt {
	if v.Paper {
		return all
	}
	rank := func(a *record.Attempt) int {
		switch {
		case a.ID == c.Representative:
			return 0
		case a.Status != record.OK:
			return 1
		}
		return 2
	}
	kept := slices.SortedStableFunc(slices.Values(all), func(a, b *record.Attempt) int { return rank(a) - rank(b) })
	kept = kept[:min(len(kept), v.launchesDrawn())]
	slices.SortFunc(kept, func(a, b *record.Attempt) int { return a.ID - b.ID })
	return kept
}

func (v *View) memoryOf(i, points int, launches []*record.Attempt) (Chart, bool) {
	c := v.Res.Cells[i]
	name := plain.Line(c.Label)
	out := Chart{ID: fmt.Sprintf("memory-%d", i), Title: name, Unit: "MiB", Wide: true, Cell: i + 1,
		Choice: plain.TitleCase(c.Repeated()),
		Label:  "Lines of memory over time for " + name + ", with the phases as bands"}
	for n, a := range launches {
		if a.ID == c.Representative || n == 0 {
			out.Chosen, out.Table = n, phaseTable(a)
		}
		out.Drawings = append(out.Drawings, Drawing{Name: launchName(c, a), Caption: phaseWords(a),
			Options: v.timeline(i, a, points), OfOneLaunch: true})
	}
	return out, len(launches) > 0
}

func launchName(c *compare.Cell, a *record.Attempt) string {
	name := fmt.Sprintf("%s %d", c.Repeated(), a.Repetition)
	switch {
	case a.Warmup:
		name = "warm-up launch"
	case a.Status == record.Failed:
		name += " (failed: " + string(a.Class) + ")"
	case a.Status != record.OK:
		name += " (" + string(a.Status) + ")"
	case a.ID == c.Representative:
		name += " (closest to the median)"
	}
	return name
}

// timeline draws one launch: the total first, then each process by each method.
func (v *View) timeline(cell int, a *record.Attempt, points int) map[string]any {
	zero := a.BeginNS
	if len(a.Phases) > 0 {
		zero = a.Phases[0].BeginNS
	}
	selected := map[string]bool{"RSS sum": true} // of what can be clicked in the legend
	l := newLine("seconds", 0)
	l.Legend.Selected = selected
	add := func(name string, data []xy, colour string, width float32, kind string) {
		if len(data) == 0 {
			return
		}
		data = thinned(data, points)
		looks := []style{stroke(colour, width, kind, len(data) == 1)}
		if len(l.MultiSeries) == 0 {
			looks = append(looks, bands(a, zero))
		}
		addLine(l, name, pairs(data), looks...)
	}
	rss := func(method string) func(*record.TotalRow) (int64, float64) {
		return func(t *record.TotalRow) (int64, float64) {
			if t.Method != method {
				return t.NS, math.NaN()
			}
			return t.NS, t.RSS
		}
	}
	foreign := v.Res.Cells[cell].Foreign()
	if foreign {
		add("RSS sum", series(a.Totals, zero, rss(record.MethodForeign)), v.Colour(cell), 3, "solid")
		for _, line := range []struct{ name, value, kind string }{
			{"JavaScript heap", "heap_used_bytes", "dashed"}, {"WebGPU memory", "webgpu_bytes", "dotted"}} {
			add(line.name, series(a.Metrics, zero, func(m *record.MetricRow) (int64, float64) {
				if m.Name != line.value {
					return m.NS, math.NaN()
				}
				return m.NS, m.Value / record.MiB
			}), v.Colour(cell), 2, line.kind)
		}
	} else {
		add("total PSS", series(a.Totals, zero, func(t *record.TotalRow) (int64, float64) { return t.NS, t.PSS }),
			v.Colour(cell), 3, "solid")
		add("RSS sum", series(a.Totals, zero, rss(record.MethodStatm)), "var(--muted)", 1.2, "dashed")
	}
	all := processes(a)
	for n, s := range all {
		for _, id := range s.ids {
			what, kind := "PSS", "solid"
			if a.Sources[id].Method != record.MethodSmapsRollup {
				what, kind = "RSS", "dotted"
			}
			if len(all) == 1 && (what == "PSS" || foreign) {
				continue // it is the total
			}
			name := s.name + " " + what
			selected[name] = what == "PSS"
			add(name, series(a.Samples, zero, func(r *record.SampleRow) (int64, float64) {
				switch {
				case r.Source != id:
					return r.NS, math.NaN()
				case what == "RSS":
					return r.NS, r.RSS
				}
				return r.NS, r.PSS
			}), fmt.Sprintf("var(--p%d)", n%partColours), 1.4, kind)
		}
	}
	return options(l)
}

// pairs round to milliseconds and hundredths of a MiB.
func pairs(points []xy) [][2]any {
	out := make([][2]any, len(points))
	for i, p := range points {
		out[i] = [2]any{math.Round(p.x*1000) / 1000, digits(p.y)}
	}
	return out
}

func seconds(ns, zero int64) float64 { return float64(ns-zero) / 1e9 }

// xy is a point of a series.
type xy struct{ x, y float64 }

// series are the points of rows; NaN is none.
func series[Row any](rows []Row, zero int64, of func(*Row) (ns int64, y float64)) []xy {
	var out []xy
	for i := range rows {
		if ns, y := of(&rows[i]); !math.IsNaN(y) {
			out = append(out, xy{seconds(ns, zero), y})
		}
	}
	return out
}

// thinned is a long series in about n points; n is at least 3. It is cut into stretches of equally many points, and the
// first, the lowest and the highest point of each are kept, and the very last point. So a drawing loses no peak and
// shows the range of the values in each stretch. LTTB (largest triangle three buckets) would draw smoother lines, but
// it keeps one point for each stretch and may omit a peak.
func thinned(points []xy, n int) []xy {
	if len(points) <= n {
		return points
	}
	each := (len(points) + n/3 - 1) / (n / 3)
	var kept []int
	for begin := 0; begin < len(points); begin += each {
		lo, hi := begin, begin
		for i := begin; i < min(begin+each, len(points)); i++ {
			if points[i].y < points[lo].y {
				lo = i
			}
			if points[i].y > points[hi].y {
				hi = i
			}
		}
		kept = append(kept, begin, min(lo, hi), max(lo, hi))
	}
	var out []xy
	for _, i := range slices.Compact(append(kept, len(points)-1)) {
		out = append(out, points[i])
	}
	return out
}

// process is a process and the sources that read it.
type process struct {
	role, name string
	pid        int
	ids        []int
}

// processes are in the order of attachment; roles that occur twice include the pid.
func processes(a *record.Attempt) []process {
	var out []process
	at, times := map[int]int{}, map[string]int{} // by pid, and by role
	for _, id := range slices.Sorted(maps.Keys(a.Sources)) {
		s := a.Sources[id]
		if _, seen := at[s.PID]; !seen {
			at[s.PID] = len(out)
			times[s.Role]++
			out = append(out, process{role: s.Role, name: plain.Line(s.Role), pid: s.PID})
		}
		out[at[s.PID]].ids = append(out[at[s.PID]].ids, id)
	}
	for i := range out {
		p := &out[i]
		if times[p.role] > 1 {
			p.name = fmt.Sprintf("%s %d", p.name, p.pid)
		}
		slices.SortStableFunc(p.ids, func(x, y int) int {
			return cmp.Compare(a.Sources[x].Method, a.Sources[y].Method)
		})
	}
	return out
}

// bands marks the phases behind a series. A short phase has no name there; the caption names all.
func bands(a *record.Attempt, zero int64) style {
	var all []band
	for _, p := range a.Phases {
		all = append(all, band{string(p.Name), seconds(p.BeginNS, zero), seconds(p.EndNS, zero)})
	}
	return banded(all)
}

func phaseWords(a *record.Attempt) string {
	if len(a.Phases) == 0 {
		return "No phase was completed."
	}
	zero := a.Phases[0].BeginNS
	var words []string
	for _, p := range a.Phases {
		words = append(words, fmt.Sprintf("%s %.3f–%.3f s", p.Name, seconds(p.BeginNS, zero), seconds(p.EndNS, zero)))
	}
	return strings.Join(words, " · ")
}

func phaseTable(a *record.Attempt) *plain.Grid {
	if len(a.Phases) == 0 {
		return nil
	}
	t := &plain.Grid{Head: []string{"phase", "start (s)", "length (s)", "highest total PSS (MiB)",
		"highest RSS sum (MiB)"}}
	for _, p := range a.Phases {
		pss, rss := memory.PhasePeaks(a, p.Name)
		t.Rows = append(t.Rows, []string{string(p.Name), fmt.Sprintf("%.3f", seconds(p.BeginNS, a.Phases[0].BeginNS)),
			fmt.Sprintf("%.3f", p.Duration().Seconds()), plain.OrNone(pss), plain.OrNone(rss)})
	}
	return t
}
