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
	name string
	of   func(*Cell) evidence.Figure
	// what is said of a cell with its value: "%s peaks at %s"
	verb, together string
	unit           string
	more, most     string // what the larger one does, and the largest of all
	least          string
	factor         string // behind "2.1 times"
}

var memoryQuestion = question{name: "Memory", of: peak, verb: "peaks at", together: "peaks at", unit: "MiB",
	more: "uses more memory", most: "most", least: "least", factor: "the memory"}

var speedQuestion = question{name: "Speed", of: speed, verb: "decodes", together: "serves all requests at",
	unit: "tokens/s", more: "is faster", most: "fastest", least: "slowest", factor: "as fast"}

// peak is a cell's peak memory: total PSS, or the sum of RSS if no PSS was read.
func peak(c *Cell) evidence.Figure { return c.Points().Peak }

// speed is a cell's decode speed; under traffic, that of all requests together.
func speed(c *Cell) evidence.Figure {
	if c.Load != nil {
		return c.Figure(figure.AggregateTPS)
	}
	return c.Figure(figure.DecodeTPS)
}

// value is a figure with the width of its interval.
func value(f evidence.Figure, unit string) string {
	s := explain.Amount(f.Center())
	if unit != "" {
		s += " " + unit
	}
	if half, ok := f.HalfWidth(); ok {
		s += " (±" + explain.Share(half) + ")"
	}
	return s
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
		c.Text += fmt.Sprintf(" Before the model loads, %s %s MiB.", who, to(slices.Min(bases), slices.Max(bases)))
	}
	return c
}

func (r *Result) speedCard() Card {
	c := r.card(&speedQuestion)
	var words []string
	for i := range r.Cells {
		if f := r.Cells[i].Figure(figure.TTFT); f.Known() && r.Cells[i].Load == nil {
			words = append(words, explain.Amount(f.Center()))
		}
	}
	if n := len(words); n > 0 && n == len(r.Cells) && n <= 2 && c.Text != "" {
		c.Text += " First token after " + strings.Join(words, " and ") + " ms."
	}
	return c
}

// duel is a pair of cells, and which of them has more of a figure.
type duel struct {
	a, b   *Cell
	ratio  *ratio.Ratio // nil: none may be given
	call   stats.Call   // empty: refused, and nothing can be said
	more   int          // 1: a has more, -1: b; 0: no difference
	delta  float64      // what the larger has more, where only that may be said
	why    string       // why there is no ratio
	family int
}

// card answers a question over all cells.
func (r *Result) card(q *question) Card {
	out := Card{Name: q.name}
	var known []*Cell
	for i := range r.Cells {
		if c := &r.Cells[i]; q.of(c).Known() {
			known = append(known, c)
		}
	}
	duels := r.duels(q)
	switch {
	case len(known) == 0:
		out.Headline, out.Unknown = "Not measured", true
		for i := range r.Cells {
			if f := q.of(&r.Cells[i]); f.Absent != "" && f.Absent != "refused" {
				out.Text = r.upper(f.Absent) + "."
				break
			}
		}
	case len(known) == 1:
		out.Headline = explain.WithAmount(q.of(known[0]).Center(), q.unit)
		if len(r.Cells) > 1 {
			out.Headline = r.cellTitle(known[0]) + ": " + out.Headline
		}
		out.Text = r.values(q, known) + "."
	case len(duels) == 0:
		low, high := extremes(q, known)
		out.Headline = to(q.of(low).Center(), q.of(high).Center()) + " " + q.unit
		out.Text = r.values(q, known) + "."
	case len(duels) == 1:
		r.single(q, &duels[0], &out)
	default:
		r.several(q, duels, known, &out)
	}
	return out
}

