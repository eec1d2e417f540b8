package compare

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/parity"
	"llmparity/compare/ratio"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Comparison sets two cells against each other, or says why they can't be.
type Comparison struct {
	A       int      `json:"a"` // indexes into Cells; A is the baseline
	B       int      `json:"b"`
	Family  int      `json:"family"`            // index into Families
	Refused string   `json:"refused,omitempty"` // why there are no ratios
	Caveats []string `json:"caveats"`           // what differs although it may be compared
	// Different is what would have refused ratios, had they not been asked for.
	Different []string      `json:"different,omitempty"`
	Ratios    []ratio.Ratio `json:"ratios"`

	sides []stats.Sides // of each ratio
	tests []stats.Test
	group string // what its pair has in common with those that it is averaged with

	of      int    // what it is refused for
	because string // the same of many pairs
}

// compared lists the figures that ratios are given for, where requests come one at a time or together.
func compared(together bool) []string {
	return figure.Names(figure.Rows(func(r *figure.Row) bool { return r.Ratio.In(together) }))
}

// related tells whether two cells are about the same model and prompt, so that a reader will want them side by side.
// Over several runs an engine is set against itself in the first one, the baseline, or in another where the first has
// no such cell; and against others only where its own run has none of them.
func (r *Result) related(i, j int) bool {
	a, b := &r.Cells[i], &r.Cells[j]
	if a.Refused != "" || b.Refused != "" || !sameTask(a, b) || r.nearer(a, b) {
		return false
	}
	if a.Run == b.Run {
		return a.Spec.Engine != b.Spec.Engine
	}
	if a.Run > 0 && r.has(0, b) {
		return false
	}
	return a.Spec.Engine == b.Spec.Engine || !r.has(a.Run, b) && !r.has(b.Run, a)
}

func (r *Result) has(run int, like *Cell) bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool {
		return c.Run == run && c.Spec.Engine == like.Spec.Engine && sameTask(&c, like)
	})
}

// sameTask tells whether two cells ask the same of an engine: of the same model, the same text, as long, in numbers of
// the same type, from the same start, coming in the same way.
func sameTask(a, b *Cell) bool {
	x, y := &a.Spec, &b.Spec
	return sameWeights(a, b) && x.Prompt == y.Prompt && x.InputTokens == y.InputTokens && x.KVDType == y.KVDType &&
		x.Start == y.Start &&
		reflect.DeepEqual(x.Traffic, y.Traffic)
}

// apartBy counts in what else two cells of one task differ. Within a run numbers of setups tell; those of another run
// number others.
func apartBy(a, b *Cell) int {
	n := 0
	for _, differ := range []bool{a.Spec.MaxTokens != b.Spec.MaxTokens, a.Spec.Temperature != b.Spec.Temperature,
		a.Spec.Model.Context != b.Spec.Model.Context, a.Run == b.Run && a.Spec.Setup != b.Spec.Setup} {
		if differ {
			n++
		}
	}
	return n
}

// nearer tells that one of two cells has a partner of the other's engine, in its run, that is more like it: a plan with
// several lengths of answers means each to be set against its like.
func (r *Result) nearer(a, b *Cell) bool {
	apart := apartBy(a, b)
	if apart == 0 {
		return false
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Run == b.Run && c.Spec.Engine == b.Spec.Engine && sameTask(a, c) && apartBy(a, c) < apart ||
			c.Run == a.Run && c.Spec.Engine == a.Spec.Engine && sameTask(c, b) && apartBy(c, b) < apart {
			return true
		}
	}
	return false
}

// sameWeights goes by what is in the file, and by the name where a server alone has it: then nobody has verified it.
func sameWeights(a, b *Cell) bool {
	m, n := a.Spec.Model, b.Spec.Model
	if named(m) || named(n) {
		return m.Name != "" && m.Name == n.Name
	}
	return m.SHA256 != "" && m.SHA256 == n.SHA256
}

// unverified goes by what an engine warned of, and by models that only a server has.
func unverified(spec record.Cell, attempts []*record.Attempt) bool {
	return named(spec.Model) || slices.ContainsFunc(attempts, func(a *record.Attempt) bool {
		return slices.ContainsFunc(a.Warnings, func(w record.Warning) bool { return w.Code == "weights-unverified" })
	})
}

// named tells that there is only a name to go by.
func named(m record.Model) bool { return m.Format == record.Served && m.SHA256 == "" }

func noRatio(a, b *Cell, why string) string {
	return fmt.Sprintf("No ratio for %s and %s: %s", a.Label, b.Label, why)
}

// What a refusal is of.
const (
	ofRequest = iota + 1
	ofPair
	ofDevice // whatever the pair: of the engines
)

