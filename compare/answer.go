package compare

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/warning"
)

// Answer is what a reader asks first: what was compared, which is smaller, which is faster, whether the output is the
// same, how sure that is, and whether it may be quoted. Every format begins with it.
type Answer struct {
	Title    string
	Facts    []string // below the title: model, request, launches, date, machine
	Growth   Card     // of cells that differ in their contexts
	Memory   Card
	Speed    Card
	Output   Card
	Sure     Card
	Quote    Card
	Warnings []evidence.Warning // that may change a conclusion: at most three, of different codes where there are such
	More     int                // other warnings
}

// Card is the answer to one question.
type Card struct {
	Name     string // Memory, Speed, Output …
	Headline string // a few words
	Text     string // sentences with the figures
	Unknown  bool   // there is no answer here; Headline and Text say why
}

// Sub is the line below the title.
func (a *Answer) Sub() string { return strings.Join(a.Facts, " · ") }

// Sentences are the answer in plain sentences.
func (a *Answer) Sentences() []string {
	out := []string{}
	for _, c := range []Card{a.Growth, a.Memory, a.Speed, a.Output, a.Sure, a.Quote} {
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

// Answer is the result's, made of what it holds.
func (r *Result) Answer() *Answer {
	a := &Answer{Title: r.title(), Facts: r.facts(), Sure: r.sure()}
	if slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Launches.Counted > 0 }) {
		a.Growth, a.Memory, a.Speed = r.growthCard(), r.memoryCard(), r.speedCard()
		a.Output, a.Quote = r.outputCard(), r.quote()
	}
	const most = 3
	a.Warnings = r.gravest()
	a.More = max(0, len(a.Warnings)-most)
	a.Warnings = a.Warnings[:len(a.Warnings)-a.More]
	return a
}

// gravest are all warnings: the first of each code, the gravest code first, then the others in the same order.
func (r *Result) gravest() []evidence.Warning {
	var first, others []evidence.Warning
	for _, w := range r.OnceEach(r.Warnings) {
		switch {
		case slices.ContainsFunc(first, func(o evidence.Warning) bool { return o.Code == w.Code }):
			others = append(others, w)
			continue
		case w.Code == warning.WideInterval:
			w.Text += "; --until-ci 5% adds launches until the interval is narrow enough"
		}
		first = append(first, w)
	}
	return append(first, others...)
}

// distinct are the values of cells, in the order in which they come first.
func (r *Result) distinct(of func(*Cell) string) []string {
	var out []string
	for i := range r.Cells {
		if s := of(&r.Cells[i]); s != "" {
			out = explain.AppendNew(out, s)
		}
	}
	return out
}

