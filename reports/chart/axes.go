package chart

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/growth"
	"llmparity/compare/timing"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/reports/plain"
)

// drawnOver is a chart of cells that differ along one axis.
type drawnOver struct {
	over            figure.Over // its figures; those of these units
	axis, id, title string
	units           []string
	from            string // where a record has the axis
}

// named are the charts over lengths and numbers of requests, whose names other programs and readers know. All other
// sweeps have those of unnamed.
var named = []drawnOver{
	{figure.Contexts, growth.AxisContext, "growth-context", "Memory by context", inMemory, "cell (model)"},
	{figure.Contexts, growth.AxisOutput, "growth-output_len", "Memory by output length", inMemory, "cell (max_tokens)"},
	{figure.Lengths, growth.AxisPrompt, "fig3_latency_vs_seqlen", "Latency by prompt length",
		append(inTime, "tokens/s"), "request (prompt_ids)"},
	{figure.Lengths, growth.AxisPrompt, "fig4_mem_vs_seqlen", "Memory by prompt length", inMemory,
		"request (prompt_ids)"},
	{figure.Requests, growth.AxisClients, "fig1_mem_vs_concurrency", "Memory by number of clients", inMemory,
		inTraffic},
	{figure.Requests, growth.AxisBatch, "fig1_mem_vs_batch_size", "Memory by batch size", inMemory, inTraffic},
	{figure.Requests, growth.AxisClients, "fig2_tps_vs_concurrency", "Tokens/s by number of clients", inSpeed,
		inTraffic},
	{figure.Requests, growth.AxisBatch, "fig2_tps_vs_batch_size", "Tokens/s by batch size", inSpeed, inTraffic},
	{figure.Requests, growth.AxisClients, "latency_vs_concurrency", "Latency by number of clients", inTime, inTraffic},
	{figure.Requests, growth.AxisBatch, "latency_vs_batch_size", "Latency by batch size", inTime, inTraffic},
}

var (
	inMemory  = []string{"MiB"}
	inSpeed   = []string{"tokens/s", "requests/s"}
	inTime    = []string{"ms"}
	inTraffic = "cell (traffic)"
)

// unnamed are the charts of an axis of sweeps that has none by name: temperature, threads, an engine's own field.
func unnamed(s growth.Sweep) []drawnOver {
	all := figure.Lengths | figure.Requests | figure.Contexts
	title := plain.Line(s.Title)
	return []drawnOver{
		{all, s.Axis, "latency_vs_" + s.Axis, "Latency by " + title, inTime, "cell"},
		{all, s.Axis, "speed_vs_" + s.Axis, "Speed by " + title, inSpeed, "cell"},
		{all, s.Axis, "memory_vs_" + s.Axis, "Memory by " + title, inMemory, "cell"},
	}
}

// DrawnOver draws the charts over contexts, lengths or requests.
func (v *View) DrawnOver(what figure.Over) []Chart {
	var out []Chart
	pss := func(c *compare.Cell) bool { return c.Figure(figure.PeakPSS).Known() }
	without := "" // a sum of RSS shows no growth that PSS does not
	if what == figure.Contexts && slices.ContainsFunc(v.Res.Cells, pss) {
		without = figure.PeakRSS
	}
	if what == figure.Contexts {
		out = v.KVCache()
	}
	for _, a := range named {
		switch {
		case a.over != what:
		case what == figure.Contexts:
			out = append(out, v.heldBy(a, without)...)
		default:
			out = append(out, v.drawn(a, v.Res.Sweeps, without)...)
		}
	}
	return out
}

// DrawnOverOthers draws the charts of sweeps that DrawnOver does not draw. Axes without numbers have none.
func (v *View) DrawnOverOthers() []Chart {
	var out []Chart
	seen := map[string]bool{}
	for _, a := range named {
		seen[a.axis] = true
	}
	for _, s := range v.Res.Sweeps {
		if seen[s.Axis] || s.Names != nil {
			continue
		}
		seen[s.Axis] = true
		for _, a := range unnamed(s) {
			out = append(out, v.drawn(a, v.Res.Sweeps, "")...)
		}
	}
	return out
}

func (v *View) drawn(a drawnOver, sweeps []growth.Sweep, without string) []Chart {
	figures := figure.Rows(func(r *figure.Row) bool {
		return r.Over&a.over != 0 && slices.Contains(a.units, r.Unit) && r.Name != without &&
			(a.axis != growth.AxisContext || a.over != figure.Contexts || r.Name != figure.KVReserved) // it has a chart
	})
	aggregateFirst := func(a, b *figure.Row) int { return int(b.Headline) - int(a.Headline) }
	slices.SortStableFunc(figures, aggregateFirst)
	return v.over(a.axis, sweeps, Chart{ID: a.id, Title: a.title, Along: a.from}, figures)
}

