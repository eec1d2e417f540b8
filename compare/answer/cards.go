package answer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/memory"
	"llmparity/compare/ratio"
	"llmparity/internal/figure"
	"llmparity/internal/stats"
)

// question is one that the answer has a card for: which cell has more of a figure.
type question struct {
	name, unit     string
	sureOf         string // its figure in the card that says how sure the answer is
	of             func(*compare.Cell) evidence.Figure
	verb, together string // before a cell's value; together: under traffic
	more           string // what the larger one does
	share, times   string // the same, by how much: formats for a share or a number, and the smaller one
	factor         string // behind "2.1 times"
	least, most    string // names of the extremes
	best           string // of the better one
	lessIsBetter   bool
}

var memoryQuestion = question{name: "Memory", unit: "MiB", sureOf: "peak memory", of: peak,
	verb: "peaks at", together: "peaks at",
	more: "uses more memory", share: "uses %s more memory than %s", times: "uses %s times the memory of %s",
	factor: "the memory", least: "Least", most: "most", best: "Least", lessIsBetter: true}

var speedQuestion = question{name: "Speed", unit: "tokens/s", sureOf: "speed", of: speed, verb: "decodes",
	together: "serves all requests at", more: "is faster", share: "is %s faster than %s",
	times: "is %s times as fast as %s", factor: "as fast", least: "Slowest", most: "fastest", best: "Fastest"}

// peak is a cell's peak memory: total PSS, or the sum of RSS if no PSS was read.
func peak(c *compare.Cell) evidence.Figure { return c.Points().Peak }

// speed is a cell's decode speed; under traffic, that of all requests together.
func speed(c *compare.Cell) evidence.Figure {
	if c.Load != nil {
		return c.Figure(figure.AggregateTPS)
	}
	return c.Figure(figure.DecodeTPS)
}

// value is a cell's figure with a unit and the width of its interval.
func (q *question) value(c *compare.Cell, unit string) string {
	f := q.of(c)
	s := valued(f, unit)
	if n := c.Launches.Counted; f.TimeOrRate() && f.N < n {
		s += fmt.Sprintf(" in %d of %d %s", f.N, n, c.Several())
	}
	return s
}

func valued(f evidence.Figure, unit string) string {
	s := strings.TrimSpace(explain.Amount(f.Center()) + " " + unit)
	if half, ok := f.HalfWidth(); ok && half <= evidence.Lopsided {
		return s + " (±" + explain.Share(half) + ")"
	}
	if f.Interval == nil {
		return s
	}
	least := stats.Interval{Lo: f.Interval.Lo, Hi: f.Interval.Hi, Confidence: stats.Confidence}
	return s + explain.CI(&least, explain.Amount)
}

// says is value behind the verb.
func (q *question) says(c *compare.Cell) string {
	if c.Load != nil {
		return q.together + " " + q.value(c, q.unit)
	}
	return q.verb + " " + q.value(c, q.unit)
}

func (r view) memoryCard() Card {
	c := r.card(&memoryQuestion)
	var bases []float64
	var engines []string
	browser := true
	for _, c := range r.Cells {
		if f := c.Figure(figure.Baseline); f.Known() {
			bases, browser = append(bases, f.Center()), browser && c.Browser() != ""
			engines = explain.AppendNew(engines, c.Title())
		}
	}
	if len(bases) > 0 && !c.Unknown {
		who := "the processes of " + explain.And(engines, 2) + " take"
		if browser {
			who = "the browser alone takes"
		}
		c.Text += fmt.Sprintf(" Before the model loads, %s %s MiB.", who, to(bases))
	}
	held := r.Distinct(func(c *compare.Cell) string { return c.Policy("kv_dtype") })
	each := r.Distinct(func(c *compare.Cell) string {
		if dtype := c.Policy("kv_dtype"); dtype != "" {
			return c.Title() + " " + dtype
		}
		return ""
	})
	if len(held) > 1 && len(each) <= mostValues {
		c.Text += " The KV caches differ in dtype: " + strings.Join(each, ", ") + "."
	}
	return c
}

