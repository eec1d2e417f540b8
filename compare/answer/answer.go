// Package answer says in plain sentences what a compare.Result holds. It computes no figure: each sentence is made of
// figures, ratios and warnings of the result, and claims no difference that the statistics do not show.
package answer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/verdict"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/record"
	"llmparity/internal/stats"
	"llmparity/internal/warning"
)

// Answer is what a reader asks first: what was compared, which is smaller, which is faster, whether the output is the
// same, how sure that is, and whether it may be quoted. Every format begins with it.
type Answer struct {
	Title    string
	Facts    []string // below the title: model, request, launches, date, machine
	Ship     Card     // of forms of one model: which to ship
	Place    Card     // of forms: in the browser, or natively
	Cost     Card     // of one library in a page and outside, on the CPU: what the browser costs
	Growth   Card     // of cells that differ in their contexts
	Memory   Card
	Speed    Card
	Output   Card
	Quality  Card // of a given text
	Sure     Card
	Quote    Card
	Warnings []compare.Remarks // that may change a conclusion, a line a code: at most three
	More     int               // other codes
	// Effect is what the warnings do, after their number.
	Effect string

	// Compared are the comparisons that the answer is about.
	Compared []*compare.Comparison
}

// Card is the answer to one question.
type Card struct {
	Name     string            // Memory, Speed, Output …
	Headline string            // a few words
	Line     string            // the figures in one short sentence, or why there are none
	Text     string            // sentences with the figures
	Unknown  bool              // there is no answer here; Headline and Text say why
	Without  string            // which cells were refused, and why; Text has it too
	Verdicts []verdict.Verdict // on each pair of cells that the card is about
	Reason   verdict.Reason    // why cells are not compared, if Text says so
}

// InTable reports whether the table of forms of a model says what a card does.
func (a *Answer) InTable(c *Card) bool {
	return a.Ship.Headline != "" && (c.Name == a.Speed.Name || c.Name == a.Memory.Name)
}

// Sub is the line below the title.
func (a *Answer) Sub() string { return strings.Join(a.Facts, " · ") }

// Sentences are the answer in plain sentences.
func (a *Answer) Sentences() []string {
	out := []string{}
	for _, c := range []Card{a.Ship, a.Place, a.Cost, a.Growth, a.Speed, a.Memory, a.Output, a.Quality, a.Sure,
		a.Quote} {
		if c.Headline != "" {
			out = append(out, c.Sentence())
		}
	}
	return out
}

// Sentence is the card in one line.
func (c *Card) Sentence() string {
	s := c.Headline + ". " + c.Text
	if c.Name != "" {
		s = c.Name + ": " + s
	}
	return strings.TrimSpace(s)
}

// Says reports whether a card gives a reason why cells are not compared.
func (a *Answer) Says(why verdict.Reason) bool {
	return a.Memory.Reason == why || a.Speed.Reason == why
}

// view is the result that the answer is made from.
type view struct{ *compare.Result }

// Of makes the answer of a result.
func Of(res *compare.Result) *Answer {
	r := view{res}
	a := &Answer{Title: r.subject(), Facts: r.facts(), Sure: r.sure(), Compared: r.compared()}
	if slices.ContainsFunc(r.Cells, func(c *compare.Cell) bool { return c.Launches.Counted > 0 }) {
		a.Growth, a.Memory, a.Speed = r.growthCard(), r.memoryCard(), r.speedCard()
		a.Ship, a.Place, a.Cost = r.shipCard(), r.placeCard(), r.costCard()
		a.Output = r.outputCard()
		if t := r.forms(); t == nil || t.Quality < 0 { // else a table has the forms' perplexities
			a.Quality = r.qualityCard()
		}
		a.Quote = r.quote(a)
		if t := r.title(a); t != "" {
			a.Title, a.Facts = t, append([]string{a.Title}, a.Facts...)
		}
		if r.costTitle(a) != "" && r.onlyCost() {
			a.Speed = Card{Name: a.Speed.Name, Reason: a.Speed.Reason} // the browser's cost has it
		}
	}
	for _, c := range []*Card{&a.Ship, &a.Place, &a.Cost, &a.Growth, &a.Output, &a.Quality, &a.Sure, &a.Quote} {
		c.Line = cmp.Or(c.Line, firstSentence(c.Text))
	}
	const most = 3
	a.Warnings, a.Effect = r.gravest(), r.effect()
	a.More = max(0, len(a.Warnings)-most)
	a.Warnings = a.Warnings[:len(a.Warnings)-a.More]
	return a
}

