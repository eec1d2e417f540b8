package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/parity"
	"llmparity/compare/ratio"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// question is one that the answer has a card for: which cell has more of a figure.
type question struct {
	name, unit     string
	of             func(*Cell) evidence.Figure
	verb, together string // before a cell's value; together: under traffic
	more           string // what the larger one does
	share, times   string // the same, by how much: formats for a share or a number, and the smaller one
	factor         string // behind "2.1 times"
	least, most    string // names of the extremes
	best           string // of the better one
	lessIsBetter   bool
}

var memoryQuestion = question{name: "Memory", unit: "MiB", of: peak, verb: "peaks at", together: "peaks at",
	more: "uses more memory", share: "uses %s more memory than %s", times: "uses %s times the memory of %s",
	factor: "the memory", least: "Least", most: "most", best: "Least", lessIsBetter: true}

var speedQuestion = question{name: "Speed", unit: "tokens/s", of: speed, verb: "decodes",
	together: "serves all requests at", more: "is faster", share: "is %s faster than %s",
	times: "is %s times as fast as %s", factor: "as fast", least: "Slowest", most: "fastest", best: "Fastest"}

// peak is a cell's peak memory: total PSS, or the sum of RSS if no PSS was read.
func peak(c *Cell) evidence.Figure { return c.Points().Peak }

// speed is a cell's decode speed; under traffic, that of all requests together.
func speed(c *Cell) evidence.Figure {
	if c.Load != nil {
		return c.Figure(figure.AggregateTPS)
	}
	return c.Figure(figure.DecodeTPS)
}

// value is a cell's figure with a unit and the width of its interval.
func (q *question) value(c *Cell, unit string) string { return valued(q.of(c), unit) }

func valued(f evidence.Figure, unit string) string {
	s := strings.TrimSpace(explain.Amount(f.Center()) + " " + unit)
	if half, ok := f.HalfWidth(); ok && half <= evidence.Lopsided {
		return s + " (±" + explain.Share(half) + ")"
	}
	return s + ci(f.Interval, explain.Amount)
}

// ci is an interval in parentheses; empty without one.
func ci(i *stats.Interval, write func(float64) string) string {
	if i == nil {
		return ""
	}
	return fmt.Sprintf(" (95%% CI %s to %s)", write(i.Lo), write(i.Hi))
}

// says is value behind the verb.
func (q *question) says(c *Cell) string {
	if c.Load != nil {
		return q.together + " " + q.value(c, q.unit)
	}
	return q.verb + " " + q.value(c, q.unit)
}

func (r *Result) memoryCard() Card {
	c := r.card(&memoryQuestion)
	var bases []float64
	var engines []string
	browser := true
	for i := range r.Cells {
		if f := r.Cells[i].Figure(figure.Baseline); f.Known() {
			bases, browser = append(bases, f.Center()), browser && r.Cells[i].Browser() != ""
			engines = explain.AppendNew(engines, r.Cells[i].Title())
		}
	}
	if len(bases) > 0 && !c.Unknown {
		who := "the processes of " + explain.And(engines, 2) + " take"
		if browser {
			who = "the browser alone takes"
		}
		c.Text += fmt.Sprintf(" Before the model loads, %s %s MiB.", who, to(bases))
	}
	held := r.distinct(func(c *Cell) string { return c.Policy("kv_dtype") })
	if each := r.distinct(heldIn); len(held) > 1 && len(each) <= mostValues {
		c.Text += " The KV caches differ in dtype: " + strings.Join(each, ", ") + "."
	}
	return c
}

// heldIn is an engine with the dtype of its KV cache; empty where that is not known.
func heldIn(c *Cell) string {
	if c.Policy("kv_dtype") == "" {
		return ""
	}
	return c.Title() + " " + c.Policy("kv_dtype")
}

func (r *Result) speedCard() Card {
	c := r.card(&speedQuestion)
	var words []string
	for i := range r.Cells {
		if f := r.Cells[i].Figure(figure.TTFT); f.Known() && r.Cells[i].Load == nil {
			who := r.Cells[i].Title()
			if len(r.Cells) == 2 && who == r.Cells[1-i].Title() {
				who = r.Cells[i].Label
			}
			words = append(words, who+" "+valued(f, "ms"))
		}
	}
	if n := len(words); n > 0 && n == len(r.Cells) && n <= 2 && c.Text != "" {
		c.Text += " Time to first token: " + strings.Join(words, ", ") + "."
	}
	return c
}