// refuse says why there are no ratios, and in why what is said of many pairs that are refused alike.
func (c *Comparison) refuse(of int, why, whole string) { c.of, c.because, c.Refused = of, why, whole }

func (r *Result) pair(i, j int, e []gathered, o Options) {
	a, b := &r.Cells[i], &r.Cells[j]
	c := Comparison{A: i, B: j, Caveats: []string{}, Ratios: []ratio.Ratio{}}
	if why, short := differentRequest(a, b); why != "" {
		c.refuse(ofRequest, short, fmt.Sprintf("%s and %s are not compared: %s", a.Label, b.Label, why))
		r.Comparisons = append(r.Comparisons, c)
		return
	}
	r.Parity = append(r.Parity, parity.Of(r.party(i, e[i]), r.party(j, e[j])))
	life := differentLife(a, b)
	device, of := differentDevice(a, b)
	unknown := unknownDevice(a, b)
	if life != "" && !o.AllowDifferent {
		unknown = life + "."
	}
	switch {
	case unknown != "":
		c.refuse(ofPair, unknown, noRatio(a, b, unknown))
	case device != "" && !o.AllowDifferent:
		c.refuse(ofDevice, of, device)
	default:
		c.Different = unlikeWords(a, b, life)
		c.fill(a, b, launchOf(e[i].counted), launchOf(e[j].counted))
		c.Caveats = caveats(a, b)
	}
	// What was computed in other numbers must not pass for the same arithmetic, ratio or not.
	c.Caveats = append(c.Caveats, differences(a, b)...)
	r.Comparisons = append(r.Comparisons, c)
}

// party is what parity takes of a cell.
func (r *Result) party(cell int, e gathered) parity.Party {
	c := &r.Cells[cell]
	s := parity.Party{Cell: cell, Label: c.Label, Temperature: c.Spec.Temperature, Counted: e.counted, Scored: e.scored,
		TextOf: "a cell that is not here", NoTokenIDs: c.Spec.NoTokenIDs, Unverified: c.unverified, Self: c.Self}
	for k := range r.Cells {
		if e.scored != nil && r.Cells[k].Run == c.Run && r.Cells[k].Spec.ID == e.scored.Reference {
			s.TextOf = r.Cells[k].Label
			break
		}
	}
	return s
}

// differentRequest says so where the words can't be the same, in full and of many pairs: neither they nor figures are
// compared.
func differentRequest(a, b *Cell) (why, short string) {
	switch {
	case a.Spec.MaxTokens != b.Spec.MaxTokens:
		return fmt.Sprintf("max_tokens is %d for one and %d for the other", a.Spec.MaxTokens, b.Spec.MaxTokens),
			"max_tokens differs."
	case a.Spec.Temperature != b.Spec.Temperature:
		return fmt.Sprintf("the temperature is %g for one and %g for the other", a.Spec.Temperature,
			b.Spec.Temperature), "the temperature differs."
	}
	return "", ""
}

// differentLife refuses a ratio of figures that are of different things though the words may well be the same.
func differentLife(a, b *Cell) string {
	for _, c := range []*Cell{a, b} {
		if named(c.Spec.Model) {
			return "the weights of " + c.Label + " are not verified, they are known by a name alone"
		}
	}
	switch {
	case a.Spec.Isolation != b.Spec.Isolation:
		return fmt.Sprintf("isolation is %q for one and %q for the other", a.Spec.Isolation, b.Spec.Isolation)
	case a.Spec.Shared != b.Spec.Shared:
		return "one goes on in a launch that it shares with other cells (isolation shared), the other has launches of its own"
	case a.Spec.Reused != b.Spec.Reused:
		return "the repetitions of one go on in one launch (isolation reused), those of the other have launches of their own"
	}
	return ""
}

// unknownDevice refuses a ratio where it is not known what of.
func unknownDevice(a, b *Cell) string {
	for _, c := range []*Cell{a, b} {
		if c.Launches.Counted == 0 {
			return fmt.Sprintf("no launch of %s counts.", c.Label)
		}
		if c.Device == nil {
			return c.Label + " did not say what it computed on."
		}
	}
	for _, c := range []*Cell{a, b} {
		if c.inconstant != "" {
			return fmt.Sprintf("the launches of %s did not all run the same: %s.", c.Label, c.inconstant)
		}
		if !slices.Contains(classes(), c.Device.Class) {
			return fmt.Sprintf("the class of device that %s computed on is not known (%q).", c.Label, c.Device.Class)
		}
	}
	return ""
}

