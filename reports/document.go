package reports

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// document is what the template shows, in the page's order.
type document struct {
	Policy  string
	Style   template.CSS
	Scripts template.HTML
	Data    template.HTML // the charts' drawings

	Banner, Sections, Whole template.HTML // the page's parts, in order
	Contents                []entry
	names                   *names

	Title         string
	Subtitle      string
	Verdict       []string
	Comparability []string
	Pairs         *grid // of cells, each by itself; nil: there are no more than two
	MorePairs     int   // that have no row
	Summary       []summaryRow
	Points        *grid
	Compared      ratiosPart
	Gate          *gatePart
	Charts        map[string][]chart
	Breakdown     breakdownPart
	Components    componentsPart
	Prediction    predictionPart
	Risks         riskPart
	Aligned       alignedPart
	Growth        growthPart
	LatencyWords  string
	Traffic       trafficPart
	Reported      *grid
	Server        *grid
	Hardware      hardwarePart
	Parity        parityPart
	Self          *grid
	Engines       []fact
	Runs          []fact
	How           []howRow
	Sampler       *grid
	Warnings      []compare.Warning
	Schema        string
}

// componentsPart is where the memory goes; without a grid: no launch counts.
type componentsPart struct {
	Words           string
	Origins, Notes  []string
	Grid, Full, How *grid
}

// predictionPart is what was foretold of memory; without a grid or lines: nobody foretold anything.
type predictionPart struct {
	Words                  string
	Recommendations, Notes []string
	Grid, How              *grid
}

// riskPart is whether memory was thought to fit; without lines: nothing was in doubt.
type riskPart struct {
	Lines []string
	Grid  *grid
}

// breakdownPart is where the memory is; without grids: nothing is known of it.
type breakdownPart struct {
	Words, PeaksWords           string
	Notes                       []string
	Parts, Processes, HowParted *grid
}

type summaryRow struct {
	Label, Device, With, Launches string
	Colour                        template.CSS
	Figures                       []summaryFigure
	Parity                        string
}

type summaryFigure struct{ Value, Unit, Under string }

// Key is what the page sorts by, where that is not what stands there.
func (f summaryFigure) Key() string { return sortKey(f.Value) }

// InFull lists the texts that were cut.
func (d *document) InFull() []string { return d.names.whole }

// fact is a heading with what is known below it.
type fact struct {
	Name   string
	Colour template.CSS // of the engine; empty: none
	Rows   [][2]string
}

type howRow struct{ Title, Cells, From, How string }

func newDocument(v *view) (*document, error) {
	d := &document{Verdict: v.res.Verdict, Comparability: v.res.Comparability, Pairs: pairGrid(v.res),
		Warnings: warned(v.res), Schema: v.res.Schema,
		Charts: map[string][]chart{}, names: newNames(v.res)}
	d.Title, d.Subtitle = titles(v.res)
	drawings := map[string][]drawing{}
	for _, figure := range figures() {
		for _, c := range figure(v) {
			d.Charts[c.Section] = append(d.Charts[c.Section], c)
			drawings[c.ID] = c.Drawings
		}
	}
	text, err := d.names.drawings(drawings)
	if err != nil {
		return nil, err
	}
	if d.Data, err = packed("drawings", text); err != nil {
		return nil, fmt.Errorf("packing the charts: %w", err)
	}
	d.Compared, d.Gate = newRatiosPart(v.res), newGatePart(v.res.Gate)
	for i := range v.res.Cells {
		d.Summary = append(d.Summary, v.summary(i))
	}
	d.Engines = v.engineFacts()
	d.MorePairs = max(0, len(v.res.Comparisons)-pairRows)
	d.Parity = newParityPart(v)
	for _, r := range v.res.Runs {
		d.Runs = append(d.Runs, runFact(r), checklistFact(r))
	}
	d.Breakdown = breakdownPart{breakdownWords, peaksWords, breakdownNotes(v.res), breakdownGrid(v.res),
		processGrid(v.res),
		methodGrid(v.res)}
	d.Components = componentsPart{partsWords, origins(v.res), negative(v.res), componentGrid(v.res), partGrid(v.res),
		partHow(v.res)}
	d.Prediction = predictionPart{predictionWords, recommendations(v.res), predictionNotes(v.res),
		predictionGrid(v.res),
		predictionHow(v.res)}
	d.Risks = riskPart{risks(v.res), riskGrid(v.res)}
	d.Aligned, d.Growth, d.LatencyWords = newAlignedPart(v.res), newGrowthPart(v.res), latencyWords
	d.Traffic = newTrafficPart(v.res)
	d.Points = points(v.res)
	d.Server, d.Hardware = server(v.res), newHardwarePart(v.res)
	d.Reported, d.Self, d.Sampler, d.How = reported(v.res), self(v.res), sampler(v.res), hows(v.res)
	return d, nil
}

