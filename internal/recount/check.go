package recount

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

// result is of a report's JSON what is held against what was worked out again.
type result struct {
	Cells []struct {
		Label   string
		Run     int
		Spec    struct{ ID int }
		Refused string
		Launch  struct{ Counted int } `json:"launches"`
		Figures []figure
		Stop    *stop
		Self    struct {
			Known, Identical bool
		} `json:"self_parity"`
	}
	Comparisons []struct {
		A, B   int
		Ratios []ratio
	}
	Families   []struct{ Tests int }
	Statistics struct {
		MinEffect float64 `json:"min_effect"`
	}
	Parity []struct {
		A, B                int
		Compared, Identical bool
		ByText              bool  `json:"by_text"`
		SamePrompt          *bool `json:"same_prompt_tokens"`
		Tokens              int   `json:"tokens_compared"`
		Agreed              int   `json:"tokens_agreed"`
	}
}

type figure struct {
	Name   string
	Values []struct {
		Attempt int
		Value   float64
	}
	N        int
	Median   *float64
	Interval *struct{ Lo, Hi, Confidence float64 }
}

type ratio struct {
	Figure      string
	Family      int
	Left, Right struct {
		Median   float64
		N        int `json:"launches"`
		Interval *ends
	}
	Ratio       *float64
	Delta       float64
	Percent     *float64 `json:"delta_percent"`
	Raw         float64  `json:"p"`
	P           float64  `json:"p_holm"`
	Significant bool
	Call        string
}

// headline are the page's columns of the summary, and the figure that each has.
func headline() [][2]string {
	return [][2]string{{"Peak", "peak_pss"}, {"Increase", "memory_increase"}, {"Load", "load_time"},
		{"First token", "ttft"}, {"Inter-token p50", "inter_token_latency_p50"},
		{"p99", "inter_token_latency_p99"}, {"Prefill", "prefill_tps"}, {"Decode", "decode_tps"}}
}

type check struct {
	testing.TB
	*Work
	res      result
	cells    []*Cell
	tests    []holmTest // of ratios, then of means
	compared int
}

func (c *check) same(what string, got, want float64) {
	c.Helper()
	c.compared++
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		c.Errorf("%s is %v in the report, and %v worked out again", what, got, want)
	}
}

