package reports

import (
	"fmt"
	"math"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// chart is a figure of the report: one or more drawings to choose from, with an accessible name and a table.
type chart struct {
	ID       string
	Title    string
	Unit     string
	Note     string // how to read it
	Label    string // accessible name
	Drawings []drawing
	Choice   string // what tells the drawings apart
	Chosen   int    // the drawing shown first
	Table    *grid
	Wide     bool // on paper it takes both columns
	Height   int  // of the plot in pixels; 0: as the style sheet says
	Cell     int  // the number of the one cell that it shows, from 1
}

// drawing is one of a chart's drawings.
type drawing struct {
	Name    string  `json:"name"`
	Caption string  `json:"caption"`
	Options options `json:"options"`
	// of one launch, or of what was repeated in place of them
	ofOneLaunch bool
}

// view is what figures are drawn from.
type view struct {
	res   *compare.Result
	runs  []*record.Run
	own   map[string]int // colours of engines, from 1
	paper bool           // for figures of their own, which no page's size bounds
}

// launchesDrawn is how many launches a drawing shows at most: fewer with many cells, to keep the page small.
func (v *view) launchesDrawn() int {
	const most, least, together = 20, 4, 80
	if v.paper {
		return most
	}
	return max(least, min(most, together/max(1, len(v.res.Cells))))
}

func peaksSection() section {
	return section{ID: "peaks", Title: "Peaks", For: onPage, Draw: bars("peaks", figure.PeakPSS, "Peak memory"),
		Words: []string{barWords + " Memory is total PSS."}}
}

// barWords say how to read bars.
const barWords = "Bar: median. Dots: launches. Line: 95% interval of the median, from six launches on."

// rowsHeight is the height in pixels of a chart with so many rows of so many bars.
func rowsHeight(rows, bars int) int { return 34 + rows*max(38, 14+bars*14) }

// bars draws one figure: medians, launches and intervals.
func bars(id, name, title string) func(*view) []chart {
	return func(v *view) []chart {
		var labels []string
		var data, dots []options
		var intervals []*stats.Interval
		out := chart{ID: id, Title: title, Table: &grid{},
			Label: fmt.Sprintf("Bar chart of %s of each cell; the table below has the same figures", title)}
		for i := range v.res.Cells {
			c := &v.res.Cells[i]
			f := c.Figure(name)
			if !f.Known() {
				continue
			}
			for n, x := range f.Values {
				dot := spot(fmt.Sprintf("%s (attempt %d)", c.Repeated(), x.Attempt), digits(x.Value),
					float64(len(labels)), 5)
				dot["symbolOffset"] = [2]float64{0, aside(n, len(f.Values))}
				dots = append(dots, dot)
			}
			out.Unit = f.Unit
			out.Table.Rows = append(out.Table.Rows,
				[]string{line(c.Label), num(f.Center()), intervalWords(f), values(f)})
			labels = append(labels, line(c.Label)+"\n"+num(f.Center())+" "+f.Unit)
			data = append(data, options{"value": digits(f.Center()), "itemStyle": options{"color": v.colour(i)}})
			intervals = append(intervals, f.Interval)
		}
		if len(labels) == 0 {
			return nil
		}
		out.Table.Head = []string{"cell", "median (" + out.Unit + ")", "95% interval", "launches (" + out.Unit + ")"}
		bar := newBar(labels, options{"show": false})
		bar.add("bar", "median", data, options{"barWidth": "46%"}, whiskers(intervalLines(intervals), 3))
		bar.add("scatter", "launches", dots,
			options{"itemStyle": options{"color": "var(--dot)", "borderColor": "var(--page)", "borderWidth": 1}})
		out.Height, out.Drawings = rowsHeight(len(labels), 1), []drawing{{Options: bar.options()}}
		return []chart{out}
	}
}

// mostNarrow is how many cells the chart of components has room for.
const mostNarrow = 4

// barTable is bars with several series, upon one another or apart: for each series, a value per bar.
type barTable struct {
	apart     bool
	bars      []string
	intervals []*stats.Interval // of each bar's end
	series    []barSeries
}

type barSeries struct {
	name   string
	values []float64
	looks  []options
}

// add adds a series unless all its values are missing or 0.
func (t *barTable) add(name string, of func(bar int) float64, looks ...options) {
	s := barSeries{name: name, looks: looks}
	some := false
	for n := range t.bars {
		v := of(n)
		s.values, some = append(s.values, v), some || digits(v) != 0 && !math.IsNaN(v)
	}
	if some {
		t.series = append(t.series, s)
	}
}

// ends are the lower end of the lowest bar and the upper end of the highest.
func (t *barTable) ends() (lowest, highest float64) {
	for n := range t.bars {
		down, up := 0.0, 0.0
		for _, s := range t.series {
			if v := s.values[n]; v < 0 {
				down += v
			} else if v > 0 {
				up += v
			}
		}
		lowest, highest = min(lowest, down), max(highest, up)
	}
	return lowest, highest
}

func (t *barTable) options() options {
	bar := newBar(t.bars, legendBelow())
	if lowest, highest := t.ends(); lowest > -0.02*highest { // a remainder just below 0 needs no axis of its own
		bar.x["min"] = 0
	}
	for n, s := range t.series {
		var data []options
		for _, v := range s.values {
			data = append(data, options{"value": orGap(v)})
		}
		if !t.apart {
			s.looks = append(s.looks, stacked)
		}
		if n == len(t.series)-1 {
			s.looks = append(s.looks, whiskers(intervalLines(t.intervals), 3))
		}
		bar.add("bar", s.name, data, s.looks...)
	}
	return bar.options()
}

// intervalLines are lines along bars from the lower to the upper end of each interval.
func intervalLines(all []*stats.Interval) []any {
	var out []any
	for bar, iv := range all {
		if iv != nil {
			out = append(out, whisker(digits(iv.Lo), bar, digits(iv.Hi), bar))
		}
	}
	return out
}

// aside is how many pixels dot n of so many lies above or below the line of the interval.
func aside(n, of int) float64 {
	if of == 1 {
		return 0
	}
	return float64(5+3*(n/2%2)) * float64(1-2*(n%2))
}

func known(f evidence.Figure) string {
	if !f.Known() {
		return f.Absent
	}
	return num(f.Center())
}

func intervalWords(f evidence.Figure) string {
	switch {
	case !f.Known():
		return ""
	case f.Interval == nil:
		return f.Note
	}
	return num(f.Interval.Lo) + " to " + num(f.Interval.Hi)
}

func values(f evidence.Figure) string {
	var all []string
	for _, v := range f.Values {
		all = append(all, num(v.Value))
	}
	return strings.Join(all, ", ")
}