// firstSentence is a text up to its first full stop.
func firstSentence(text string) string {
	first, _, cut := strings.Cut(text, ". ")
	if cut {
		first += "."
	}
	return first
}

// gravest are all warnings by severity, a line a code. Where no speed is compared or checked, what can only change
// speeds changes no conclusion; the section of warnings has it.
func (r view) gravest() []compare.Remarks {
	all := r.ByCode(r.Warnings)
	if speeds := r.pairs(&speedQuestion); r.Gate == nil && len(speeds) > 0 && !slices.ContainsFunc(speeds,
		func(p pair) bool { return p.Outcome != verdict.NotComparable }) {
		all = slices.DeleteFunc(all, func(w compare.Remarks) bool { return r.onlySpeeds(w.Code) })
	}
	for i := range all {
		if w := &all[i]; w.Code == warning.WideInterval {
			w.Text += "; llmparity run --until-ci 5% measures until intervals are narrow"
		}
	}
	return all
}

// effect is what the warnings do: a gate whose launches alternated allows for a machine that is busy or varies.
func (r view) effect() string {
	noise := []string{warning.BusyMachine, warning.WideInterval, warning.Unsteady, warning.UnevenSpread,
		warning.SamplerCost}
	if g := r.Gate; g != nil && g.Interleaved && g.Status != gates.Inconclusive &&
		!slices.ContainsFunc(r.Warnings, func(w evidence.Warning) bool { return !slices.Contains(noise, w.Code) }) {
		return explain.GateAllows
	}
	return explain.MayChange
}

// onlySpeeds reports whether a warning is about times and rates alone.
func (r view) onlySpeeds(code string) bool {
	if slices.Contains([]string{warning.BusyMachine, warning.SamplerCost, warning.Spinning, warning.TokenTimes}, code) {
		return true
	}
	times := 0
	for _, c := range r.Cells {
		for _, f := range c.Figures {
			has := slices.ContainsFunc(f.Warnings, func(w record.Warning) bool { return w.Code == code })
			if has && !f.TimeOrRate() {
				return false
			} else if has {
				times++
			}
		}
	}
	return times > 0
}

// subject says what was compared: the cells that ran, if any did.
func (r view) subject() string {
	forms := r.forms()
	r = r.ran()
	const letters = 40 // of a name of others
	engines := r.Distinct(func(c *compare.Cell) string { return explain.Cut(c.Title(), letters) })
	foreign := !slices.ContainsFunc(r.Cells, func(c *compare.Cell) bool { return !c.Foreign() })
	switch {
	case len(r.Cells) == 0:
		return "Nothing was measured"
	case foreign:
		return "Memory of " + explain.And(engines, 3) + ", recorded by another program"
	case len(r.Runs) > 1 && !r.Interleaved():
		names := r.runTitles()
		if len(names) == 1 {
			return fmt.Sprintf("%s, %d runs", names[0], len(r.Runs))
		}
		return "Runs " + explain.And(names, 3)
	}
	title := explain.And(engines, 3)
	models := r.Distinct(func(c *compare.Cell) string { return axis.Called(&c.Spec.Model) })
	switch {
	case forms != nil && len(models) > 1:
		title += fmt.Sprintf(" on %d forms of %s", len(forms.Forms), explain.Cut(forms.Model, letters))
	case len(models) == 0:
	case len(models) == 1:
		title += " on " + explain.Cut(models[0], letters)
	default:
		title += fmt.Sprintf(" on %d models", len(models))
	}
	if r.Interleaved() {
		return r.builds() + ", " + title
	}
	if varied := r.varied(); len(varied) > 0 {
		return title + ", " + strings.Join(varied, ", ")
	}
	if prompt := strings.Join(strings.Fields(r.Cells[0].Spec.Prompt), " "); prompt != "" {
		title += ", “" + explain.Cut(prompt, 20) + "”"
	}
	return title
}