// card answers a question over all cells.
func (r *Result) card(q *question) Card {
	var known []*Cell
	var values []float64
	absent := ""
	for i := range r.Cells {
		c := &r.Cells[i]
		if f := q.of(c); f.Known() {
			known, values = append(known, c), append(values, f.Center())
		} else if f.Absent != "refused" {
			absent = cmp.Or(absent, f.Absent)
		}
	}
	duels := r.duels(q)
	out := Card{Headline: "Not measured", Text: r.upper(absent), Unknown: true}
	switch {
	case len(known) == 0:
	case len(duels) == 0:
		out = Card{Headline: to(values) + " " + q.unit, Text: r.values(q, known)}
		if len(known) == 1 {
			out.Headline = q.value(known[0], q.unit)
		}
		if len(known) == 1 && len(r.Cells) > 1 {
			out.Headline = r.cellTitle(known[0]) + ": " + out.Headline
		}
	case len(duels) == 1:
		out = r.single(q, &duels[0])
	default:
		out = r.several(q, duels, known)
	}
	if out.Name = q.name; out.Text != "" {
		out.Text += "."
	}
	return out
}

// duel is a pair of cells, and which of them has more of a figure.
type duel struct {
	a, b   *Cell
	names  [2]string
	ratio  *ratio.Ratio    // nil: none may be given
	call   stats.Call      // empty: refused, and nothing can be said
	more   int             // 1: a has more, -1: b; 0: no difference
	delta  float64         // what the larger has more, where only that may be said
	apart  *stats.Interval // of that
	change *stats.Interval // from a to b in percent
	why    string          // why there is no ratio

	family int
}

// noisy tells that no difference was found, and that none can be said to be absent.
func (d *duel) noisy() bool { return ratio.Unsettled(d.call, d.change) }

// sides are the names of the larger and the smaller one.
func (d *duel) sides() (larger, smaller string) {
	if d.more < 0 {
		return d.names[1], d.names[0]
	}
	return d.names[0], d.names[1]
}

// duels are the pairs that a question is answered by: of runs, if there are several. Both cells have the figure.
func (r *Result) duels(q *question) []duel {
	var out []duel
	ofRuns := slices.ContainsFunc(r.Families, func(f ratio.Family) bool { return f.Runs })
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		d := duel{a: &r.Cells[c.A], b: &r.Cells[c.B], family: c.Family}
		x, y := q.of(d.a), q.of(d.b)
		if ofRuns && !r.Families[c.Family].Runs || !x.Known() || !y.Known() || requestsDiffer(d.a, d.b) != nil {
			continue
		}
		d.names = r.pairNames(d.a, d.b)
		at := slices.IndexFunc(c.Ratios, func(r ratio.Ratio) bool { return r.Figure == x.Name && r.Figure == y.Name })
		if at >= 0 {
			d.ratio, d.call, d.change = &c.Ratios[at], c.Ratios[at].Call, c.Ratios[at].PercentInterval
		} else {
			d.why = cmp.Or(unlike(x.Name, d.a, d.b), strings.TrimPrefix(c.Refused, notComparable),
				"no PSS was read, and RSS counts shared pages twice")
			if q == &memoryQuestion && inRAM(d.a) && inRAM(d.b) && devicesDiffer(d.a, d.b, Refuses) != nil {
				d.compareRAM(x, y)
			}
		}
		if d.call == stats.Differs {
			d.more = cmp.Compare(x.Center(), y.Center())
		}
		out = append(out, d)
	}
	return out
}

// compareRAM gives the difference of two memory figures, where only the device forbids a ratio.
func (d *duel) compareRAM(x, y evidence.Figure) {
	d.delta, d.call = math.Abs(x.Center()-y.Center()), stats.Chance
	sides := stats.NewSides(x.PerLaunch(d.a.counted), y.PerLaunch(d.b.counted))
	_, d.change = sides.Ratio()
	if d.apart = sides.Change(); d.apart != nil && x.Center() > y.Center() {
		d.apart.Lo, d.apart.Hi = -d.apart.Hi, -d.apart.Lo
	}
	switch {
	case x.Interval == nil || y.Interval == nil:
		d.call = stats.TooFewToSay
	case x.Interval.Lo > y.Interval.Hi || y.Interval.Lo > x.Interval.Hi:
		d.call = stats.Differs
	}
}