// differentDevice refuses a ratio that would say more about the devices than about the engines: in full, and why.
func differentDevice(a, b *Cell) (whole, why string) {
	if a.Device == nil || b.Device == nil || a.Device.Class == b.Device.Class {
		return "", ""
	}
	// Of the engines, whatever the prompt: the same words for every pair of their cells.
	x, y := a.Spec.Engine, b.Spec.Engine
	why = fmt.Sprintf("%s computed on %s, %s on %s.", x, deviceWords(a.Device), y, deviceWords(b.Device))
	if a.Device.Class == record.SoftwareAdapter || b.Device.Class == record.SoftwareAdapter {
		why += " A software adapter is a GPU interface computed on the CPU: this is not “browser against native”, " +
			"and neither figure says anything about a real GPU."
	} else {
		why += " Different classes of device are not like and like."
	}
	return fmt.Sprintf("No ratio for %s and %s: %s", x, y, why), why
}

// classes are those of which it is known what they are like.
func classes() []record.DeviceClass {
	return []record.DeviceClass{record.CPU, record.GPU, record.SoftwareAdapter}
}

func deviceWords(d *record.Device) string {
	name := d.Name
	if name != "" {
		name = " (" + name + ")"
	}
	switch d.Class {
	case record.SoftwareAdapter:
		return "a software adapter" + name
	case record.CPU:
		return "the CPU" + name
	case record.GPU:
		return "a GPU" + name
	}
	return string(d.Class) + name
}

// launchOf gives the attempt that opened the launch of each.
func launchOf(counted []*record.Attempt) map[int]int {
	out := map[int]int{}
	for _, a := range counted {
		out[a.ID] = a.Launch().ID
	}
	return out
}

// fill sets each figure that both have against the other's.
func (c *Comparison) fill(a, b *Cell, launchA, launchB map[int]int) {
	for _, name := range comparedOf(a, b) {
		if unlike(name, a, b) != "" {
			continue
		}
		fa, fb := a.Figure(name), b.Figure(name)
		if !fa.Known() || !fb.Known() {
			continue
		}
		s := stats.NewSides(fa.PerLaunch(launchA), fb.PerLaunch(launchB))
		t := s.Chance()
		r := ratio.New(fa, fb, s)
		r.Headline = headline(name, a.Load != nil)
		t.Weight, t.Same = stats.Weight(r.Headline, t.Least), stats.OrderOf(s)
		r.Note, r.Different = alikeNote(name, a, b), strings.Join(c.Different, "; ")
		for _, of := range []struct {
			c *Cell
			f evidence.Figure
		}{{a, fa}, {b, fb}} {
			for _, w := range of.f.Warnings {
				r.Warnings = append(r.Warnings, evidence.Warning{Warning: w, Where: of.c.Label})
			}
		}
		c.Ratios, c.sides, c.tests = append(c.Ratios, r), append(c.sides, s), append(c.tests, t)
	}
}

// alikeNote says in which way a figure of one cell is not quite that of the other.
func alikeNote(name string, a, b *Cell) string {
	var notes []string
	if moved(name, figure.Length) {
		notes = append(notes, lengthsDiffer(a, b))
	}
	if moved(name, figure.Pieces) {
		notes = append(notes, piecesDiffer(a, b))
	}
	return strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), "; ")
}

// lengthsDiffer says so where one side generated more than the other: later tokens cost more.
func lengthsDiffer(a, b *Cell) string {
	x, y := a.Figure(figure.Tokens), b.Figure(figure.Tokens)
	if !x.Known() || !y.Known() || x.Center() == y.Center() {
		return ""
	}
	return fmt.Sprintf("lengths differ: %s tokens of %s, %s of %s", x.Count(), a.Label, y.Count(), b.Label)
}

// piecesDiffer says so where one side tells of tokens and the other of pieces of text.
func piecesDiffer(a, b *Cell) string {
	if a.Spec.Pieces == b.Spec.Pieces {
		return ""
	}
	who := a
	if b.Spec.Pieces {
		who = b
	}
	return who.Label + " tells of pieces of text, the first of which may hold several tokens"
}

// bos is how many tokens of a prompt may come from a cache and change nothing: the one that all texts begin with.
const bos = 1

// cache gives the least and the most tokens of a prompt that came from a cache; false where that is not known.
func (c *Cell) cache() (least, most float64, known bool) {
	f := c.Figure(figure.Cached)
	switch {
	case c.unknownPrefill:
		return 0, 0, false
	case !f.Known():
		return 0, 0, true // untold, of servers that had not been asked for the prompt before
	}
	return slices.Min(f.Numbers()), slices.Max(f.Numbers()), true
}

