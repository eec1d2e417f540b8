package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/growth"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/reports/plain"
)

// KVCache is one chart of the KV cache over contexts, for all engines: points are measured, the dashed lines are the
// formula. It is empty unless some engine reports the cache at several contexts.
func (v *View) KVCache() []Chart {
	row := figure.New(figure.KVReserved)
	l := newLine(inTokens("context"), 0)
	l.Legend.Show = opts.Bool(false)
	l.YAxisList[0].Name, l.YAxisList[0].Min = "KV cache (MiB)", 0
	points := charts.NewScatter()
	out := Chart{ID: "growth-context", Title: "KV cache, reserved, by context", Unit: "MiB", Along: "cell (model)",
		Label: "Points of the KV cache over the context for each engine, with the formula; the table has the same figures",
		Table: &plain.Grid{Head: []string{"cell", "context", "median (MiB)", "95% interval", "launches"}}}
	var lines evidence.Groups[float64, string] // engines by the formula's bytes a token
	var ends evidence.Groups[[2]float64, string]
	var at []float64
	var counts []int
	var cells []*compare.Cell
	caption := ""
	for _, s := range v.Res.Sweeps {
		if s.Axis != growth.AxisContext {
			continue
		}
		var data []opts.ScatterData
		for n, i := range s.Cells {
			c := v.Res.Cells[i]
			f := along(c, row)
			if !f.Known() {
				continue
			}
			size := pointSize(len(points.MultiSeries))
			data = append(data, spot(plain.Line(s.Label), s.At[n], fine(f.Center()), size))
			cells = append(cells, c)
			at, counts = append(at, s.At[n]), append(counts, f.N)
			out.Table.Rows = append(out.Table.Rows, []string{plain.Line(c.Label), plain.Num(s.At[n]),
				plain.Num(f.Center()), plain.IntervalWords(f), strconv.Itoa(f.N)})
		}
		if len(data) < 2 {
			continue
		}
		v.addPoints(points, s, data)
		if r := slices.IndexFunc(s.Rates, func(r growth.Rate) bool { return r.Of == growth.OfReserved }); r >= 0 {
			caption = plain.Joined(" ", caption, plain.Line(s.Label)+": "+growthCaption(s.Rates[r], s.Theory))
		}
		slope := 0.0 // without a formula the points alone have a name
		if s.Theory != nil {
			slope = s.Theory.Bytes
		}
		evidence.AddNew(&lines, slope, plain.Line(s.Label))
		end := data[len(data)-1].Value.([]any)
		evidence.AddNew(&ends, [2]float64{end[0].(float64), roughly(end[1].(float64))}, plain.Line(s.Label))
	}
	if len(points.MultiSeries) == 0 {
		return nil
	}
	slices.Sort(at)
	addFormulas(l, &lines, at[len(at)-1])
	addNames(points, &ends)
	out.Note, out.Setup = kvWords(&lines, counts), Setup(cells)
	l.Overlap(points)
	out.Drawings = []Drawing{{Caption: caption, Options: ticked(l, slices.Compact(at)), Figure: figure.KVReserved}}
	return []Chart{out}
}

// addPoints adds the points of a sweep, in a shape that does not hide others at the same place: every second one is
// hollow and larger.
func (v *View) addPoints(points *charts.Scatter, s growth.Sweep, data []opts.ScatterData) {
	n := len(points.MultiSeries)
	series := charts.SingleSeries{Type: "scatter", Name: plain.Line(s.Label), Data: data,
		ItemStyle: &opts.ItemStyle{Color: v.Colour(s.Cells[0])}}
	if n%2 == 1 {
		series.ItemStyle = &opts.ItemStyle{Color: "transparent", BorderColor: v.Colour(s.Cells[0]), BorderWidth: 2.5}
	}
	series.Symbol = []string{"circle", "circle", "rect", "rect", "triangle", "diamond"}[n%6]
	points.MultiSeries = append(points.MultiSeries, series)
}

// roughly rounds a size to two digits: points that are as close as that have one name.
func roughly(mib float64) float64 {
	if mib <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(mib))-1)
	return math.Round(mib/unit) * unit
}

func pointSize(series int) int { return []int{9, 16}[series%2] }

// addFormulas draws each formula from no token on.
func addFormulas(l *charts.Line, lines *evidence.Groups[float64, string], to float64) {
	for bytes, engines := range lines.All() {
		if bytes > 0 {
			addLine(l, explain.And(engines, 4)+", formula", [][2]any{{0, 0}, datum(to, bytes*to/record.MiB)},
				stroke("var(--ink)", 1.4, "dashed", false))
		}
	}
}

// addNames writes the engines beside their last points: those that are at one place together.
func addNames(points *charts.Scatter, ends *evidence.Groups[[2]float64, string]) {
	var data []opts.ScatterData
	for at, engines := range ends.All() {
		data = append(data, spot(explain.And(engines, 4), at[0], at[1], 18))
	}
	label := opts.Label{Show: opts.Bool(true), Formatter: "{b}", Position: "top", Align: "right", FontSize: 12,
		Color: "var(--ink)"}
	s := charts.SingleSeries{Type: "scatter", Data: data, Symbol: "circle", Label: &label,
		ItemStyle: &opts.ItemStyle{Color: "transparent"}}
	points.MultiSeries = append(points.MultiSeries, s)
}

// kvWords say what is drawn, by how much the cache grows by the formula, and of how many launches.
func kvWords(lines *evidence.Groups[float64, string], counts []int) string {
	words := fmt.Sprintf("Points: medians over launches, %s a point.", from(counts))
	var formulas []string
	for bytes, engines := range lines.All() {
		if bytes > 0 {
			formulas = append(formulas, fmt.Sprintf("%s KiB a token (%s)", explain.Amount(bytes/1024),
				explain.And(engines, 4)))
		}
	}
	if len(formulas) > 0 {
		words += " Dashed: the formula, " + explain.And(formulas, len(formulas)) + "."
	}
	return words
}

// heldBy is memory over contexts or output lengths, a chart an engine: a browser's memory is so much larger than a
// native engine's that in one chart neither would be seen to grow.
func (v *View) heldBy(a drawnOver, without string) []Chart {
	var out []Chart
	by := strings.TrimPrefix(a.title, "Memory by ")
	for n, s := range v.Res.Sweeps {
		if s.Axis == a.axis {
			a.id, a.title = fmt.Sprintf("growth-%s-%d", a.axis, n), plain.Line(s.Label)+", memory by "+by
			drawn := v.drawn(a, []growth.Sweep{s}, without)
			for i := range drawn {
				if of := drawn[i].Drawings; len(of) == 1 { // nothing else says of which memory
					what, _, _ := strings.Cut(of[0].Name, " (")
					drawn[i].Title = plain.Line(s.Label) + ", " + explain.Lower(what) + " by " + by
				}
			}
			out = append(out, drawn...)
		}
	}
	return out
}
