package chart

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/compare/memory"
	"llmparity/compare/ratio"
	"llmparity/internal/figure"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// plotted is what a test looks at of a chart's options.
type plotted struct {
	Type, Name, Symbol string
	ItemStyle          struct{ Color string }
	Data               []json.RawMessage
	MarkLine           struct {
		Data [][]struct{ Coord []float64 }
	}
	MarkArea struct {
		Data [][]struct{ XAxis float64 }
	}
}

// drawn are the series of a chart's first drawing, as the page gets them.
func drawn(t *testing.T, c Chart) (all []plotted, axes map[string][]struct{ Breaks []axisBreak }) {
	t.Helper()
	text, err := json.Marshal(c.Drawings[0].Options)
	check.Err(t, err)
	var o struct{ Series []plotted }
	check.Err(t, json.Unmarshal(text, &o))
	check.Err(t, json.Unmarshal([]byte(onlyAxes(t, text)), &axes))
	return o.Series, axes
}

func onlyAxes(t *testing.T, text []byte) string {
	t.Helper()
	var o map[string]json.RawMessage
	check.Err(t, json.Unmarshal(text, &o))
	return fmt.Sprintf(`{"x": %s, "y": %s}`, o["xAxis"], o["yAxis"])
}

// points are the values of a series of points.
func points(t *testing.T, s plotted) [][]float64 {
	t.Helper()
	var out [][]float64
	for _, d := range s.Data {
		var p struct{ Value []float64 }
		if json.Unmarshal(d, &p) != nil {
			check.Err(t, json.Unmarshal(d, &p.Value))
		}
		out = append(out, p.Value)
	}
	return out
}

// twoRuns are runs of one engine, the second changed.
func twoRuns(t *testing.T, change func(*comparetest.Engine)) *View {
	t.Helper()
	return varied(t, 0.02, change)
}

// varied are such runs whose launches vary by a share.
func varied(t *testing.T, vary float64, change func(*comparetest.Engine)) *View {
	t.Helper()
	a, b := comparetest.Browser(7), comparetest.Browser(6)
	a.Vary, b.Vary = vary, vary
	change(&b)
	runs := []*record.Run{comparetest.Run(t, "main", a), comparetest.Run(t, "pr-845", b)}
	return &View{Res: compare.Runs(runs...), Runs: runs}
}

func picture(t *testing.T, v *View) Chart {
	t.Helper()
	all := Headlines(v, answer.Of(v.Res).Compared)
	if len(all) != 1 {
		t.Fatalf("%d pictures, want one", len(all))
	}
	return all[0]
}

// The dots of a picture are the launches' values, the bars their medians and intervals, and its words count them.
func TestDotsAreLaunches(t *testing.T) {
	v := twoRuns(t, func(e *comparetest.Engine) { e.Token = 2 * e.Token })
	c := picture(t, v)
	all, _ := drawn(t, c)
	if len(all) != 3 || c.Drawings[0].Figure != figure.DecodeTPS {
		t.Fatalf("%d series of %s", len(all), c.Drawings[0].Figure)
	}
	bars, dots := all[2], append(points(t, all[0]), points(t, all[1])...)
	if all[0].Symbol == all[1].Symbol || all[0].ItemStyle.Color == all[1].ItemStyle.Color {
		t.Errorf("both sides have the symbol %q in %s", all[0].Symbol, all[0].ItemStyle.Color)
	}
	for row, cell := range v.Res.Cells {
		f := cell.Figure(figure.DecodeTPS)
		var got, want []float64
		for _, p := range dots {
			if int(p[1]) == row {
				got = append(got, p[0])
			}
		}
		for _, x := range f.Values {
			want = append(want, fine(x.Value))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("row %d has dots at %v, launches are %v", row, got, want)
		}
		if p := points(t, bars)[row]; p[0] != fine(f.Center()) {
			t.Errorf("row %d has its median at %g, want %g", row, p[0], f.Center())
		}
		ends := bars.MarkLine.Data[row]
		if ends[0].Coord[0] != digits(f.Interval.Lo) || ends[1].Coord[0] != digits(f.Interval.Hi) {
			t.Errorf("row %d has a bar from %v, want %v", row, ends, f.Interval)
		}
	}
	if !strings.Contains(c.Note, "6 to 7 a side") || !strings.Contains(c.Note, "Right is better.") {
		t.Errorf("the caption is %q", c.Note)
	}
}