// InRAM tells whether all memory of two cells is the machine's own: then amounts may be compared where ratios may
// not.
func (r *Result) InRAM(c *Comparison) bool { return inRAM(&r.Cells[c.A]) && inRAM(&r.Cells[c.B]) }

// inRAM tells whether all of a cell's memory is the machine's own: a GPU's is not in its figures.
func inRAM(c *Cell) bool {
	return c.Device != nil && (c.Device.Class == record.CPU || c.Device.Class == record.SoftwareAdapter)
}

const (
	incomparable = "Not comparable here"
	tooFew       = "Too few launches to tell"
	tooNoisy     = "Too noisy to tell"
	noDifference = "No difference detected"
)

// single answers by one pair.
func (r *Result) single(q *question, d *duel) Card {
	larger, smaller := d.sides()
	out := Card{Text: fmt.Sprintf("%s %s, %s %s", d.names[0], q.says(d.a), d.names[1], q.value(d.b, q.unit))}
	switch {
	case d.call == "":
		out.Headline, out.Unknown = incomparable, true
		out.Text = r.upper(strings.TrimSuffix(d.why, ".")) + ". " + out.Text
	case d.call == stats.Differs && d.ratio == nil:
		out.Headline = fmt.Sprintf("%s uses %s MiB more than %s", larger, explain.Amount(d.delta), smaller) +
			ci(d.apart, explain.Amount)
	case d.call == stats.Differs && d.ratio.Ratio == nil:
		out.Headline = larger + " " + q.more + " than " + smaller
	case d.call == stats.Differs:
		times, interval := ratio.AtLeast1(*d.ratio.Ratio, d.ratio.Interval)
		how, write := q.times, explain.Amount
		if times < 2 {
			how, write = q.share, func(t float64) string { return explain.Share(t - 1) }
		}
		out.Headline = larger + " " + fmt.Sprintf(how, write(times), smaller) + ci(interval, write)
	case d.call == stats.TooSmall:
		out.Headline = "Practically equal"
	case d.call == stats.TooFewToSay:
		out.Headline, out.Unknown = tooFew, true
	default:
		out.Headline = noDifference
		if out.Unknown = d.noisy(); out.Unknown {
			out.Headline = tooNoisy
		}
		if d.change != nil {
			out.Headline += fmt.Sprintf(": %s to %s from %s to %s", signed(d.change.Lo/100), signed(d.change.Hi/100),
				d.names[0], d.names[1])
		}
		if d.ratio != nil {
			out.Text += d.ratio.Limit
		}
	}
	out.Text += notAlike(d)
	return out
}

// signed is a change in percent, with its sign.
func signed(share float64) string {
	if share > 0 {
		return "+" + explain.Share(share)
	}
	return explain.Share(share)
}

// notAlike says in which way cells differ that are compared because that was asked for; empty: in none.
func notAlike(d *duel) string {
	if d.ratio == nil || d.ratio.Different == "" {
		return ""
	}
	return ". Not alike: " + d.ratio.Different
}

// pairNames are those of the two sides: their engines, or their runs, or all that tells them apart.
func (r *Result) pairNames(a, b *Cell) [2]string {
	switch {
	case a.Run != b.Run:
		return [2]string{r.runTitle(a.Run), r.runTitle(b.Run)}
	case a.Spec.Engine != b.Spec.Engine:
		return [2]string{a.Title(), b.Title()}
	}
	return [2]string{a.Label, b.Label}
}