// along is a cell's figure, or what its engine holds at the end of the measurement.
func along(c *compare.Cell, r *figure.Row) evidence.Figure {
	switch {
	case r.Inside == nil:
		return c.Figure(r.Name)
	case c.Memory == nil:
		return evidence.Figure{}
	}
	return evidence.Find(c.Memory.Measure, r.Name)
}

// over draws one line per engine along an axis of sweeps, one drawing per figure: medians with intervals, and what the
// KV cache grows by as calculated.
func (v *View) over(axis string, sweeps []growth.Sweep, out Chart, figures []*figure.Row) []Chart {
	title := ""
	var at []float64
	var cells []*compare.Cell
	for _, s := range sweeps {
		if s.Axis == axis {
			title, at = plain.Line(s.Title), append(at, s.At...)
			for _, i := range s.Cells {
				cells = append(cells, v.Res.Cells[i])
			}
		}
	}
	slices.Sort(at)
	out.Setup = Setup(cells)
	out.Choice, out.Label = "Figure", "Lines of "+out.Title+" for each engine; the table below has the same figures"
	out.Table = &plain.Grid{Head: []string{"cell", title, "figure", "median", "95% interval", "launches"}}
	for _, f := range figures {
		l := lineChart(inTokens(title))
		dots := charts.NewScatter()
		name, drawn, caption := "", map[string]int{}, overWords
		var calculated [][][2]any
		var drawnTo extent
		for _, s := range sweeps {
			if s.Axis != axis {
				continue
			}
			var data [][2]any
			var lines []opts.MarkLineNameCoordItem
			for n, i := range s.Cells {
				x := along(v.Res.Cells[i], f)
				if !x.Known() {
					continue
				}
				name = plain.TitleCase(x.Title) + " (" + x.Unit + ")"
				data = append(data, datum(s.At[n], x.Center()))
				drawnTo.add(x.Center())
				for _, launch := range x.Values {
					drawnTo.add(launch.Value)
				}
				if iv := x.Interval; iv != nil {
					drawnTo.add(iv.Lo, iv.Hi)
					lines = append(lines, whisker(s.At[n], fine(iv.Lo), s.At[n], fine(iv.Hi)))
				}
				out.Table.Rows = append(out.Table.Rows, []string{plain.Line(v.Res.Cells[i].Label), plain.Num(s.At[n]),
					name, plain.Num(x.Center()), plain.IntervalWords(x), strconv.Itoa(x.N)})
			}
			if len(data) > 0 {
				addLine(l, plain.Line(s.Label), data, stroke(v.Colour(s.Cells[0]), 2.4, dash(drawn[s.Engine]), true),
					whiskers(lines, 2))
				dots.AddSeries(plain.Line(s.Label), v.launchesAt(s, f), inked(v.Colour(s.Cells[0]), 0.6))
				drawn[s.Engine]++
			}
			if at := slices.IndexFunc(s.Rates, func(r growth.Rate) bool { return r.Name == f.Name }); at >= 0 {
				caption += " " + plain.Line(s.Label) + ": " + growthCaption(s.Rates[at], s.Theory)
			}
			if t := s.Theory; t != nil && f.Over&figure.Contexts != 0 && len(data) > 1 && !s.Flat() {
				x0, x1 := s.At[0], s.At[len(s.At)-1]
				y0 := along(v.Res.Cells[s.Cells[0]], f).Center()
				y1 := y0 + t.Bytes*(x1-x0)/record.MiB
				drawnTo.add(y0, y1)
				calculated = append(calculated, [][2]any{datum(x0, y0), datum(x1, y1)})
			}
		}
		for _, line := range calculated {
			addLine(l, "KV cache, calculated", line, stroke("var(--ink)", 1.4, "dashed", false))
		}
		if l.YAxisList[0].Name = name; len(calculated) > 0 {
			caption += " Dashed: what the KV cache grows by, as calculated, from the first median on."
		}
		l.Overlap(dots)
		if name != "" {
			out.Drawings = append(out.Drawings, Drawing{Name: name, Caption: caption + drawnTo.words(),
				Options: drawnTo.broken(ticked(l, slices.Compact(at)), "yAxis"), Figure: f.Name})
		}
	}
	if len(out.Drawings) == 0 {
		return nil
	}
	return []Chart{out}
}

const overWords = "Lines: medians over launches. Dots: launches. Vertical lines: 95% intervals of the medians, which need " +
	"six launches."