// Of more cells than there is room for, the picture has the pairs that differ most, and says so.
func TestPictureOfManyCellsHasThoseThatDiffer(t *testing.T) {
	var engines []comparetest.Engine
	for n := range 20 {
		e := comparetest.Native(6)
		e.Cell.ID, e.Cell.Threads = n+1, n+1
		if n >= 15 {
			e.Token *= 2
		}
		engines = append(engines, e)
	}
	run := comparetest.Run(t, "threads", engines...)
	v := &View{Res: compare.Runs(run), Runs: []*record.Run{run}}
	c := picture(t, v)
	if len(c.Table.Rows) != MostHeadlines || !strings.Contains(c.Note, "12 of 20 cells: the pairs that differ most") {
		t.Errorf("%d rows: %s", len(c.Table.Rows), c.Note)
	}
	text := fmt.Sprint(c.Table.Rows)
	for n := 16; n <= 20; n++ {
		if !strings.Contains(text, fmt.Sprintf("%d threads", n)) {
			t.Errorf("no row of %d threads: %s", n, text)
		}
	}
}

// The picture has the figure that differs: speed before memory, and speed if none does.
func TestPictureShowsWhatDiffers(t *testing.T) {
	larger := func(e *comparetest.Engine) {
		for i := range e.Processes {
			e.Processes[i].Loaded *= 2
		}
	}
	for name, test := range map[string]struct {
		change func(*comparetest.Engine)
		want   string
	}{
		"nothing": {func(*comparetest.Engine) {}, figure.DecodeTPS},
		"memory":  {larger, figure.PeakPSS},
		"both":    {func(e *comparetest.Engine) { larger(e); e.Token = 2 * e.Token }, figure.DecodeTPS},
		"load":    {func(e *comparetest.Engine) { e.Load *= 3 }, figure.LoadTime},
	} {
		if got := picture(t, twoRuns(t, test.change)).Drawings[0].Figure; got != test.want {
			t.Errorf("%s differs: the picture has %s, want %s", name, got, test.want)
		}
	}
}

// An axis that leaves out a stretch from 0 on has a break there, and the caption says so; no value lies in it.
func TestBrokenAxesAreMarked(t *testing.T) {
	for name, test := range map[string]struct {
		vary   float64
		broken bool
	}{"close": {0.002, true}, "apart": {0.3, false}} {
		v := varied(t, test.vary, func(*comparetest.Engine) {})
		c := picture(t, v)
		all, axes := drawn(t, c)
		gaps := axes["x"][0].Breaks
		if (len(gaps) > 0) != test.broken || strings.Contains(c.Note, "broken axis") != test.broken {
			t.Errorf("%s: breaks %v, caption %q", name, gaps, c.Note)
		}
		for _, p := range points(t, all[0]) {
			if len(gaps) > 0 && p[0] < gaps[0].End {
				t.Errorf("%s: a dot at %g is in the break %v", name, p[0], gaps[0])
			}
		}
	}
}

// overContexts are engines with several contexts, whose caches take so many bytes a token.
func overContexts(t *testing.T, bytes ...int64) *View {
	t.Helper()
	var all []comparetest.Engine
	make := []func(int) comparetest.Engine{comparetest.Browser, comparetest.Native, comparetest.Served}
	for n, b := range bytes {
		for i, context := range []int{512, 1024, 2048} {
			in := comparetest.Page()
			in.KVReserved = int64(context) * b
			e := comparetest.Measured(make[n](6), in)
			e.Cell.ID, e.Cell.Model.Context = 10*n+i+1, context
			e.Cell.Model.Layers, e.Cell.Model.KVHeads, e.Cell.Model.HeadDim = int(b/(2*4*64)), 1, 64
			e.Info.Policy = map[string]string{"kv_dtype": "f32", "context": fmt.Sprint(context)}
			all = append(all, e)
		}
	}
	run := comparetest.Run(t, "contexts", all...)
	return &View{Res: compare.Runs(run), Runs: []*record.Run{run}}
}