func (c *check) figures() {
	for i, cell := range c.res.Cells {
		mine := c.cells[i]
		c.same(cell.Label+": launches counted", float64(cell.Launch.Counted), float64(mine.Counted))
		if c.compared++; !reflect.DeepEqual(cell.Stop, mine.stop) {
			c.Errorf("%s: why it was not repeated is %+v in the report, and %+v in the journal", cell.Label, cell.Stop,
				mine.stop)
		}
		seen := map[string]bool{}
		for _, f := range cell.Figures {
			again, ok := mine.Figures[f.Name]
			seen[f.Name] = true
			known := ok && len(again.Values) > 0
			switch what := cell.Label + ": " + f.Name; {
			case f.Median == nil && !known:
			case f.Median == nil || !known:
				c.Errorf("%s: median %v in the report, values worked out again: %v; work it out here", what, f.Median,
					again.Values)
			default:
				c.figure(what, f, again)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(mine.Figures)) {
			if _, elsewhere := mine.load[name]; len(mine.Figures[name].Values) > 0 && !seen[name] && !elsewhere {
				c.Errorf("%s: the report has no %s", cell.Label, name)
			}
		}
	}
}

func (c *check) figure(what string, f figure, again Figure) {
	c.same(what+", median", *f.Median, again.Median)
	c.same(what+", n", float64(f.N), float64(len(again.Values)))
	for k, v := range f.Values {
		if k < len(again.Values) {
			c.same(fmt.Sprintf("%s, launch %d", what, v.Attempt), v.Value, again.Values[k])
		}
	}
	switch {
	case f.Interval == nil && math.IsNaN(again.Lo):
	case f.Interval == nil || math.IsNaN(again.Lo):
		c.Errorf("%s: the interval is %v in the report, and %v to %v worked out again", what, f.Interval, again.Lo,
			again.Hi)
	default:
		c.same(what+", lower end", f.Interval.Lo, again.Lo)
		c.same(what+", upper end", f.Interval.Hi, again.Hi)
		c.rounded(what+", chance of the interval", f.Interval.Confidence, again.Holds)
	}
}

// ratios are of launches: repetitions that share one are taken together by their median.
func (c *check) ratios() {
	var all []holmTest
	for _, comparison := range c.res.Comparisons {
		a, b := c.cells[comparison.A], c.cells[comparison.B]
		for _, r := range comparison.Ratios {
			what := fmt.Sprintf("%s of %s over %s", r.Figure, c.res.Cells[comparison.A].Label,
				c.res.Cells[comparison.B].Label)
			x, y := a.Figures[r.Figure], b.Figures[r.Figure]
			if len(x.Values) == 0 || len(y.Values) == 0 {
				c.Errorf("%s: a ratio of what was not worked out again", what)
				continue
			}
			c.side(what+", left", r.Left.Median, r.Left.N, r.Left.Interval, x, a.perLaunch(r.Figure))
			c.side(what+", right", r.Right.Median, r.Right.N, r.Right.Interval, y, b.perLaunch(r.Figure))
			left, right := a.perLaunch(r.Figure), b.perLaunch(r.Figure)
			c.rounded(what+", difference", r.Delta, y.Median-x.Median)
			if r.Ratio != nil {
				c.rounded(what, *r.Ratio, x.Median/y.Median)
			}
			if r.Percent != nil {
				c.rounded(what+", percent", *r.Percent, 100*(y.Median-x.Median)/x.Median)
			}
			key := fmt.Sprint(comparison.A, comparison.B, r.Figure)
			p := kept(c.Work, "p"+key, func() float64 { return chance(left, right) })
			if math.Abs(p-r.Raw) > 1e-8 {
				c.Errorf("%s: p is %v in the report, and %v by going through every way to draw", what, r.Raw, p)
			}
			c.compared++
			all = append(all, holmTest{what, r, first(r.Figure, a.load != nil),
				p, 2 / choose(len(left)+len(right), len(left)),
				kept(c.Work, "order"+key,
					func() string { return fmt.Sprint(comparison.A, comparison.B, order(left, right)) })})
		}
	}
	c.tests = all
}

// side is what a ratio says of one of its two figures.
func (c *check) side(what string, median float64, n int, interval *ends, f Figure, launches []float64) {
	c.same(what, median, f.Median)
	c.same(what+", launches", float64(n), float64(len(launches)))
	if c.present(what+", interval", interval != nil, !math.IsNaN(f.Lo)); interval != nil && !math.IsNaN(f.Lo) {
		c.same(what+", lower end", interval.Lo, f.Lo)
		c.same(what+", upper end", interval.Hi, f.Hi)
	}
}

func (c *check) rounded(what string, got, want float64) {
	c.Helper()
	c.compared++
	if math.Abs(got-want) > 1e-6*max(1, math.Abs(want)) {
		c.Errorf("%s is %v in the report, and %v worked out again", what, got, want)
	}
}

type holmTest struct {
	what string
	r    ratio
	head bool // it is asked for first
	p    float64
	best float64 // that launches of these numbers can have
	same string
}

// first tells the figures that are asked for first; of requests that come together it is what all of them yield.
func first(figure string, many bool) bool {
	return figure == "peak_pss" || figure == "ttft" || figure == "decode_tps" && !many || figure == "aggregate_tps"
}

// choose is how many ways there are to draw k of n.
func choose(n, k int) float64 {
	out := 1.0
	for i := range k {
		out *= float64(n-i) / float64(i+1)
	}
	return out
}

// holm corrects p within a family: the least p a weight takes the whole of 0.05, the next what is left. Peak, time to
// first token and decode weigh eight times as much as the rest, six times where the rest could never come below its
// 27th part; figures that order the launches alike, or the other way round, are one test.
func (c *check) holm(all []holmTest) {
	families := map[int][]holmTest{}
	for _, h := range all {
		families[h.r.Family] = append(families[h.r.Family], h)
	}
	for f, tests := range families {
		weight, p, best := map[string]float64{}, map[string]float64{}, map[string]float64{}
		for _, h := range tests {
			w := 1.0
			if h.head {
				if w = 8; h.best > 0.05/27 {
					w = 6
				}
			}
			weight[h.same], p[h.same], best[h.same] = max(weight[h.same], w), h.p, h.best
		}
		c.same(fmt.Sprintf("family %d, tests", f), float64(c.res.Families[f].Tests), float64(len(weight)))
		corrected, possible := byWeight(p, weight), byWeight(best, weight)
		for _, h := range tests {
			// Of equal shares any order is as good: then the bounds between them are.
			c.compared++
			is := corrected[h.same] <= 0.05
			if math.Abs(h.r.P-corrected[h.same]) > 1e-8 {
				c.Errorf("%s: p corrected is %v in the report, and %v worked out again", h.what, h.r.P,
					corrected[h.same])
			}
			if h.r.Significant != is {
				c.Errorf("%s: significant is %v in the report, p is %v", h.what, h.r.Significant, corrected[h.same])
			}
			call := "can't be told from chance"
			switch {
			case is && h.r.Ratio != nil &&
				math.Max(*h.r.Ratio, 1 / *h.r.Ratio) < (1+c.res.Statistics.MinEffect)*(1-1e-12):
				call = "too small to matter"
			case is:
				call = "different"
			case possible[h.same] > 0.05*(1+1e-9):
				call = "too few runs to tell"
			}
			if h.r.Call != call {
				c.Errorf("%s is called %q in the report, and %q worked out again", h.what, h.r.Call, call)
			}
		}
	}
}

// byWeight is Holm's correction by weights.
func byWeight(p, weight map[string]float64) map[string]float64 {
	left := 0.0
	for _, w := range weight {
		left += w
	}
	keys := slices.SortedFunc(maps.Keys(weight), func(a, b string) int {
		return cmp.Or(cmp.Compare(p[a]/weight[a], p[b]/weight[b]), cmp.Compare(a, b))
	})
	corrected, highest := map[string]float64{}, 0.0
	for _, key := range keys {
		highest = max(highest, min(1, p[key]/weight[key]*left))
		corrected[key] = highest
		left -= weight[key]
	}
	return corrected
}

// order is in which order the values of two samples stand, whichever way round.
func order(x, y []float64) string {
	all := append(slices.Clone(x), y...)
	up, down := make([]int, len(all)), make([]int, len(all))
	for i, v := range all {
		for _, w := range all {
			if w < v {
				up[i]++
			}
			if w > v {
				down[i]++
			}
		}
	}
	if slices.Compare(down, up) < 0 {
		up = down
	}
	return fmt.Sprint(up)
}

// parity counts by the first measured request of either side.
func (c *check) parity() {
	for _, p := range c.res.Parity {
		a, b := c.cells[p.A], c.cells[p.B]
		what := c.res.Cells[p.A].Label + " and " + c.res.Cells[p.B].Label
		if len(a.ids) == 0 || len(b.ids) == 0 || !p.Compared || p.ByText {
			if p.Compared && !p.ByText {
				c.Errorf("%s: tokens are compared that are not there", what)
			}
			continue
		}
		x, y := a.ids[0], b.ids[0]
		agreed := 0
		for agreed < len(x) && agreed < len(y) && x[agreed] == y[agreed] {
			agreed++
		}
		c.same(what+", tokens compared", float64(p.Tokens), float64(min(len(x), len(y))))
		c.same(what+", tokens agreed", float64(p.Agreed), float64(agreed))
		if p.Identical != slices.Equal(x, y) {
			c.Errorf("%s: identical is %v in the report", what, p.Identical)
		}
		if p.SamePrompt != nil && *p.SamePrompt != slices.Equal(a.prompts[0], b.prompts[0]) {
			c.Errorf("%s: the prompt's tokens are the same is %v in the report", what, *p.SamePrompt)
		}
	}
	for i, cell := range c.res.Cells {
		mine, identical := c.cells[i], true
		// of what texts are told apart by
		untold := slices.ContainsFunc(mine.ids, func(ids []int) bool { return slices.Contains(ids, -1) })
		for n, ids := range mine.ids {
			if untold {
				identical = identical && mine.texts[n] == mine.texts[0]
			} else {
				identical = identical && slices.Equal(ids, mine.ids[0])
			}
		}
		if cell.Self.Known && cell.Self.Identical != identical {
			c.Errorf("%s agrees with itself: %v in the report", cell.Label, cell.Self.Identical)
		}
	}
}

// page holds the summary's figures as they are printed.
func (c *check) page(page string) {
	tables := kept(c.Work, page, func() []PageTable {
		tables, err := Tables(page, "summary")
		if err != nil || len(tables) == 0 {
			c.Fatalf("no table in the summary (%v)", err)
		}
		return tables
	})
	t := tables[0]
	if len(t.Rows) != len(c.cells) {
		c.Fatalf("the summary has %d rows of %d cells", len(t.Rows), len(c.cells))
	}
	for i, cell := range c.cells {
		for _, h := range headline() {
			at := t.Column(h[0])
			if at < 0 {
				c.Fatalf("the summary has no column %q: %q", h[0], t.Head)
			}
			f, ok := cell.Figures[h[1]]
			if rss, read := cell.Figures[map[string]string{"peak_pss": "peak_rss_sum",
				"memory_increase": "memory_increase_rss_sum"}[h[1]]]; read && len(f.Values) == 0 {
				f, ok = rss, true
			}
			if heap := cell.Figures["peak_js_heap"]; h[1] == "peak_pss" && len(f.Values) == 0 && len(heap.Values) > 0 {
				f, ok = heap, true // of rows that have nothing else
			}
			want := "–"
			if ok && len(f.Values) > 0 {
				want = Digits(f.Median)
			}
			c.compared++
			if got := t.Rows[i][at]; got != want {
				c.Errorf("%s: the page says %s %s, and worked out again it is %s", c.res.Cells[i].Label, h[0], got,
					want)
			}
		}
	}
}

// Digits is how a report prints a figure: about four digits.
func Digits(v float64) string {
	decimals := 0
	switch a := math.Abs(v); {
	case a >= 999.5 || a == math.Trunc(a):
	case a >= 99.95:
		decimals = 1
	case a >= 9.995:
		decimals = 2
	case a >= 0.01:
		decimals = 3
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