// several answers by many pairs: for each two sides how many go which way, and the extremes of all cells.
func (r *Result) several(q *question, duels []duel, known []*Cell) Card {
	var by evidence.Groups[[2]string, duel]
	for _, d := range duels {
		sides := d.names
		if turned := [2]string{sides[1], sides[0]}; by.Of[turned] != nil {
			sides = turned
		}
		by.Add(sides, d)
	}
	refused := slices.IndexFunc(duels, func(d duel) bool { return d.call == "" })
	if len(by.Keys) == 1 {
		out := r.together(q, by.Keys[0], duels)
		if refused < 0 { // else the extremes would compare what is not comparable
			out.Text = strings.TrimPrefix(r.upper(out.Text)+". "+r.extremes(q, known), ". ")
		}
		return out
	}
	answered := func(d duel) bool { return d.more != 0 || d.call == "" || d.call == stats.TooFewToSay || d.noisy() }
	if !slices.ContainsFunc(duels, answered) {
		return Card{Headline: fmt.Sprintf("%s in any of %d pairs", noDifference, len(duels)), Text: r.values(q, known)}
	}
	var answers, others []string
	for sides, all := range by.All() {
		c := r.together(q, sides, all)
		if len(all) == 1 {
			c = r.single(q, &all[0])
		} else if c.Text != "" {
			c.Headline += " (" + c.Text + ")"
		}
		if !strings.HasPrefix(c.Headline, sides[0]+" ") && !strings.HasPrefix(c.Headline, sides[1]+" ") {
			c.Headline = sides[0] + " and " + sides[1] + ": " + strings.ToLower(c.Headline[:1]) + c.Headline[1:]
		}
		if c.Unknown {
			others = append(others, c.Headline)
		} else {
			answers = append(answers, c.Headline)
		}
	}
	out := Card{Unknown: len(answers) == 0}
	words := append(answers, others...)
	const most = 3
	if more := len(words) - most; more > 1 {
		words = append(words[:most], fmt.Sprintf("%d more pairs are in the tables", more))
	}
	if best := q.winner(duels, known); best != nil {
		out.Headline = q.best + ": " + r.cellTitle(best)
	} else {
		out.Headline, words = words[0], words[1:]
	}
	out.Text = strings.Join(words, "; ")
	if refused < 0 || len(known) <= mostValues {
		out.Text += ". " + r.values(q, known)
	}
	if refused >= 0 && !strings.Contains(out.Text, duels[refused].why) {
		out.Text += ". Not comparable: " + strings.TrimSuffix(duels[refused].why, ".")
	}
	return out
}

// together answers for pairs of cells of the same two sides.
func (r *Result) together(q *question, sides [2]string, duels []duel) Card {
	more := map[string]int{}
	var ratios, deltas []float64
	equal, few, noisy, refused, why := 0, 0, 0, 0, ""
	for i := range duels {
		d := &duels[i]
		switch {
		case d.call == "":
			refused, why = refused+1, cmp.Or(why, d.why)
		case d.call == stats.TooFewToSay:
			few++
		case d.noisy():
			noisy++
		case d.more == 0:
			equal++
		case d.ratio == nil:
			deltas = append(deltas, d.delta)
		case d.ratio.Ratio != nil:
			times, _ := ratio.AtLeast1(*d.ratio.Ratio, d.ratio.Interval)
			ratios = append(ratios, times)
		}
		if larger, _ := d.sides(); d.more != 0 {
			more[larger]++
		}
	}
	all, any := fmt.Sprintf("all %d pairs", len(duels)), fmt.Sprintf("any of %d pairs", len(duels))
	if len(duels) == 2 {
		all, any = "both pairs", "either pair"
	}
	larger, smaller := sides[0], sides[1]
	if more[smaller] > more[larger] {
		larger, smaller = smaller, larger
	}
	headline := noDifference + " in " + any
	switch {
	case refused == len(duels):
		return Card{Headline: incomparable, Text: r.upper(strings.TrimSuffix(why, ".")), Unknown: true}
	case few == len(duels):
		return Card{Headline: tooFew, Unknown: true}
	case noisy == len(duels):
		return Card{Headline: tooNoisy + " in " + any, Unknown: true}
	case more[larger] == len(duels):
		headline = fmt.Sprintf("%s %s than %s in %s", larger, q.more, smaller, all)
	case more[larger] > 0:
		headline = fmt.Sprintf("%s %s than %s in %d of %d pairs", larger, q.more, smaller, more[larger], len(duels))
	case noisy > 0:
		headline = fmt.Sprintf("%s in %d of %d pairs", tooNoisy, noisy, len(duels))
	}
	var words []string
	if len(ratios) > 0 {
		words = append(words, to(ratios)+" times "+q.factor)
	}
	if len(deltas) > 0 {
		words = append(words, to(deltas)+" MiB more")
	}
	if mean := r.meanWords(q.of(duels[0].a).Name, duels[0].family); mean != "" {
		words = append(words, mean)
	}
	if n := more[smaller]; n > 0 {
		words = append(words, fmt.Sprintf("%d %s the other way", n, explain.Plural(n, "pair goes", "pairs go")))
	}
	for _, rest := range []struct {
		n    int
		what string
	}{{equal, "without a difference"}, {few, "with too few launches to tell"}, {noisy, "too noisy to tell"},
		{refused, "not comparable"}} {
		if rest.n > 0 && rest.n < len(duels) {
			words = append(words, fmt.Sprintf("%d %s %s", rest.n, explain.Plural(rest.n, "pair", "pairs"), rest.what))
		}
	}
	return Card{Headline: headline, Text: strings.Join(words, "; ") + notAlike(&duels[0])}
}