// The points of all engines are their caches, and each formula is a line from no token on.
func TestCachesShareOneChart(t *testing.T) {
	v := overContexts(t, 46080, 46080, 23040)
	c := picture(t, v)
	all, _ := drawn(t, c)
	of := map[string][][]float64{}
	for _, s := range all {
		if s.Name != "" {
			of[s.Name] = points(t, s)
		}
	}
	for n, s := range v.Res.Sweeps {
		for i, at := range s.At {
			want := []float64{at, at * []float64{46080, 46080, 23040}[n] / record.MiB}
			if p := of[s.Label][i]; p[0] != want[0] || math.Abs(p[1]-want[1]) > 0.001 {
				t.Errorf("%s: a point at %v, want %v", s.Label, p, want)
			}
		}
	}
	names := []string{v.Res.Sweeps[0].Label + " and " + v.Res.Sweeps[1].Label, v.Res.Sweeps[2].Label}
	for n, end := range []float64{90, 45} {
		line := of[names[n]+", formula"]
		if len(line) != 2 || line[0][1] != 0 || line[1][0] != 2048 || line[1][1] != end {
			t.Errorf("the formula of %s goes along %v, want to %g MiB", names[n], line, end)
		}
	}
	for _, words := range []string{"6 a point", "45 KiB a token (" + names[0] + ")",
		"22.5 KiB a token (" + names[1] + ")"} {
		if !strings.Contains(c.Note, words) {
			t.Errorf("the caption %q does not say %q", c.Note, words)
		}
	}
	growing := v.DrawnOver(figure.Contexts)
	if len(growing) != 4 || growing[0].Title != c.Title {
		t.Errorf("%d charts over contexts, want the cache first and one for each engine", len(growing))
	}
}

// A bar's parts of the browser's growth add up to it, and the bar to the peak.
func TestBrowserIsSplitInTheBar(t *testing.T) {
	e := comparetest.Mapped(comparetest.Measured(comparetest.Browser(6), comparetest.Page()))
	run := comparetest.Run(t, "split", e)
	cell := compare.Runs(run).Cells[0]
	shown := cell.Shown()
	sum := shown.Size(figure.BrowserShare)
	if math.IsNaN(sum) || len(memory.BeyondParts()) == 0 {
		t.Fatal("the run has no browser's growth to split")
	}
	b := &stacked{sizes: map[string]float64{}}
	if !b.split(shown, sum) {
		t.Fatalf("%g MiB of the browser's growth are not split", sum)
	}
	total := 0.0
	for name, v := range b.sizes {
		if partColour[name] == "" || v < 0 {
			t.Errorf("%s has %g MiB and the colour %q", name, v, partColour[name])
		}
		total += v
	}
	if math.Abs(total-sum) > 1e-6 || b.sizes[figure.GPUProcess] != max(0, shown.Size(figure.GPUProcess)) {
		t.Errorf("the parts %v add up to %g, want %g", b.sizes, total, sum)
	}
}

// Behind the dots is the change of the baseline run measured once more, where it was; the caption has its numbers.
func TestNoiseIsBehindTheDots(t *testing.T) {
	v := twoRuns(t, func(e *comparetest.Engine) { e.Token = 2 * e.Token })
	if all, _ := drawn(t, picture(t, v)); all[0].MarkArea.Data != nil {
		t.Errorf("a band at %v of runs without one", all[0].MarkArea.Data)
	}
	rules, again := compare.Defaults(), comparetest.Browser(7)
	again.Vary = 0.03
	rules.Noise = comparetest.Run(t, "again", again)
	v.Res = compare.With(rules, v.Runs...)
	c := picture(t, v)
	all, _ := drawn(t, c)
	at := slices.IndexFunc(v.Res.Comparisons[0].Ratios,
		func(r ratio.Ratio) bool { return r.Figure == figure.DecodeTPS })
	r := v.Res.Comparisons[0].Ratios[at]
	for n, percent := range []float64{r.Noise.Interval.Lo, r.Noise.Interval.Hi} {
		if got, want := all[0].MarkArea.Data[0][n].XAxis, fine(r.Left.Median*(1+percent/100)); got != want {
			t.Errorf("the band has an end at %g, want %g", got, want)
		}
		if words := fmt.Sprintf("%+.1f%%", percent); !strings.Contains(c.Note, words) {
			t.Errorf("the caption %q does not say %s", c.Note, words)
		}
	}
}