func (r view) runTitles() (names []string) {
	for i := range r.Runs {
		names = explain.AppendNew(names, r.runTitle(i))
	}
	return names
}

// builds names the sides of an interleaved run, with the hashes of their builds.
func (r view) builds() string {
	var names, all []string
	for i := range r.Runs {
		name, sum := r.runTitle(i), r.BuildSum(i)
		names, all = append(names, name), explain.AppendNew(all, sum)
		if sum != "" && !strings.Contains(name, sum) {
			names[i] = fmt.Sprintf(explain.BuildSum, name, sum)
		}
	}
	if len(all) == 1 && all[0] != "" {
		return fmt.Sprintf(explain.SameBuild, explain.And(r.runTitles(), 3), all[0])
	}
	return explain.And(names, 3)
}

// varied says along which axes cells differ beside engines and models: two at most.
func (r view) varied() []string {
	var out []string
	for _, x := range r.Axes() {
		if x.Name == axis.Engine || x.Name == axis.Model || x.Part != "" || len(out) == 2 {
			continue
		}
		values := r.Distinct(func(c *compare.Cell) string {
			v := x.Value(&c.Spec)
			return cmp.Or(x.Names[v], v)
		})
		switch n := len(values); {
		case n < 2 || x.Own && !r.within(x):
		case x.Names != nil:
			out = append(out, explain.And(values, 3))
		default:
			out = append(out, fmt.Sprintf("%d %s", n, x.Phrase))
		}
	}
	return out
}

// within reports whether cells of one engine differ along an axis.
func (r view) within(x *axis.Axis) bool {
	for i, a := range r.Cells {
		for _, b := range r.Cells[:i] {
			if a.Spec.Engine == b.Spec.Engine && !x.Equal(&a.Spec, &b.Spec) {
				return true
			}
		}
	}
	return false
}

// runTitle is a run's name, or its folder if it has no name.
func (r view) runTitle(run int) string {
	const unnamed = "default" // the built-in plan's name
	if name := r.RunName(run); name != unnamed {
		return name
	}
	return filepath.Base(r.Runs[run].Dir)
}

// ran has only the cells that ran, if any did.
func (r view) ran() view {
	ran := slices.DeleteFunc(slices.Clone(r.Cells), func(c *compare.Cell) bool { return c.Refused != "" })
	if len(ran) == 0 {
		return r
	}
	return view{&compare.Result{Cells: ran, Runs: r.Runs}}
}

// facts are short facts about the model, the request, the launches, the date and the machine.
func (r view) facts() []string {
	shaders := r.shaders()
	r = r.ran()
	var out []string
	add := func(s string) {
		if s != "" {
			out = append(out, s)
		}
	}
	random := func(c *compare.Cell) bool { return c.Spec.Model.Random() }
	switch known := slices.IndexFunc(r.Cells, func(c *compare.Cell) bool { return !random(c) }); {
	case len(r.Cells) > 0 && known < 0:
		add("random weights: the text is meaningless, the measurements are not")
	case slices.ContainsFunc(r.Cells, random):
		add("some models have random weights: their text is meaningless, the measurements are not")
	}
	add(r.tokens())
	dtype := func(c *compare.Cell) string {
		return cmp.Or(c.DTypes(), strings.TrimSuffix("model file "+c.Spec.Model.DType, "model file "))
	}
	switch dtypes := r.Distinct(dtype); len(dtypes) {
	case 1:
		add(dtypes[0])
	case 2:
		add(explain.And(r.Distinct(func(c *compare.Cell) string { return c.Title() + " " + dtype(c) }), 2))
	}
	add(r.sameness())
	add(shaders)
	if n := r.launches(); n != "" && r.Interleaved() {
		add(n + explain.EachAlternating)
	} else if n != "" {
		add(n + " each")
	}
	if len(r.Runs) > 0 {
		add(r.when())
		if e := r.Runs[0].Environment; e.CPU != "" {
			add(fmt.Sprintf("%s, %d %s, %s GiB", e.CPU, e.Cores, explain.Plural(e.Cores, "core", "cores"),
				explain.Amount(float64(e.MemoryB)/(1<<30))))
		}
	}
	return out
}