// meanWords is the geometric mean of a family's ratios, if there is one alone. It can differ where no pair does.
func (r *Result) meanWords(name string, family int) string {
	means := slices.DeleteFunc(slices.Clone(r.Families[family].Means),
		func(m ratio.Mean) bool { return m.Figure != name })
	if len(means) != 1 || means[0].Call != stats.Differs {
		return ""
	}
	times, interval := ratio.AtLeast1(means[0].Ratio, means[0].Interval)
	return "geometric mean " + explain.Amount(times) + " times" + ci(interval, explain.Amount)
}

// winner is the cell that is better than each other one, by a difference that was found; nil if there is none.
func (q *question) winner(duels []duel, known []*Cell) *Cell {
	won := map[*Cell]int{}
	for _, d := range duels {
		winner := d.a
		if (d.more < 0) != q.lessIsBetter {
			winner = d.b
		}
		if d.more != 0 {
			won[winner]++
		}
	}
	for _, c := range known {
		if won[c] == len(known)-1 {
			return c
		}
	}
	return nil
}

// cellTitle is a cell's name: its engine, if it has only one cell.
func (r *Result) cellTitle(c *Cell) string {
	other := func(o Cell) bool { return o.Spec.Engine == c.Spec.Engine && o.Label != c.Label }
	if slices.ContainsFunc(r.Cells, other) {
		return c.Label
	}
	return c.Title()
}

const mostValues = 4

// values are those of a few cells, or the extremes of many.
func (r *Result) values(q *question, known []*Cell) string {
	if len(known) > mostValues {
		return r.extremes(q, known)
	}
	words := []string{r.cellTitle(known[0]) + " " + q.says(known[0])}
	for _, c := range known[1:] {
		words = append(words, r.cellTitle(c)+" "+q.value(c, ""))
	}
	return strings.Join(words, ", ")
}

// extremes names the cells that have least and most.
func (r *Result) extremes(q *question, known []*Cell) string {
	order := func(a, b *Cell) int { return cmp.Compare(q.of(a).Center(), q.of(b).Center()) }
	low, high := slices.MinFunc(known, order), slices.MaxFunc(known, order)
	return fmt.Sprintf("%s of %d cells: %s, %s; %s: %s, %s", q.least, len(known), low.Label, q.value(low, q.unit),
		q.most, high.Label, q.value(high, q.unit))
}

// upper begins a sentence, unless that begins with a name.
func (r *Result) upper(s string) string {
	name := func(c Cell) bool {
		return strings.HasPrefix(s, c.Label) || strings.HasPrefix(s, c.Title()) ||
			strings.HasPrefix(s, r.runTitle(c.Run)+" ")
	}
	if s == "" || s[0] < 'a' || s[0] > 'z' || slices.ContainsFunc(r.Cells, name) {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// outputCard says whether cells generated the same; where none are compared, whether the launches of each cell did.
func (r *Result) outputCard() Card {
	if len(r.Parity) == 0 {
		return r.selfCard()
	}
	headline, text, known := parity.Answer(r.Parity, func(cell int) string { return r.cellTitle(&r.Cells[cell]) })
	return Card{Name: "Output", Headline: headline, Text: r.upper(text) + ".", Unknown: !known}
}

// selfCard says whether the launches of each cell agree.
func (r *Result) selfCard() Card {
	known, identical, text := 0, 0, ""
	for i := range r.Cells {
		if s := r.Cells[i].Self; s.Known {
			known, text = known+1, r.upper(s.Verdict)+"."
			if s.Identical {
				identical++
			}
		}
	}
	if known > 1 {
		text = fmt.Sprintf("%d of %d cells gave the same output in every launch.", identical, known)
	}
	switch {
	case known == 0:
		return Card{}
	case identical == known:
		return Card{Name: "Output", Headline: "Repeatable", Text: text}
	}
	return Card{Name: "Output", Headline: "Not repeatable", Text: text}
}