// axes are what cells of one engine and model can differ in.
var axes = []struct {
	many string
	of   func(*Cell) string
}{
	{"prompts", func(c *Cell) string { return c.Spec.Prompt }},
	{"input lengths", func(c *Cell) string { return positive(c.Spec.InputTokens) }},
	{"output lengths", func(c *Cell) string { return positive(c.Spec.MaxTokens) }},
	{"contexts", func(c *Cell) string { return positive(c.Spec.Model.Context) }},
	{"KV cache dtypes", cacheType},
	{"forms of weights", func(c *Cell) string { return cmp.Or(c.Spec.Weights, "as-is") }},
	{"kinds of traffic", func(c *Cell) string { return c.Traffic() }},
	{"kinds of start", func(c *Cell) string { return c.Start() }},
	{"temperatures", func(c *Cell) string { return fmt.Sprint(c.Spec.Temperature) }},
	{"kinds of isolation", func(c *Cell) string { return c.Isolation() }},
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// title says what was compared.
func (r *Result) title() string {
	const letters = 40 // of a name of others
	engines := r.distinct(func(c *Cell) string { return explain.Cut(c.Title(), letters) })
	foreign := !slices.ContainsFunc(r.Cells, func(c Cell) bool { return !c.Foreign() })
	switch {
	case len(r.Cells) == 0:
		return "Nothing was measured"
	case foreign:
		return "Memory of " + explain.And(engines, 3) + ", recorded by another program"
	case len(r.Runs) > 1:
		var names []string
		for i := range r.Runs {
			names = explain.AppendNew(names, r.runTitle(i))
		}
		if len(names) == 1 {
			return fmt.Sprintf("%s, %d runs", names[0], len(r.Runs))
		}
		return "Runs " + explain.And(names, 3)
	}
	title := explain.And(engines, 3)
	models := r.distinct(func(c *Cell) string { return c.Spec.Model.Name })
	switch len(models) {
	case 0:
	case 1:
		title += " on " + explain.Cut(models[0], letters)
	default:
		title += fmt.Sprintf(" on %d models", len(models))
	}
	var varied []string
	for _, a := range axes {
		n := len(r.distinct(a.of))
		if a.many == "prompts" && r.Cells[0].Spec.InputTokens > 0 {
			continue // made for each input length
		}
		if n > 1 && len(varied) < 2 {
			varied = append(varied, fmt.Sprintf("%d %s", n, a.many))
		}
	}
	if len(varied) > 0 {
		return title + ", " + strings.Join(varied, ", ")
	}
	if prompt := strings.Join(strings.Fields(r.Cells[0].Spec.Prompt), " "); prompt != "" {
		title += ", “" + explain.Cut(prompt, 20) + "”"
	}
	return title
}

// runTitle names a run: one that has no name of its own goes by its folder.
func (r *Result) runTitle(run int) string {
	const unnamed = "default" // the built-in plan's name
	if name := r.runName(run); name != unnamed {
		return name
	}
	return filepath.Base(r.Runs[run].Dir)
}

// facts are short.
func (r *Result) facts() []string {
	var out []string
	add := func(s string) {
		if s != "" {
			out = append(out, s)
		}
	}
	random := func(c Cell) bool { return c.Spec.Model.Random() }
	switch known := slices.IndexFunc(r.Cells, func(c Cell) bool { return !random(c) }); {
	case len(r.Cells) > 0 && known < 0:
		add("random weights: the text is meaningless, the measurements are not")
	case slices.ContainsFunc(r.Cells, random):
		add("some models have random weights: their text is meaningless, the measurements are not")
	}
	add(r.tokens())
	dtype := func(c *Cell) string {
		return cmp.Or(c.DTypes(), strings.TrimSuffix("model file "+c.Spec.Model.DType, "model file "))
	}
	switch dtypes := r.distinct(dtype); len(dtypes) {
	case 1:
		add(dtypes[0])
	case 2:
		add(explain.And(r.distinct(func(c *Cell) string { return c.Title() + " " + dtype(c) }), 2))
	}
	add(r.sameness())
	if n := r.launches(); n != "" {
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

// sameness says how the weights that engines hold compare, where one of them converted the model's file.
func (r *Result) sameness() string {
	if len(r.distinct(func(c *Cell) string { return c.Spec.Engine })) < 2 {
		return ""
	}
	of := func(c *Cell) string { return explain.Sameness(c.Policy("weights")) }
	if all := r.distinct(of); len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(r.distinct(func(c *Cell) string {
		if of(c) == "" {
			return ""
		}
		return c.Title() + " " + cmp.Or(c.Spec.Weights, "as-is") + ": " + of(c)
	}), "; ")
}

// tokens are those of a request, in and out.
func (r *Result) tokens() string {
	of := func(name string) string {
		var all []float64
		for i := range r.Cells {
			if f := r.Cells[i].Figure(name); f.Known() {
				all = append(all, f.Center())
			}
		}
		return to(all)
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

// to writes the range of some amounts, or the one amount that they are; empty for none.
func to(all []float64) string { return span(all, explain.Amount, " to ") }

func span(all []float64, write func(float64) string, to string) string {
	if len(all) == 0 {
		return ""
	}
	low, high := write(slices.Min(all)), write(slices.Max(all))
	if low == high {
		return low
	}
	return low + to + high
}

// launches says how many count in a cell; empty where none does.
func (r *Result) launches() string {
	var all []float64
	one, many := "launch", "launches"
	for _, c := range r.each() {
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
	return to(all) + " " + explain.Plural(int(slices.Max(all)), one, many)
}

func (r *Result) when() string {
	const layout = "2 Jan 2006, 15:04 MST"
	order := func(a, b Run) int { return a.Started.Compare(b.Started) }
	from := slices.MinFunc(r.Runs, order).Started.Format(layout)
	if until := slices.MaxFunc(r.Runs, order).Started.Format(layout); until != from {
		return from + " to " + until
	}
	return from
}

// sure says how many launches there are and how wide the intervals.
func (r *Result) sure() Card {
	var counted, lost, refused, tooLarge int
	var classes []string
	least := -1
	for _, c := range r.each() {
		if c.Refused != "" {
			refused++
			if c.Risk != nil && c.Risk.Refused {
				tooLarge++
			}
			continue
		}
		counted, lost = counted+c.Launches.Counted, lost+c.Launches.Failed+c.Launches.Interrupted
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
	without := refusedWords(refused, tooLarge, len(r.Cells))
	switch {
	case len(r.Cells) == 0:
		return Card{Headline: nothing, Text: "This run has no cell.", Unknown: true}
	case counted == 0 && lost > 0:
		text := fmt.Sprintf("None of the %d launches succeeded%s. %s", lost, why, without)
		return Card{Headline: nothing, Text: strings.TrimSpace(text), Unknown: true}
	case counted == 0:
		return Card{Headline: nothing, Text: cmp.Or(without, "No launch was started."), Unknown: true}
	}
	c := Card{Name: "Sure", Headline: r.launches()}
	var words []string
	if lost > 0 {
		words = append(words, fmt.Sprintf("%d of %d launches failed or %s interrupted%s and %s not count.", lost,
			counted+lost, explain.Plural(lost, "was", "were"), why, explain.Plural(lost, "does", "do")))
	}
	if least < stats.MinRuns {
		words = append(words, fmt.Sprintf("A 95%% confidence interval takes %d launches; the fewest here: %d.",
			stats.MinRuns, least))
	} else {
		c.Headline += " each"
	}
	if wide := r.intervals(); wide != "" {
		words = append(words, "95% confidence intervals of medians, "+c.Headline+".")
		c.Headline = wide
	}
	c.Text = strings.TrimSpace(strings.Join(append(words, without), " "))
	return c
}

// intervals are the widest and the narrowest of each headline figure.
func (r *Result) intervals() string {
	of := func(name string, of func(*Cell) evidence.Figure) string {
		var all, ends []float64
		for i := range r.Cells {
			f := of(&r.Cells[i])
			if half, ok := f.HalfWidth(); ok {
				all = append(all, half)
				ends = append(ends, f.Interval.Lo/f.Center()-1, f.Interval.Hi/f.Center()-1)
			}
		}
		switch {
		case len(all) == 0:
			return ""
		case slices.Max(all) > evidence.Lopsided:
			return name + " " + span(ends, signed, " to ")
		}
		return name + " ±" + span(all, explain.Share, " to ±")
	}
	return r.upper(strings.Trim(of("peak memory", peak)+", "+of("speed", speed), ", "))
}

// refusedWords counts the cells that were not launched; empty where all were.
func refusedWords(refused, tooLarge, of int) string {
	why := "cannot run here"
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

// quote says whether the result may be quoted, as browser against native where it has both: by the first case that
// holds.
func (r *Result) quote() Card {
	any := func(is func(c *Cell) bool) bool {
		return slices.ContainsFunc(r.Cells, func(c Cell) bool { return is(&c) })
	}
	if any(func(c *Cell) bool { return c.Foreign() }) {
		return Card{}
	}
	software, refused, different := "", "", false
	for i := range r.Cells {
		if d := r.Cells[i].Device; d != nil && d.Class == record.SoftwareAdapter {
			software = cmp.Or(software, d.Name, "a software adapter")
		}
	}
	for _, c := range r.Comparisons {
		refused = cmp.Or(refused, strings.TrimPrefix(c.Refused, notComparable))
		different = different || len(c.Different) > 0
	}
	var unsettled []string
	for _, q := range []*question{&memoryQuestion, &speedQuestion} {
		if slices.ContainsFunc(r.duels(q), func(d duel) bool { return d.outcome() == noisy }) {
			unsettled = append(unsettled, strings.ToLower(q.name))
		}
	}
	const no, care = "No", "With care"
	for _, of := range []struct {
		when           bool
		headline, text string
	}{
		{software != "", no,
			"WebGPU ran on the CPU (" + software + "): speeds say nothing about a GPU, and memory may differ on one."},
		{refused != "", no, r.upper(refused) + "."},
		{different, no, "Cells that are not alike are compared, because --allow-different asked for it."},
		{any(func(c *Cell) bool { return c.Refused == "" && c.Launches.Counted < stats.MinRuns }), no,
			fmt.Sprintf("Too few launches for an interval: it takes %d.", stats.MinRuns)},
		{len(unsettled) > 0, "Not the difference in " + explain.And(unsettled, 2), "Launches vary too much to tell."},
		{any(func(c *Cell) bool { return strings.HasPrefix(c.Part("model_library"), "ours") }), care,
			"The model library was llmparity's, not MLC's: say so."},
		{len(r.Warnings) > 0, care, "Read the warnings first."},
	} {
		if of.when {
			return Card{Name: "Quote", Headline: of.headline, Text: of.text}
		}
	}
	return Card{Name: "Quote", Headline: "Yes", Text: "Every cell has intervals, and no warning may change a conclusion."}
}