func (r view) speedCard() Card {
	c := r.card(&speedQuestion)
	if c.Headline == incomparable {
		return c // the table has the times
	}
	var words []string
	for i, c := range r.Cells {
		if f := c.Figure(figure.TTFT); f.Known() && c.Load == nil {
			who := c.Title()
			if len(r.Cells) == 2 && who == r.Cells[1-i].Title() {
				who = c.Label
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
func (r view) card(q *question) Card {
	var known []*compare.Cell
	var values []float64
	absent := ""
	for _, c := range r.Cells {
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
	a, b   *compare.Cell
	names  [2]string
	x      ratio.Ratio // without a call: refused, and nothing can be said
	amount bool        // only what the larger has more may be said
	more   int         // 1: a has more, -1: b; 0: no difference
	why    string      // why there is no ratio
	// atLeast is all that may be said of memory that other programs share: one side uses so many MiB more, or even more
	// than that. 0: nothing; below 0: b uses more.
	atLeast float64

	family int
}

// What comes of pairs that do not differ, as counts of pairs say it.
const (
	equal   = "without a difference"
	few     = "with too few launches to tell"
	noisy   = "too noisy to tell"
	refused = "not comparable"
)

// outcome is one of these; empty: they differ.
func (d *duel) outcome() string {
	switch {
	case d.x.Call == "":
		return refused
	case d.x.Call == stats.TooFewToSay:
		return few
	case ratio.Unsettled(d.x.Call, d.x.PercentInterval):
		return noisy
	case d.more == 0:
		return equal
	}
	return ""
}

// sides are the names of the larger and the smaller one.
func (d *duel) sides() (larger, smaller string) {
	if d.more < 0 {
		return d.names[1], d.names[0]
	}
	return d.names[0], d.names[1]
}

// duels are the pairs that a question is answered by: of runs, if there are several. Both cells have the figure.
func (r view) duels(q *question) []duel {
	var out []duel
	ofRuns := slices.ContainsFunc(r.Families, func(f ratio.Family) bool { return f.Runs })
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		d := duel{a: r.Cells[c.A], b: r.Cells[c.B], family: c.Family}
		x, y := q.of(d.a), q.of(d.b)
		if ofRuns && !r.Families[c.Family].Runs || !x.Known() || !y.Known() || !compare.SameRequest(d.a, d.b) {
			continue
		}
		d.names = r.pairNames(d.a, d.b)
		at := slices.IndexFunc(c.Ratios, func(r ratio.Ratio) bool { return r.Figure == x.Name && r.Figure == y.Name })
		if at >= 0 {
			d.x = c.Ratios[at]
		} else {
			d.why = cmp.Or(compare.Unlike(x.Name, d.a, d.b), c.Why(),
				"no PSS was read, and RSS counts shared pages twice")
			if q == &memoryQuestion {
				d.x, d.amount = r.Amounts(c, x, y)
				if words := cmp.Or(d.a.MemoryCell().ProgramWords(), d.b.MemoryCell().ProgramWords()); words != "" {
					d.why, d.atLeast = words, compare.LeastMore(d.a, d.b)
				}
			}
		}
		if d.x.Call == stats.Differs {
			d.more = cmp.Compare(x.Center(), y.Center())
		}
		out = append(out, d)
	}
	return out
}

const (
	incomparable = "Not comparable here"
	tooFew       = "Too few launches to tell"
	tooNoisy     = "Too noisy to tell"
	noDifference = "No difference detected"
)

// single answers by one pair.
func (r view) single(q *question, d *duel) Card {
	out := Card{Text: fmt.Sprintf("%s %s, %s %s", d.names[0], q.says(d.a), d.names[1], q.value(d.b, q.unit))}
	switch d.outcome() {
	case refused:
		out.Headline, out.Unknown = incomparable, true
		if d.atLeast != 0 {
			d.more = cmp.Compare(d.atLeast, 0)
			larger, smaller := d.sides()
			out.Headline = fmt.Sprintf("%s uses at least %s MiB more than %s", larger,
				explain.Amount(math.Abs(d.atLeast)), smaller)
		}
		out.Text = r.upper(strings.TrimSuffix(d.why, ".")) + ". " + out.Text
	case few:
		out.Headline, out.Unknown = tooFew, true
	case "":
		larger, smaller := d.sides()
		out.Headline = larger + " " + q.moreThan(smaller, d)
		if q == &memoryQuestion && !d.amount {
			out.Headline += d.leftOut()
		}
		if prompts := compare.PromptsDiffer(d.a, d.b); prompts != "" && !q.lessIsBetter {
			out.Headline += ", with prompts of " + prompts
		}
	default:
		out.Headline, out.Unknown = noDifference, d.outcome() == noisy
		if out.Unknown {
			out.Headline = tooNoisy
		} else if d.x.Call == stats.TooSmall {
			out.Headline = "Practically equal"
			break
		}
		if change := d.x.PercentInterval; change != nil {
			out.Headline += fmt.Sprintf(": %s to %s from %s to %s", signed(change.Lo/100), signed(change.Hi/100),
				d.names[0], d.names[1])
		}
		out.Text += d.x.Limit
	}
	out.Text += notAlike(d)
	return out
}

// leftOut names the side whose memory other programs share so much that the ratio misleads; empty if there is none.
func (d *duel) leftOut() string {
	for i, c := range []*compare.Cell{d.a, d.b} {
		if left := c.MemoryCell().LeftOut(); left > memory.OthersShare {
			return fmt.Sprintf(", but other programs share up to %s of what %s uses, which is left out in part",
				explain.Share(left), d.names[i])
		}
	}
	return ""
}

// moreThan says by how much the larger side has more than the smaller one.
func (q *question) moreThan(smaller string, d *duel) string {
	switch {
	case d.amount:
		more, interval := d.x.More()
		return fmt.Sprintf("uses %s MiB more than %s%s", explain.Amount(more), smaller,
			d.interval(interval, explain.Amount))
	case d.x.Ratio == nil:
		return q.more + " than " + smaller
	}
	times, interval := ratio.AtLeast1(*d.x.Ratio, d.x.Interval)
	how, write := q.times, explain.Amount
	if times < 2 {
		how, write = q.share, func(t float64) string { return explain.Share(t - 1) }
	}
	return fmt.Sprintf(how, write(times), smaller) + d.interval(interval, write)
}

// interval writes an interval in parentheses, or that the launches are too few for one.
func (d *duel) interval(i *stats.Interval, write func(float64) string) string {
	if few := d.x.Few(); i == nil && few != "" {
		return " (" + few + ")"
	}
	return explain.CI(i, write)
}

// signed is a change in percent, with its sign.
func signed(share float64) string {
	if s := explain.Share(share); share <= 0 || s == "0.0%" {
		return s
	}
	return "+" + explain.Share(share)
}

// notAlike says in which way cells differ that are compared because that was asked for; empty: in none.
func notAlike(d *duel) string {
	if d.x.Different == "" {
		return ""
	}
	return ". Not alike: " + d.x.Different
}

// pairNames are those of the two sides: their engines, or their runs, or all that tells them apart.
func (r view) pairNames(a, b *compare.Cell) [2]string {
	switch {
	case a.Run != b.Run:
		return [2]string{r.runTitle(a.Run), r.runTitle(b.Run)}
	case a.Spec.Engine != b.Spec.Engine:
		return [2]string{a.Title(), b.Title()}
	}
	return [2]string{a.Label, b.Label}
}

// several answers by many pairs: for each two sides how many go which way, and the extremes of all cells.
func (r view) several(q *question, duels []duel, known []*compare.Cell) Card {
	var by evidence.Groups[[2]string, duel]
	for _, d := range duels {
		sides := d.names
		if turned := [2]string{sides[1], sides[0]}; by.Of[turned] != nil {
			sides = turned
		}
		by.Add(sides, d)
	}
	unlike := slices.IndexFunc(duels, func(d duel) bool { return d.outcome() == refused })
	if len(by.Keys) == 1 {
		out := r.together(q, by.Keys[0], duels)
		if unlike < 0 { // else the extremes would compare what is not comparable
			out.Text = strings.TrimPrefix(r.upper(out.Text)+". "+r.extremes(q, known), ". ")
		}
		return out
	}
	if !slices.ContainsFunc(duels, func(d duel) bool { return d.outcome() != equal }) {
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
	if unlike < 0 || len(known) <= mostValues {
		out.Text += ". " + r.values(q, known)
	}
	if unlike >= 0 && !strings.Contains(out.Text, duels[unlike].why) {
		out.Text += ". Not comparable: " + strings.TrimSuffix(duels[unlike].why, ".")
	}
	return out
}

// together answers for pairs of cells of the same two sides.
func (r view) together(q *question, sides [2]string, duels []duel) Card {
	all := len(duels)
	more, of, why := map[string]int{}, map[string]int{}, ""
	var ratios, deltas []float64
	for i := range duels {
		d := &duels[i]
		of[d.outcome()]++
		switch larger, _ := d.sides(); {
		case d.outcome() != "":
			why = cmp.Or(why, d.why)
			continue
		case d.amount:
			delta, _ := d.x.More()
			deltas = append(deltas, delta)
			more[larger]++
		default:
			if more[larger]++; d.x.Ratio != nil {
				times, _ := ratio.AtLeast1(*d.x.Ratio, nil)
				ratios = append(ratios, times)
			}
		}
	}
	every, any := fmt.Sprintf("all %d pairs", all), fmt.Sprintf("any of %d pairs", all)
	if all == 2 {
		every, any = "both pairs", "either pair"
	}
	larger, smaller := sides[0], sides[1]
	if more[smaller] > more[larger] {
		larger, smaller = smaller, larger
	}
	headline := noDifference + " in " + any
	switch n := more[larger]; {
	case of[refused] == all:
		return Card{Headline: incomparable, Text: r.upper(strings.TrimSuffix(why, ".")), Unknown: true}
	case of[few] == all:
		return Card{Headline: tooFew, Unknown: true}
	case of[noisy] == all:
		return Card{Headline: tooNoisy + " in " + any, Unknown: true}
	case n == all:
		headline = fmt.Sprintf("%s %s than %s in %s", larger, q.more, smaller, every)
	case n > 0:
		headline = fmt.Sprintf("%s %s than %s in %d of %d pairs", larger, q.more, smaller, n, all)
	case of[noisy] > 0:
		headline = fmt.Sprintf("%s in %d of %d pairs", tooNoisy, of[noisy], all)
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
	for _, rest := range []string{equal, few, noisy, refused} {
		if n := of[rest]; n > 0 && n < all {
			words = append(words, fmt.Sprintf("%d %s %s", n, explain.Plural(n, "pair", "pairs"), rest))
		}
	}
	return Card{Headline: headline, Text: strings.Join(words, "; ") + notAlike(&duels[0])}
}

// meanWords is the geometric mean of a family's ratios, if there is one alone. It can differ where no pair does.
func (r view) meanWords(name string, family int) string {
	means := slices.DeleteFunc(slices.Clone(r.Families[family].Means),
		func(m ratio.Mean) bool { return m.Figure != name })
	if len(means) != 1 || means[0].Call != stats.Differs {
		return ""
	}
	times, interval := ratio.AtLeast1(means[0].Ratio, means[0].Interval)
	return "geometric mean " + explain.Amount(times) + " times" + explain.CI(interval, explain.Amount)
}

// winner is the cell that is better than each other one, by a difference that was found; nil if there is none.
func (q *question) winner(duels []duel, known []*compare.Cell) *compare.Cell {
	won := map[*compare.Cell]int{}
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
func (r view) cellTitle(c *compare.Cell) string {
	other := func(o *compare.Cell) bool { return o.Spec.Engine == c.Spec.Engine && o.Label != c.Label }
	if slices.ContainsFunc(r.Cells, other) {
		return c.Label
	}
	return c.Title()
}

const mostValues = 4

// values are those of a few cells, or the extremes of many.
func (r view) values(q *question, known []*compare.Cell) string {
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
func (r view) extremes(q *question, known []*compare.Cell) string {
	order := func(a, b *compare.Cell) int { return cmp.Compare(q.of(a).Center(), q.of(b).Center()) }
	low, high := slices.MinFunc(known, order), slices.MaxFunc(known, order)
	return fmt.Sprintf("%s of %d cells: %s, %s; %s: %s, %s", q.least, len(known), low.Label, q.value(low, q.unit),
		q.most, high.Label, q.value(high, q.unit))
}

// upper begins a sentence, unless that begins with a name.
func (r view) upper(s string) string {
	name := func(c *compare.Cell) bool {
		return strings.HasPrefix(s, c.Label) || strings.HasPrefix(s, c.Title()) ||
			strings.HasPrefix(s, r.runTitle(c.Run)+" ")
	}
	if s == "" || s[0] < 'a' || s[0] > 'z' || slices.ContainsFunc(r.Cells, name) {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