// sameness says how the engines' weights compare, if one of them converted the model's file.
func (r view) sameness() string {
	if len(r.Distinct(func(c *compare.Cell) string { return c.Spec.Engine })) < 2 {
		return ""
	}
	of := func(c *compare.Cell) string {
		for _, other := range r.Cells {
			if same := compare.Sameness(c, other); c.FormOf(other) || same.Code == record.SameCompared {
				return same.String()
			}
		}
		return c.Weights().String()
	}
	if all := r.Distinct(of); len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(r.Distinct(func(c *compare.Cell) string {
		if of(c) == "" {
			return ""
		}
		return c.Title() + " " + c.Requested(axis.Weights) + ": " + of(c)
	}), "; ")
}

// shaders labels engines that compute with other shaders on one adapter; empty: there are none.
func (r view) shaders() string {
	var engines []string
	labelled := 0
	for _, why := range r.Reasons {
		for _, at := range why.Pairs {
			if c := r.Comparisons[at]; why.Code == explain.OtherShaders.Code {
				engines = explain.AppendNew(explain.AppendNew(engines, r.Cells[c.A].Title()), r.Cells[c.B].Title())
				labelled++
			}
		}
	}
	switch labelled {
	case 0:
		return ""
	case len(r.Comparisons):
		return explain.SameDevice
	}
	return explain.And(engines, 3) + ": " + explain.SameDevice
}

// tokens are the numbers of tokens of a request, in and out.
func (r view) tokens() string {
	of := func(name string) string {
		var all []float64
		for _, c := range r.Cells {
			if f := c.Figure(name); f.Known() {
				all = append(all, f.Center())
			}
		}
		return rangeOf(all)
	}
	in, out := of(figure.Prompt), of(figure.Tokens)
	switch {
	case out == "":
		return ""
	case in == "":
		return out + " tokens"
	}
	return in + " tokens in, " + out + " out"
}

// rangeOf writes the range of numbers, or one number if all are written alike; empty for none.
func rangeOf(all []float64) string {
	if len(all) == 0 {
		return ""
	}
	low, high := explain.Amount(slices.Min(all)), explain.Amount(slices.Max(all))
	if low == high {
		return low
	}
	return low + " to " + high
}