// cachesDiffer says so where one side may have had more of its prompt from a cache.
func cachesDiffer(a, b *Cell) string {
	leastA, mostA, knownA := a.cache()
	leastB, mostB, knownB := b.cache()
	if knownA && knownB && (max(mostA, mostB) <= bos || leastA == leastB && mostA == mostB) {
		return ""
	}
	side := func(c *Cell) string {
		switch _, most, known := c.cache(); {
		case !known:
			return fmt.Sprintf("%s for %s, which does not tell how many tokens came from it", c.Spec.PromptCache,
				c.Label)
		case most <= bos:
			return fmt.Sprintf("%s for %s", c.Spec.PromptCache, c.Label)
		}
		return fmt.Sprintf("%s for %s, where %s tokens came from it", c.Spec.PromptCache, c.Label,
			c.Figure(figure.Cached).Count())
	}
	return fmt.Sprintf("the prompt cache is %s, and %s: times to the first token and prefill are not set against each other",
		side(a), side(b))
}

// shareOutside says so where a side's memory is not all in its figures.
func shareOutside(a, b *Cell) string {
	for _, c := range []*Cell{a, b} {
		if words := c.memory.OthersWords(); words != "" {
			return fmt.Sprintf("of %s %s; memory is not set against each other", c.Label, words)
		}
	}
	return ""
}

// loadsDiffer says so where one side loads the model for every generation.
func loadsDiffer(a, b *Cell) string {
	if a.Spec.PerGeneration == b.Spec.PerGeneration {
		return ""
	}
	if b.Spec.PerGeneration {
		a = b
	}
	return fmt.Sprintf("%s starts a process for each generation, which loads the model: that lies within its time to the first token, "+
		"and load times and times to the first token are not set against each other", a.Label)
}

// caveats lists what engines said about their policy where they differ: it may be compared, knowing that.
func caveats(a, b *Cell) []string {
	out := []string{}
	if a.Device.Class == record.SoftwareAdapter && b.Device.Class == record.SoftwareAdapter {
		out = append(out, "both computed on a software adapter, a GPU interface computed on the CPU: the ratio says "+
			"nothing about a real GPU")
	}
	if why := shareOutside(a, b); why != "" {
		out = append(out, why)
	}
	if why := cachesDiffer(a, b); why != "" {
		out = append(out, why)
	}
	if why := loadsDiffer(a, b); why != "" {
		out = append(out, why)
	}
	for _, c := range []*Cell{a, b} {
		if c.Load != nil {
			out = append(out, c.Load.Caveats...)
		}
	}
	if why := piecesDiffer(a, b); why != "" {
		out = append(out, why+": times to the first token, prefill and decode are not quite alike")
	}
	if a.Device.Class == b.Device.Class && a.Device.Name != b.Device.Name {
		out = append(out, fmt.Sprintf("the devices are of one class and have different names: %s and %s", a.Device.Name,
			b.Device.Name))
	}
	return out
}

// setting is one that engines say of themselves, each its own.
type setting struct{ key, x, y string }

func (s setting) name() string { return strings.ReplaceAll(s.key, "_", " ") }

// unlikeSettings are those of which both say something, and not the same.
func unlikeSettings(x, y map[string]string) []setting {
	var out []setting
	for _, key := range slices.Sorted(maps.Keys(x)) {
		if other, both := y[key]; both && other != x[key] {
			out = append(out, setting{key, x[key], other})
		}
	}
	return out
}

// onlySettings are those of which y says nothing, though it says something of itself.
func onlySettings(x, y map[string]string) []setting {
	var out []setting
	for _, key := range slices.Sorted(maps.Keys(x)) {
		if _, both := y[key]; !both && len(y) > 0 {
			out = append(out, setting{key: key, x: x[key]})
		}
	}
	return out
}

// differences lists what engines said of themselves where they differ: their policies, and of one and the same engine
// its parts.
func differences(a, b *Cell) []string {
	out := []string{}
	if a.Engine == nil || b.Engine == nil {
		return out
	}
	list := func(all []setting) {
		for _, s := range all {
			out = append(out, fmt.Sprintf("%s is %s for %s and %s for %s", s.name(), s.x, a.Label, s.y, b.Label))
		}
	}
	list(unlikeSettings(a.Engine.Policy, b.Engine.Policy))
	for _, side := range [][2]*Cell{{a, b}, {b, a}} {
		var words []string
		for _, s := range onlySettings(side[0].Engine.Policy, side[1].Engine.Policy) {
			words = append(words, s.name()+" is "+s.x)
		}
		if len(words) > 0 {
			out = append(out, fmt.Sprintf("%s says, and %s does not: %s", side[0].Label, side[1].Label,
				strings.Join(words, "; ")))
		}
	}
	if a.Spec.Engine == b.Spec.Engine {
		list(unlikeSettings(parts(a), parts(b)))
	}
	return out
}

// parts are those that a reader tells apart by name, and the engine's own version.
func parts(c *Cell) map[string]string {
	out := map[string]string{"version": c.Engine.Version}
	for key, value := range c.Engine.Parts {
		if key == "browser" || strings.HasSuffix(key, "_origin") {
			out[key] = value
		}
	}
	return out
}