func titles(res *compare.Result) (title, subtitle string) {
	if len(res.Runs) == 0 {
		return "No run", "Nothing was given to compare."
	}
	const most = 3
	var names []string
	times := map[string]int{} // how many runs have a name
	first, last := res.Runs[0].Started, res.Runs[0].Started
	for _, r := range res.Runs {
		if times[r.Name]++; times[r.Name] == 1 {
			names = append(names, r.Name)
		}
		if r.Started.Before(first) {
			first = r.Started
		}
		if r.Started.After(last) {
			last = r.Started
		}
	}
	more := max(0, len(names)-most)
	names = names[:len(names)-more]
	for i, name := range names {
		names[i] = line(name)
		if n := times[name]; n > 1 {
			names[i] += fmt.Sprintf(" (%d runs)", n)
		}
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	const layout = "2 January 2006, 15:04 MST"
	when := first.Format(layout)
	if to := last.Format(layout); to != when {
		when += " to " + to
	}
	e := res.Runs[0].Environment
	return strings.Join(names, " and "), fmt.Sprintf("%s · %s, %d cores, %s GiB · llmparity %s", when, line(e.CPU),
		e.Cores,
		num(float64(e.MemoryB)/(1<<30)), line(res.Runs[0].Tool.Version))
}

func summaryFigures(c *compare.Cell) []evidence.Figure {
	p := c.Points()
	out := []evidence.Figure{p.Peak, p.Increase}
	for _, r := range figure.Columns(func(r *figure.Row) bool { return r.Summary }) {
		out = append(out, c.Figure(r.Name))
	}
	return out
}

func (v *view) summary(i int) summaryRow {
	c := &v.res.Cells[i]
	row := summaryRow{Label: line(c.Label), Colour: template.CSS(v.colour(i)), Device: "did not say",
		With:     line(c.With),
		Launches: launches(c.Launches), Parity: (&table{res: v.res}).parityOf(i)}
	if c.Refused != "" {
		row.Device, row.Launches = "not launched", "refused: "+line(c.Refused)
	}
	if c.Device != nil {
		row.Device = strings.TrimSpace(string(c.Device.Class) + " " + line(c.Device.Name))
	}
	for _, f := range summaryFigures(c) {
		value, under := figureCell(f)
		switch cached := c.Figure(figure.Cached); {
		case f.Name == figure.PrefillTPS && cached.Known() && cached.Center() > 0:
			under += fmt.Sprintf("; %s of %s prompt tokens from a cache", num(cached.Center()),
				num(c.Figure(figure.Prompt).Center()))
		case (f.Name == figure.ITL50 || f.Name == figure.ITL99) && f.Known() && c.BetweenPieces():
			under += "; between pieces"
		case f.Name == figure.PeakRSS:
			under += "; RSS sum"
		}
		row.Figures = append(row.Figures, summaryFigure{value, f.Unit, under})
	}
	return row
}

// points is the memory at three points, and by how much it grew.
func points(res *compare.Result) *grid {
	t := &grid{Head: []string{"cell", "MiB of", "baseline", "after warm-up", "peak", "increase"}}
	for i := range res.Cells {
		c := &res.Cells[i]
		p := c.Points()
		if !p.Peak.Known() {
			continue
		}
		row := []string{line(c.Label), p.Of}
		for _, f := range []evidence.Figure{p.Baseline, p.Warm, p.Peak, p.Increase} {
			value, under := figureCell(f)
			row = append(row, value+" ("+under+")")
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

func launches(l compare.Launches) string {
	s := fmt.Sprintf("%d of %d", l.Counted, l.Planned)
	switch {
	case l.Opened == 1:
		s += " in one launch"
	case l.Opened > 1:
		s += fmt.Sprintf(" in %d launches", l.Opened)
	}
	for _, more := range []struct {
		n    int
		what string
	}{{l.Failed, "failed"}, {l.Interrupted, "interrupted"}, {l.Warmup, "warm-up"}} {
		if more.n > 0 {
			s += fmt.Sprintf(", %d %s", more.n, more.what)
		}
	}
	return s
}

// engineFacts say what ran. What all cells of an engine have in common is said once, of the engine: behind it each has
// what is its own.
func (v *view) engineFacts() []fact {
	var out []fact
	of := map[string][]int{}
	for i := range v.res.Cells {
		engine := v.res.Cells[i].Spec.Engine
		of[engine] = append(of[engine], i)
	}
	for i := range v.res.Cells {
		engine := v.res.Cells[i].Spec.Engine
		if cells := of[engine]; cells[0] == i {
			out = append(out, v.sharing(cells)...)
		}
	}
	return out
}

// sharing are the facts of an engine's cells.
func (v *view) sharing(cells []int) []fact {
	var all []fact
	times := map[[2]string]int{}
	for _, i := range cells {
		f := v.engine(i)
		for _, row := range f.Rows {
			times[row]++
		}
		all = append(all, f)
	}
	if len(cells) < 2 {
		return all
	}
	common := fact{Name: fmt.Sprintf("%s, in all of its %d cells", line(v.res.Cells[cells[0]].Spec.Engine), len(cells)),
		Colour: all[0].Colour}
	for _, row := range all[0].Rows {
		if times[row] == len(cells) {
			common.Rows = append(common.Rows, row)
		}
	}
	if len(common.Rows) == 0 {
		return all
	}
	out := []fact{common}
	for _, f := range all {
		f.Rows = slices.DeleteFunc(f.Rows, func(row [2]string) bool { return times[row] == len(cells) })
		if len(f.Rows) > 0 {
			out = append(out, f)
		}
	}
	return out
}

func (v *view) engine(i int) fact {
	c := &v.res.Cells[i]
	if isForeign(c) {
		return v.foreignFact(i)
	}
	f := fact{Name: line(c.Label), Colour: template.CSS(v.colour(i))}
	add := func(name, value string) {
		if value != "" {
			f.Rows = append(f.Rows, [2]string{line(name), line(value)})
		}
	}
	if e := c.Engine; e != nil {
		add("runtime", e.Name+" "+e.Version)
		add("executable", e.Path)
		add("sha256", e.SHA256)
		addAll(add, "", e.Parts)
		addAll(add, "policy: ", e.Policy)
		add("arguments", strings.Join(e.Args, " "))
	} else {
		add("runtime", "did not say what it is")
	}
	if d := c.Device; d != nil {
		add("device", string(d.Class)+": "+d.Name)
		addAll(add, "device: ", d.Detail)
	}
	m := c.Spec.Model
	context := strconv.Itoa(m.Context)
	if m.Format == record.Served {
		by := "a server"
		if c.Engine != nil {
			by = c.Engine.Version
			if at := c.Engine.Parts["url"]; at != "" {
				by += " at " + at
			}
		}
		add("model", fmt.Sprintf("%s, served by %s; its weights are not verified", m.Name, by))
		if m.Context == 0 {
			context = "the server's own"
		}
	} else {
		add("model", fmt.Sprintf("%s (%s, %s, %s, %d parameters)", m.Name, m.Architecture, m.Format, m.DType,
			m.Parameters))
		add("model sha256", m.SHA256)
		add("model file", fmt.Sprintf("%s MiB, weights %s MiB", num(float64(m.FileB)/record.MiB),
			num(float64(m.WeightsB)/record.MiB)))
	}
	if m.Context > 0 && m.MaxContext > m.Context {
		context += fmt.Sprintf(" (capped: the model was made for %d)", m.MaxContext)
	}
	isolation := c.Spec.Isolation
	if c.Spec.Reused {
		isolation = strings.TrimPrefix(isolation+", reused by the repetitions", ", ")
	}
	add("request", fmt.Sprintf("%d tokens at temperature %g, context %s, isolation %s, prompt cache %s",
		c.Spec.MaxTokens, c.Spec.Temperature, context, isolation, c.Spec.PromptCache))
	for _, lack := range []struct {
		is   bool
		what string
	}{{c.Spec.StopsAtEnd, "stops at the end of a text"}, {c.Spec.NoTokenIDs, "no token ids"}, {c.Spec.Pieces,
		"tells of pieces of text, and counts tokens itself"}} {
		if lack.is {
			add("limits", lack.what)
		}
	}
	add("prompt", c.Spec.Prompt)
	return f
}

func addAll(add func(name, value string), prefix string, m map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		add(prefix+strings.ReplaceAll(key, "_", " "), m[key])
	}
}

func runFact(r compare.Run) fact {
	f := fact{Name: line(r.Name)}
	if r.Tool.GoOS == "" { // another program's rows
		f.Rows = [][2]string{{"file", line(r.Dir)}, {"first row", r.Started.Format("2006-01-02 15:04:05 MST")}}
		return f
	}
	rows := append([][2]string{{"folder", r.Dir}, {"started", r.Started.Format("2006-01-02 15:04:05 MST")},
		{"ended", string(r.Status)}},
		Machine(r.Environment)...)
	rows = append(rows, [2]string{"llmparity",
		strings.TrimSpace(r.Tool.Version + " " + r.Tool.GoOS + "/" + r.Tool.GoArch)},
		[2]string{"llmparity sha256", r.Tool.SHA256})
	for _, row := range rows {
		if row[1] != "" {
			f.Rows = append(f.Rows, [2]string{row[0], line(row[1])})
		}
	}
	return f
}

func reported(res *compare.Result) *grid {
	t := &grid{Head: []string{"cell", "the engine's own name", "reported by the engine",
		"measured by the clock, or counted, beside it"}}
	for i := range res.Cells {
		c := &res.Cells[i]
		for _, f := range c.Reported {
			ours := "–"
			if o := c.Figure(f.Beside); f.Beside != "" && o.Known() {
				ours = strings.TrimSpace(num(o.Center()) + " " + o.Unit + " (" + o.Title + ")")
			}
			t.Rows = append(t.Rows, []string{line(c.Label), line(f.Name), strings.TrimSpace(known(f) + " " + f.Unit),
				ours})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// server is what servers say of themselves, with what that is and what it can't see; nil where none says anything.
func server(res *compare.Result) *grid {
	t := &grid{Head: []string{"cell", "figure", "median", "launches", "what it is", "what it can't see"}}
	for i := range res.Cells {
		for _, f := range res.Cells[i].Server {
			value := "–"
			if f.Known() {
				value = strings.TrimSpace(num(f.Center()) + " " + f.Unit)
			}
			t.Rows = append(t.Rows, []string{line(res.Cells[i].Label), line(f.Title), value, strconv.Itoa(f.N),
				line(f.Method + ": " + f.How), line(f.Blind)})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

func self(res *compare.Result) *grid {
	t := &grid{Head: []string{"cell", "its own launches"}}
	for _, c := range res.Cells {
		t.Rows = append(t.Rows, []string{line(c.Label), c.Self.Verdict})
	}
	return t
}

func sampler(res *compare.Result) *grid {
	t := &grid{Head: []string{"cell"}}
	for i := range res.Cells {
		c := &res.Cells[i]
		row := []string{line(c.Label)}
		for _, f := range c.Sampler {
			if i == 0 {
				t.Head = append(t.Head, f.Title+" ("+f.Unit+")")
			}
			row = append(row, known(f))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// hows says once what several cells have in common.
func hows(res *compare.Result) []howRow {
	var out []howRow
	var about [][]string
	for i := range res.Cells {
		c := &res.Cells[i]
		for _, list := range [][]evidence.Figure{c.Figures, c.Sampler} {
			for _, f := range list {
				from := f.From()
				at := slices.IndexFunc(out,
					func(h howRow) bool { return h.Title == f.Title && h.From == from && h.How == f.How })
				if at < 0 {
					at = len(out)
					out, about = append(out, howRow{Title: f.Title, From: from, How: f.How}), append(about, nil)
				}
				about[at] = append(about[at], c.Label)
			}
		}
	}
	for i := range out {
		out[i].Cells = line(everyCell(res, about[i]))
	}
	slices.SortStableFunc(out, func(a, b howRow) int { return order(res, a.Title) - order(res, b.Title) })
	return out
}

func order(res *compare.Result, title string) int {
	n := 0
	for _, list := range [][]evidence.Figure{res.Cells[0].Figures, res.Cells[0].Sampler} {
		for _, f := range list {
			if f.Title == title {
				return n
			}
			n++
		}
	}
	return n
}