// ticked are the options of a chart whose axis has ticks where something was measured, and nowhere else.
func ticked(l *charts.Line, at []float64) map[string]any {
	type ticks struct {
		CustomValues []float64 `json:"customValues"`
	}
	o := options(l)
	o["xAxis"] = []any{struct {
		opts.XAxis
		AxisLabel ticks `json:"axisLabel"`
		AxisTick  ticks `json:"axisTick"`
	}{l.XAxisList[0], ticks{at}, ticks{at}}}
	return o
}

// Setup says what ran in cells: the engines, each on its device, with its model, the dtype of its KV cache and its
// launches.
func Setup(cells []*compare.Cell) string {
	var by evidence.Groups[string, int]
	for _, c := range cells {
		if c.Foreign() || c.Launches.Counted == 0 {
			continue
		}
		words := plain.Joined(" ", plain.Line(c.Title()), plain.Line(c.On())) + ": " +
			plain.Line(axis.Called(&c.Spec.Model))
		if dtype := c.Policy("kv_dtype"); dtype != "" {
			words += ", KV cache in " + plain.Line(dtype)
		}
		by.Add(words, c.Launches.Counted)
	}
	out := by.Lines(func(words string, launches []int) string {
		n := fmt.Sprint(slices.Min(launches))
		if most := slices.Max(launches); fmt.Sprint(most) != n {
			n += " to " + fmt.Sprint(most)
		}
		return words + ", " + n + " launches a cell"
	})
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "; ") + "."
}

// launchesAt has one dot per launch.
func (v *View) launchesAt(s growth.Sweep, f *figure.Row) []opts.ScatterData {
	var out []opts.ScatterData
	for n, i := range s.Cells {
		c := v.Res.Cells[i]
		for _, x := range along(c, f).Values {
			out = append(out, spot(c.LaunchName(x.Attempt), digits(s.At[n]), fine(x.Value), 5))
		}
	}
	return out
}

// ofKind is requests of one kind, in a mix or in a cell of their own.
type ofKind struct {
	cell   int
	name   string
	figure func(name string) evidence.Figure
}