// launches is the number of counted launches a cell; empty if there are none.
func (r view) launches() string {
	var all []float64
	one, many := "launch", "launches"
	for _, c := range r.Cells {
		if c.Refused == "" && c.Launches.Counted > 0 {
			all = append(all, float64(c.Launches.Counted))
			if c.Repeated() != one {
				one, many = "repetition", "repetitions"
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	return rangeOf(all) + " " + explain.Plural(int(slices.Max(all)), one, many)
}

func (r view) when() string {
	const layout = "2 Jan 2006, 15:04 MST"
	order := func(a, b compare.Run) int { return a.Started.Compare(b.Started) }
	from := slices.MinFunc(r.Runs, order).Started.Format(layout)
	if until := slices.MaxFunc(r.Runs, order).Started.Format(layout); until != from {
		return from + " to " + until
	}
	return from
}

// sure says how many launches there are and how wide the intervals are.
func (r view) sure() Card {
	var refused, tooLarge int
	var launches evidence.Counts
	var classes []string
	least, reason := -1, ""
	for _, c := range r.Cells {
		if c.Refused != "" {
			refused++
			if c.Risk != nil && c.Risk.Refused {
				tooLarge++
			} else if reason == "" {
				reason = ": " + r.cellTitle(c) + ": " + explain.Cut(c.Refused, 160)
			}
			continue
		}
		launches.Add(c.Launches)
		if least < 0 || c.Launches.Counted < least {
			least = c.Launches.Counted
		}
		for _, f := range c.Failures {
			if f.Class != "" {
				classes = explain.AppendNew(classes, string(f.Class))
			}
		}
	}
	why := ""
	if len(classes) > 0 {
		why = " (" + strings.Join(classes, ", ") + ")"
	}
	const nothing = "Nothing was measured"
	without := refusedWords(refused, tooLarge, len(r.Cells), reason)
	switch {
	case len(r.Cells) == 0:
		return Card{Headline: nothing, Text: "This run has no cell.", Unknown: true}
	case launches.Counted == 0 && launches.Lost() != "":
		text := fmt.Sprintf("None of the %d launches succeeded%s. %s", launches.Failed+launches.Interrupted, why, without)
		return Card{Headline: nothing, Text: strings.TrimSpace(text), Unknown: true}
	case launches.Counted == 0:
		return Card{Headline: nothing, Text: cmp.Or(without, "No launch was started."), Unknown: true}
	}
	c := Card{Name: "Sure", Headline: r.launches(), Without: without}
	var words []string
	if lost := launches.Lost(); lost != "" {
		does := explain.Plural(launches.Failed+launches.Interrupted, "does", "do")
		words = append(words, fmt.Sprintf("%s%s and %s not count.", lost, why, does))
	}
	if least < stats.MinRuns {
		words = append(words, fmt.Sprintf("A 95%% confidence interval takes %d launches; the fewest here: %d.",
			stats.MinRuns, least))
	} else {
		c.Headline += " each"
	}
	if wide := r.intervals(); wide != "" {
		of := "95% confidence intervals of medians, "
		if len(r.Cells) > 1 {
			of = "The widest 95% confidence intervals of the medians that are compared, "
		}
		words = append(words, of+c.Headline+".")
		c.Headline = wide
	}
	c.Text = strings.TrimSpace(strings.Join(append(words, without), " "))
	return c
}

// intervals are the widest interval of each headline figure, with its cell.
func (r view) intervals() string {
	var out []string
	for _, q := range []*question{&memoryQuestion, &speedQuestion} {
		compared := func(p pair) bool { return p.Outcome != verdict.NotComparable }
		if pairs := r.pairs(q); len(pairs) > 0 && !slices.ContainsFunc(pairs, compared) {
			continue // the answer has no such figure to be sure of
		}
		widest, words, known := 0.0, "", 0
		for _, c := range r.Cells {
			f := q.of(c)
			half, ok := f.HalfWidth()
			if !ok {
				continue
			}
			if known++; known > 1 && half <= widest {
				continue
			}
			if widest, words = half, "±"+explain.Share(half); half > evidence.Lopsided {
				words = verdict.Signed(f.Interval.Lo/f.Center()-1) + " to " + verdict.Signed(f.Interval.Hi/f.Center()-1)
			}
			if len(r.Cells) == 1 {
				words = q.Sure + " " + words
				continue
			}
			known := "known within " // not that of a difference between cells
			if len(out) == 0 {
				known = "is " + known
			}
			words = r.cellTitle(c) + "'s " + q.Sure + " " + known + words
		}
		if known > 0 {
			out = append(out, words)
		}
	}
	if len(r.Cells) > 1 { // it begins with a name
		return strings.Join(out, ", ")
	}
	return explain.Capital(strings.Join(out, ", "))
}

// refusedWords counts the refused cells; empty if there are none.
func refusedWords(refused, tooLarge, of int, reason string) string {
	why := "cannot run here" + strings.TrimSuffix(reason, ".")
	if tooLarge == refused {
		why = "would not fit into memory"
	}
	switch {
	case refused == 0:
		return ""
	case of == 1:
		return "The cell was refused: it " + why + "."
	}
	return fmt.Sprintf("%d of %d cells %s refused: %s %s.", refused, of, explain.Plural(refused, "was", "were"),
		explain.Plural(refused, "it", "they"), why)
}