// duels are the pairs that a question is answered by: of runs, if there are several. Both cells have the figure.
func (r *Result) duels(q *question) []duel {
	var out []duel
	ofRuns := slices.ContainsFunc(r.Families, func(f ratio.Family) bool { return f.Runs })
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		d := duel{a: &r.Cells[c.A], b: &r.Cells[c.B], family: c.Family}
		x, y := q.of(d.a), q.of(d.b)
		if ofRuns && !r.Families[c.Family].Runs || !x.Known() || !y.Known() || !sameRequest(d.a, d.b) {
			continue
		}
		at := slices.IndexFunc(c.Ratios, func(r ratio.Ratio) bool { return r.Figure == x.Name && r.Figure == y.Name })
		if at >= 0 {
			d.ratio, d.call = &c.Ratios[at], c.Ratios[at].Call
		} else {
			d.why = cmp.Or(strings.TrimPrefix(c.Refused, notComparable),
				"no PSS was read, and RSS counts shared pages twice")
			if u := unlike(x.Name, d.a, d.b); u != nil {
				d.why = u.Text
			}
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

// sameRequest tells whether outputs could be the same.
func sameRequest(a, b *Cell) bool { return requestsDiffer(a, b) == nil }

// compareRAM gives the difference of two memory figures, where only the device forbids a ratio.
func (d *duel) compareRAM(x, y evidence.Figure) {
	d.delta, d.call = math.Abs(x.Center()-y.Center()), stats.Chance
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

// single answers by one pair.
func (r *Result) single(q *question, d *duel, out *Card) {
	names := r.pairNames(d)
	larger, smaller := names[0], names[1]
	if d.more < 0 {
		larger, smaller = smaller, larger
	}
	values := fmt.Sprintf("%s %s %s, %s %s", names[0], q.says(d.a), value(q.of(d.a), q.unit), names[1],
		value(q.of(d.b), q.unit))
	switch {
	case d.call == "":
		out.Headline, out.Unknown = incomparable, true
		out.Text = r.upper(strings.TrimSuffix(d.why, ".")) + ". " + values
	case d.call == stats.Differs && d.ratio == nil:
		out.Headline = fmt.Sprintf("%s uses %s MiB more than %s", larger, explain.Amount(d.delta), smaller)
		out.Text = values
	case d.call == stats.Differs:
		out.Headline = fmt.Sprintf("%s %s", larger, q.times(d.ratio, smaller))
		out.Text = values
		if i := intervalOf(d.ratio); i != nil {
			out.Text += fmt.Sprintf("; 95%% CI of the ratio: %s to %s", explain.Amount(i.Lo), explain.Amount(i.Hi))
		}
	case d.call == stats.TooSmall:
		out.Headline, out.Text = "Practically equal", values
	case d.call == stats.TooFewToSay:
		out.Headline, out.Text, out.Unknown = tooFew, values, true
	default:
		out.Headline, out.Text = "No difference detected", values
		if d.ratio != nil {
			out.Text += d.ratio.Limit
		}
	}
	out.Text += "."
	if why := notAlike([]duel{*d}); why != "" {
		out.Text += " Not alike: " + why + "."
	}
}

const incomparable, tooFew = "Not comparable here", "Too few launches to tell"

// says is the verb for a cell's value.
func (q *question) says(c *Cell) string {
	if c.Load != nil {
		return q.together
	}
	return q.verb
}

// times says how much more the larger side of a ratio is.
func (q *question) times(x *ratio.Ratio, than string) string {
	if x.Ratio == nil {
		return q.more + " than " + than
	}
	t := turned(*x.Ratio)
	if t < 2 {
		how := "uses " + explain.Share(t-1) + " more memory than " + than
		if q == &speedQuestion {
			how = "is " + explain.Share(t-1) + " faster than " + than
		}
		return how
	}
	if q == &speedQuestion {
		return "is " + explain.Amount(t) + " times as fast as " + than
	}
	return "uses " + explain.Amount(t) + " times the memory of " + than
}

// turned is a ratio as one of at least 1.
func turned(x float64) float64 {
	if x < 1 {
		return 1 / x
	}
	return x
}

// intervalOf is that of a ratio which is turned.
func intervalOf(x *ratio.Ratio) *stats.Interval {
	if x.Interval == nil || x.Ratio == nil || *x.Ratio >= 1 {
		return x.Interval
	}
	if x.Interval.Lo <= 0 {
		return nil
	}
	return &stats.Interval{Lo: 1 / x.Interval.Hi, Hi: 1 / x.Interval.Lo}
}

// pairNames are those of the two sides: their engines, or their runs, or all that tells them apart.
func (r *Result) pairNames(d *duel) [2]string {
	if d.a.Run != d.b.Run {
		return [2]string{r.runTitle(d.a.Run), r.runTitle(d.b.Run)}
	}
	if d.a.Spec.Engine != d.b.Spec.Engine {
		return [2]string{d.a.Title(), d.b.Title()}
	}
	return [2]string{d.a.Label, d.b.Label}
}

// several answers by many pairs: for each two sides how many go which way, and the extremes of all cells.
func (r *Result) several(q *question, duels []duel, known []*Cell, out *Card) {
	var order [][2]string
	of := map[[2]string][]duel{}
	for _, d := range duels {
		names := r.pairNames(&d)
		if at := [2]string{names[1], names[0]}; of[at] != nil {
			names = at
		}
		if of[names] == nil {
			order = append(order, names)
		}
		of[names] = append(of[names], d)
	}
	var cards []Card
	for _, names := range order {
		c := Card{}
		if all := of[names]; len(all) == 1 {
			r.single(q, &all[0], &c)
		} else {
			r.together(q, names, all, &c)
		}
		if !strings.HasPrefix(c.Headline, names[0]+" ") && !strings.HasPrefix(c.Headline, names[1]+" ") {
			c.Headline = fmt.Sprintf("%s and %s: %s", names[0], names[1], lower(c.Headline))
		}
		if len(order) > 1 && len(of[names]) > 1 && c.Text != "" {
			c.Headline += " (" + strings.TrimSuffix(lower(c.Text), ".") + ")"
		}
		cards = append(cards, c)
	}
	refused := slices.ContainsFunc(duels, func(d duel) bool { return d.call == "" })
	if len(cards) == 1 {
		c := cards[0]
		headline := strings.TrimPrefix(c.Headline, order[0][0]+" and "+order[0][1]+": ")
		*out = Card{out.Name, r.upper(headline), c.Text, c.Unknown}
		if !refused {
			out.Text = strings.TrimSpace(out.Text + " " + r.extremes(q, known) + ".")
		}
		return
	}
	if !slices.ContainsFunc(duels,
		func(d duel) bool { return d.more != 0 || d.call == "" || d.call == stats.TooFewToSay }) {
		out.Headline = fmt.Sprintf("No difference detected in any of %d pairs", len(duels))
		out.Text = r.values(q, known) + "."
		return
	}
	// An answer stands before what has none.
	slices.SortStableFunc(cards, func(a, b Card) int { return cmp.Compare(truth(a.Unknown), truth(b.Unknown)) })
	var words []string
	const most = 3
	for i, c := range cards {
		if i == most && len(cards) > most+1 {
			words = append(words, fmt.Sprintf("%d more pairs are in the tables", len(cards)-most))
			break
		}
		words = append(words, c.Headline)
	}
	out.Unknown = cards[0].Unknown
	if first := r.first(q, duels, known); first != nil {
		word := q.most
		if q == &memoryQuestion {
			word = q.least
		}
		out.Headline = r.upper(word) + ": " + r.cellTitle(first)
	} else {
		out.Headline, words = words[0], words[1:]
	}
	out.Text = strings.Join(words, "; ") + "."
	if !refused || len(known) <= mostValues { // the extremes would compare what is not comparable
		out.Text += " " + r.values(q, known) + "."
	}
	if at := slices.IndexFunc(duels, func(d duel) bool { return d.call == "" }); at >= 0 &&
		!strings.Contains(out.Text, duels[at].why) {
		out.Text += " Not comparable: " + strings.TrimSuffix(duels[at].why, ".") + "."
	}
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// lower begins a sentence within another; a word with a capital inside is a name.
func lower(s string) string {
	if word, _, _ := strings.Cut(s, " "); word == "" || word[1:] != strings.ToLower(word[1:]) {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// together answers for pairs of cells of the same two sides.
func (r *Result) together(q *question, sides [2]string, duels []duel, out *Card) {
	more := map[string]int{}
	var ratios, deltas []float64
	equal, few, refused, why := 0, 0, 0, ""
	for i := range duels {
		d := &duels[i]
		names := r.pairNames(d)
		switch {
		case d.call == "":
			refused, why = refused+1, cmp.Or(why, d.why)
		case d.more != 0:
			name := names[0]
			if d.more < 0 {
				name = names[1]
			}
			if more[name]++; d.ratio != nil && d.ratio.Ratio != nil {
				ratios = append(ratios, turned(*d.ratio.Ratio))
			} else {
				deltas = append(deltas, d.delta)
			}
		case d.call == stats.TooFewToSay:
			few++
		default:
			equal++
		}
	}
	all, one := fmt.Sprintf("all %d pairs", len(duels)), fmt.Sprintf("any of %d pairs", len(duels))
	if len(duels) == 2 {
		all, one = "both pairs", "either pair"
	}
	switch {
	case refused == len(duels):
		out.Headline, out.Unknown, out.Text = incomparable, true, r.upper(strings.TrimSuffix(why, "."))+"."
		return
	case few == len(duels):
		out.Headline, out.Unknown = tooFew, true
		return
	case len(more) == 0:
		out.Headline = "No difference detected in " + one
	default:
		larger, smaller := sides[0], sides[1]
		if more[smaller] > more[larger] {
			larger, smaller = smaller, larger
		}
		if more[larger] < len(duels) {
			all = fmt.Sprintf("%d of %d pairs", more[larger], len(duels))
		}
		out.Headline = fmt.Sprintf("%s %s than %s in %s", larger, q.more, smaller, all)
	}
	var words []string
	if len(ratios) > 0 {
		words = append(words, to(slices.Min(ratios), slices.Max(ratios))+" times "+q.factor)
	}
	if len(deltas) > 0 {
		words = append(words, to(slices.Min(deltas), slices.Max(deltas))+" MiB more")
	}
	if mean := r.meanWords(q.of(duels[0].a).Name, duels[0].family); mean != "" {
		words = append(words, mean)
	}
	if n := min(more[sides[0]], more[sides[1]]); n > 0 {
		words = append(words, fmt.Sprintf("%d %s the other way", n, explain.Plural(n, "pair goes", "pairs go")))
	}
	for _, rest := range []struct {
		n    int
		what string
	}{{equal, "without a difference"}, {few, "with too few launches to tell"}, {refused, "not comparable"}} {
		if rest.n > 0 && rest.n < len(duels) {
			words = append(words, fmt.Sprintf("%d %s %s", rest.n, explain.Plural(rest.n, "pair", "pairs"), rest.what))
		}
	}
	if len(words) > 0 {
		out.Text = r.upper(strings.Join(words, "; ")) + "."
	}
	if why := notAlike(duels); why != "" {
		out.Text += " Not alike: " + why + "."
	}
}

// notAlike says in which way cells differ that are compared because that was asked for.
func notAlike(duels []duel) string {
	for _, d := range duels {
		if d.ratio != nil && d.ratio.Different != "" {
			return d.ratio.Different
		}
	}
	return ""
}

// meanWords is the geometric mean of a family's ratios, if all of its pairs make one.
func (r *Result) meanWords(name string, family int) string {
	var means []ratio.Mean
	for _, m := range r.Families[family].Means {
		if m.Figure == name {
			means = append(means, m)
		}
	}
	if len(means) != 1 || means[0].Call != stats.Differs {
		return ""
	}
	m := means[0]
	s := "geometric mean " + explain.Amount(turned(m.Ratio)) + " times"
	if i := intervalOf(&ratio.Ratio{Ratio: &m.Ratio, Interval: m.Interval}); i != nil {
		s += fmt.Sprintf(" (95%% CI %s to %s)", explain.Amount(i.Lo), explain.Amount(i.Hi))
	}
	return s
}

// first is the cell that is better than each other one, by a difference that was found; nil if there is none.
func (r *Result) first(q *question, duels []duel, known []*Cell) *Cell {
	won := map[*Cell]int{}
	for _, d := range duels {
		lead := d.more
		if q == &memoryQuestion {
			lead = -lead
		}
		switch {
		case lead > 0:
			won[d.a]++
		case lead < 0:
			won[d.b]++
		}
	}
	if at := slices.IndexFunc(known, func(c *Cell) bool { return won[c] == len(known)-1 }); at >= 0 {
		return known[at]
	}
	return nil
}

// cellTitle is a cell's name: its engine, if it has only one cell.
func (r *Result) cellTitle(c *Cell) string {
	n := 0
	for i := range r.Cells {
		if r.Cells[i].Spec.Engine == c.Spec.Engine {
			n++
		}
	}
	if n == 1 {
		return c.Title()
	}
	return c.Label
}

const mostValues = 4

// values are those of a few cells, or the extremes of many.
func (r *Result) values(q *question, known []*Cell) string {
	if len(known) > mostValues {
		return r.extremes(q, known)
	}
	var words []string
	for i, c := range known {
		unit, verb := "", " "
		if i == 0 {
			unit, verb = q.unit, " "+q.says(c)+" "
		}
		words = append(words, r.cellTitle(c)+verb+value(q.of(c), unit))
	}
	return strings.Join(words, ", ")
}

// extremes names the cells that have least and most.
func (r *Result) extremes(q *question, known []*Cell) string {
	low, high := extremes(q, known)
	return fmt.Sprintf("%s of %d cells: %s, %s; %s: %s, %s", r.upper(q.least), len(known), low.Label,
		value(q.of(low), q.unit), q.most, high.Label, value(q.of(high), q.unit))
}

func extremes(q *question, known []*Cell) (low, high *Cell) {
	order := func(a, b *Cell) int { return cmp.Compare(q.of(a).Center(), q.of(b).Center()) }
	return slices.MinFunc(known, order), slices.MaxFunc(known, order)
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

// outputCard says whether cells generated the same.
func (r *Result) outputCard() Card {
	out := Card{Name: "Output"}
	var compared []parity.Parity
	identical := 0
	for _, p := range r.Parity {
		if p.Compared {
			compared = append(compared, p)
		}
		if p.Compared && p.Identical {
			identical++
		}
	}
	label := func(cell int) string { return r.cellTitle(&r.Cells[cell]) }
	switch n := len(compared); {
	case n == 0 && len(r.Parity) > 0:
		out.Headline, out.Unknown = "Not compared", true
		out.Text = r.upper(strings.TrimPrefix(r.Parity[0].Verdict, "not compared: ")) + "."
		return out
	case n == 0:
		return r.selfCard()
	case n > 1 && identical == n:
		out.Headline = fmt.Sprintf("Identical in all %d pairs", n)
		if n == 2 {
			out.Headline = "Identical in both pairs"
		}
	case n > 1:
		out.Headline = fmt.Sprintf("Identical in %d of %d pairs", identical, n)
	case identical == 1 && compared[0].ByText:
		out.Headline = "Identical text"
	case identical == 1:
		out.Headline = "Identical"
	case compared[0].First != nil:
		out.Headline = fmt.Sprintf("Different from token %d", compared[0].Agreed+1)
	default:
		out.Headline = "Different"
	}
	if out.Text = parity.Words(r.Parity, label); len(compared) == 1 && identical == 0 {
		out.Text = r.upper(strings.TrimPrefix(compared[0].Verdict, strings.ToLower(out.Headline)+" on: ")) + "."
	}
	return out
}

// selfCard says whether the launches of each cell agree, where cells are not compared.
func (r *Result) selfCard() Card {
	out := Card{Name: "Output", Headline: "Nothing to compare with", Unknown: true}
	known, identical := 0, 0
	for i := range r.Cells {
		if s := r.Cells[i].Self; s.Known {
			known++
			if s.Identical {
				identical++
			}
			out.Text = r.upper(s.Verdict) + "."
		}
	}
	switch {
	case known == 0:
		return Card{}
	case known > 1:
		out.Text = fmt.Sprintf("%d of %d cells gave the same output in every launch.", identical, known)
	}
	if out.Headline, out.Unknown = "Not repeatable", false; identical == known {
		out.Headline = "Repeatable"
	}
	return out
}