// kindsAndAlone lists the kinds of all mixes, each after the cell that has it alone, if there is one.
func (v *View) kindsAndAlone() []ofKind {
	var out []ofKind
	seen := map[int]bool{}
	for i, c := range v.Res.Cells {
		if c.Load == nil {
			continue
		}
		for _, k := range c.Load.Kinds {
			for j, o := range v.Res.Cells {
				if !seen[j] && byItself(o, c, k.Kind) {
					seen[j] = true
					out = append(out, ofKind{j, plain.Line(o.Label) + ": " + plain.Line(k.Kind) + " alone", o.Figure})
				}
			}
			out = append(out, ofKind{i, plain.Line(c.Label) + ": " + plain.Line(k.Kind) + " with others", k.Figure})
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

// MixedLengths draws latency percentiles of short and long requests, one drawing per kind of time.
func MixedLengths(v *View) []Chart {
	kinds := v.kindsAndAlone()
	if len(kinds) == 0 {
		return nil
	}
	out := Chart{ID: "fig5_mixed_lengths_latency", Title: "Short and long requests together",
		Choice: "Time", Height: rowsHeight(len(figure.Quantiles()), len(kinds)),
		Note:  "Percentiles of each launch's requests, median over launches. Percentiles with too few requests are missing.",
		Label: "Bars of latency percentiles for each kind of request, alone and with others; the table below has the same figures",
		Table: &plain.Grid{Head: []string{"requests", "time", "median", "95% interval", "launches"}}}
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
			t.add(k.name, func(bar int) float64 { return at(bar).Center() }, inked(v.Colour(k.cell), v.fade(n, kinds)))
			for bar, name := range t.bars {
				if f := at(bar); f.Known() {
					time := plain.TitleCase(of.Title) + ", " + name + " (ms)"
					out.Table.Rows = append(out.Table.Rows, []string{k.name, time,
						plain.Num(f.Center()), plain.IntervalWords(f), fmt.Sprint(f.N)})
				}
			}
		}
		if len(shares) > 0 && len(t.series) > 0 {
			name := plain.TitleCase(of.Title) + " (ms)"
			out.Drawings = append(out.Drawings, Drawing{Name: name, Options: t.options()})
		}
	}
	if len(out.Drawings) == 0 {
		return nil
	}
	return []Chart{out}
}

// fade distinguishes kinds of one engine, which have the same colour, beside their patterns.
func (v *View) fade(at int, kinds []ofKind) float32 {
	before := 0
	for _, k := range kinds[:at] {
		if v.Colour(k.cell) == v.Colour(kinds[at].cell) {
			before++
		}
	}
	return []float32{1, 0.55, 0.3}[before%3]
}

// Latencies draws one chart per kind of time, with one line per cell.
func Latencies(v *View) []Chart {
	var names []string
	title, unit := map[string]string{}, "ms"
	for _, c := range v.Res.Cells {
		for _, d := range c.Distributions {
			if title[d.Name] == "" {
				names = append(names, d.Name)
				title[d.Name] = plain.TitleCase(d.Title)
			}
			unit = d.Unit
		}
	}
	var out []Chart
	for _, name := range names {
		out = append(out, Chart{ID: "latency-" + name, Title: title[name], Unit: unit,
			Table:    latencyTable(v.Res, name),
			Label:    "Cumulative distribution of " + title[name] + ", one curve per cell; the table below has the quantiles",
			Drawings: []Drawing{{Options: v.ecdf(name, unit)}}})
		if v.Paper { // the page says it once above the charts
			out[len(out)-1].Note = "Curve: the share of all values of all launches that are at most this long. " +
				"Dots: p50, p90, p95 and p99."
		}
	}
	return out
}

// taken finds a cell's distribution; nil without one.
func taken(c *compare.Cell, name string) *timing.Distribution {
	for i := range c.Distributions {
		if c.Distributions[i].Name == name {
			return &c.Distributions[i]
		}
	}
	return nil
}

func (v *View) ecdf(name, unit string) map[string]any {
	l := lineChart(unit)
	l.YAxisList[0] = opts.YAxis{Type: "value", SplitNumber: 5, Min: 0, Max: 100, Name: "%", NameLocation: "end"}
	least, most := 0.0, 0.0
	dots := charts.NewScatter()
	drawn := map[string]int{}
	for i, c := range v.Res.Cells {
		d := taken(c, name)
		if d == nil {
			continue
		}
		first, last := d.Steps[0].Value, d.Steps[len(d.Steps)-1].Value
		data := [][2]any{{fine(first), 0}}
		for _, s := range d.Steps {
			data = append(data, [2]any{fine(s.Value), digits(100 * s.Share)})
		}
		if least == 0 || first < least {
			least = first
		}
		most = max(most, last)
		looks := []style{stroke(v.Colour(i), 2, dash(drawn[c.Spec.Engine]), false),
			func(s *charts.SingleSeries) { s.Step = "end" }}
		drawn[c.Spec.Engine]++
		if len(l.MultiSeries) == 0 {
			looks = append(looks, levels)
		}
		addLine(l, plain.Line(c.Label), data, looks...)
		var marks []opts.ScatterData
		for _, q := range d.Quantiles {
			marks = append(marks, spot("p"+plain.Num(100*q.Share), fine(q.Value), 100*q.Share, 7))
		}
		dots.AddSeries(plain.Line(c.Label), marks, inked(v.Colour(i), 0))
	}
	l.Overlap(dots)
	if least > 0 && most/least > 20 {
		l.XAxisList[0].Type, l.XAxisList[0].Name = "log", unit+", logarithmic"
	}
	return options(l)
}

// levels are lines at p50, p90 and p99.
func levels(s *charts.SingleSeries) {
	for _, share := range []float64{50, 90, 99} {
		charts.WithMarkLineNameYAxisItemOpts(
			opts.MarkLineNameYAxisItem{YAxis: share, Name: "p" + plain.Num(share)})(s)
	}
	s.MarkLines.MarkLineStyle = opts.MarkLineStyle{Symbol: []string{"none", "none"},
		Label: &opts.Label{Show: opts.Bool(true), Formatter: "{b}", Position: "insideStartTop",
			Color: "var(--muted)", FontSize: 11},
		LineStyle: &opts.LineStyle{Type: "dotted", Width: 1, Color: "var(--muted)"}}
}

// dash distinguishes lines of one colour.
func dash(n int) string { return []string{"solid", "dashed", "dotted"}[n%3] }

func latencyTable(res *compare.Result, name string) *plain.Grid {
	head := []string{"cell", "quantile", "all values (ms)", "values", "launches", "median over launches (ms)",
		"95% interval"}
	return plain.PerCell(res, head, func(c *compare.Cell, add func(...string)) {
		d := taken(c, name)
		if d == nil {
			return
		}
		for _, q := range d.Quantiles {
			median, interval := "–", "too few values per launch"
			if q.ByLaunch != nil {
				median, interval = plain.Known(*q.ByLaunch), plain.IntervalWords(*q.ByLaunch)
			}
			add("p"+plain.Num(100*q.Share), plain.Num(q.Value), fmt.Sprintf("%d %s", d.N, d.Of),
				strconv.Itoa(d.Launches), median, interval)
		}
	})
}
