package compare

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"llmparity/internal/record"
)

// Comparison sets two cells against each other, or says why they can't be.
type Comparison struct {
	A       int      `json:"a"` // indexes into Cells
	B       int      `json:"b"`
	Refused string   `json:"refused,omitempty"` // why there are no ratios
	Caveats []string `json:"caveats"`           // what differs although it may be compared
	Ratios  []Ratio  `json:"ratios"`
}

// Ratio is A's median over B's.
type Ratio struct {
	Figure string  `json:"figure"`
	Title  string  `json:"title"`
	Ratio  float64 `json:"ratio"`
	// Note says in which way the two are not quite alike.
	Note string `json:"note,omitempty"`
	// P is Mann-Whitney's over launches, corrected by Holm for the number of figures of this comparison.
	P           float64 `json:"p_holm"`
	Significant bool    `json:"significant"`
	Verdict     string  `json:"verdict"`
}

const alpha = 0.05

// compared lists the figures that ratios are given for.
func compared() []string { return []string{PeakPSS, Increase, LoadTime, TTFT, DecodeTPS, PrefillTPS} }

// related tells whether two cells are about the same model and prompt, so that a reader will want them side by side. Over several
// runs an engine is set against itself, and against others only where its own run has none of them.
func (r *Result) related(i, j int) bool {
	a, b := &r.Cells[i], &r.Cells[j]
	if a.Refused != "" || b.Refused != "" || !sameTask(a, b) {
		return false
	}
	if a.Run == b.Run {
		return a.Spec.Engine != b.Spec.Engine
	}
	return a.Spec.Engine == b.Spec.Engine || !r.has(a.Run, b) && !r.has(b.Run, a)
}

func (r *Result) has(run int, like *Cell) bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool {
		return c.Run == run && c.Spec.Engine == like.Spec.Engine && sameTask(&c, like)
	})
}

func sameTask(a, b *Cell) bool {
	return sameWeights(a, b) && a.Spec.Prompt == b.Spec.Prompt
}

// sameWeights goes by what is in the file, and by the name where a server alone has it: then nobody has verified it.
func sameWeights(a, b *Cell) bool {
	m, n := a.Spec.Model, b.Spec.Model
	if named(m) || named(n) {
		return m.Name != "" && m.Name == n.Name
	}
	return m.SHA256 != "" && m.SHA256 == n.SHA256
}

// named tells that there is only a name to go by.
func named(m record.Model) bool { return m.Format == record.Served && m.SHA256 == "" }

func (r *Result) pair(i, j int, e []evidence) {
	a, b := &r.Cells[i], &r.Cells[j]
	c := Comparison{A: i, B: j, Caveats: []string{}, Ratios: []Ratio{}}
	if why := differentRequest(a, b); why != "" {
		c.Refused = fmt.Sprintf("%s and %s are not compared: %s", a.Label, b.Label, why)
		r.Comparisons = append(r.Comparisons, c)
		return
	}
	r.Parity = append(r.Parity, r.parity(i, j, e[i].counted, e[j].counted))
	if why := differentLife(a, b); why != "" {
		c.Refused = fmt.Sprintf("No ratio for %s and %s: %s.", a.Label, b.Label, why)
	} else if c.Refused = differentDevice(a, b); c.Refused == "" {
		c.Ratios = ratios(a, b, launchOf(e[i].counted), launchOf(e[j].counted))
		c.Caveats = caveats(a, b)
	}
	// What was computed in other numbers must not pass for the same arithmetic, ratio or not.
	c.Caveats = append(c.Caveats, differences(a, b)...)
	r.Comparisons = append(r.Comparisons, c)
}

// differentRequest says so where the words can't be the same: neither they nor figures are compared.
func differentRequest(a, b *Cell) string {
	switch {
	case a.Spec.MaxTokens != b.Spec.MaxTokens:
		return fmt.Sprintf("max_tokens is %d for one and %d for the other", a.Spec.MaxTokens, b.Spec.MaxTokens)
	case a.Spec.Temperature != b.Spec.Temperature:
		return fmt.Sprintf("the temperature is %g for one and %g for the other", a.Spec.Temperature, b.Spec.Temperature)
	}
	return ""
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
	case a.Spec.Reused != b.Spec.Reused:
		return "the repetitions of one go on in one launch (isolation reused), those of the other have launches of their own"
	}
	return ""
}

// differentDevice refuses a ratio that would say more about the devices than about the engines.
func differentDevice(a, b *Cell) string {
	for _, c := range []*Cell{a, b} {
		if c.Launches.Counted == 0 {
			return fmt.Sprintf("No ratio for %s and %s: no launch of %s counts.", a.Label, b.Label, c.Label)
		}
		if c.Device == nil {
			return fmt.Sprintf("No ratio for %s and %s: %s did not say what it computed on.", a.Label, b.Label, c.Label)
		}
	}
	for _, c := range []*Cell{a, b} {
		if c.inconstant != "" {
			return fmt.Sprintf("No ratio for %s and %s: the launches of %s did not all run the same: %s.", a.Label, b.Label,
				c.Label, c.inconstant)
		}
		if !slices.Contains(classes(), c.Device.Class) {
			return fmt.Sprintf("No ratio for %s and %s: the class of device that %s computed on is not known (%q).", a.Label,
				b.Label, c.Label, c.Device.Class)
		}
	}
	if a.Device.Class == b.Device.Class {
		return ""
	}
	// Of the engines, whatever the prompt: the same words for every pair of their cells.
	x, y := a.Spec.Engine, b.Spec.Engine
	what := fmt.Sprintf("No ratio for %s and %s: %s computed on %s, %s on %s.", x, y, x, deviceWords(a.Device), y,
		deviceWords(b.Device))
	if a.Device.Class == record.SoftwareAdapter || b.Device.Class == record.SoftwareAdapter {
		return what + " A software adapter is a GPU interface computed on the CPU: this is not “browser against native”, " +
			"and neither figure says anything about a real GPU."
	}
	return what + " Different classes of device are not like and like."
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

// perLaunch is one value a launch: what was measured several times in one is not independent.
func (f Figure) perLaunch(launch map[int]int) []float64 {
	var order []int
	values := map[int][]float64{}
	for _, v := range f.Values {
		l := launch[v.Attempt]
		if values[l] == nil {
			order = append(order, l)
		}
		values[l] = append(values[l], v.Value)
	}
	out := make([]float64, len(order))
	for i, l := range order {
		out[i] = median(values[l])
	}
	return out
}

func ratios(a, b *Cell, launchA, launchB map[int]int) []Ratio {
	out := []Ratio{}
	var tests []test
	for _, name := range compared() {
		if name == Increase && (a.Figure(Baseline).Absent == NoBaseline) != (b.Figure(Baseline).Absent == NoBaseline) {
			continue // one is a whole peak, the other what came on top
		}
		if (name == PeakPSS || name == Increase) && shareOutside(a, b) != "" {
			continue // of one not all was counted
		}
		if (name == TTFT || name == PrefillTPS) && cachesDiffer(a, b) != "" {
			continue // of one prompt less was computed
		}
		if (name == TTFT || name == LoadTime) && loadsDiffer(a, b) != "" {
			continue // the one's has the other's in it
		}
		fa, fb := a.Figure(name), b.Figure(name)
		if !fa.Known() || !fb.Known() || fb.Center() <= 0 || fa.Center() < 0 {
			continue
		}
		tests = append(tests, chance(fa.perLaunch(launchA), fb.perLaunch(launchB)))
		r := Ratio{Figure: name, Title: fa.Title, Ratio: round(fa.Center()/fb.Center(), 6)}
		var notes []string
		if name == DecodeTPS {
			notes = append(notes, lengthsDiffer(a, b))
		}
		if name == DecodeTPS || name == TTFT || name == PrefillTPS {
			notes = append(notes, piecesDiffer(a, b))
		}
		r.Note = strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), "; ")
		out = append(out, r)
	}
	for i, p := range holm(tests) {
		out[i].P = round(p, 6)
		out[i].Significant = p <= alpha
		out[i].Verdict = ratioWords(out[i], a, b, tests[i])
	}
	return out
}

func ratioWords(r Ratio, a, b *Cell, t test) string {
	words := fmt.Sprintf("%s of %s is %s times that of %s", r.Title, a.Label, short(r.Ratio), b.Label)
	if r.Ratio < 1 && r.Ratio > 0 {
		words = fmt.Sprintf("%s of %s is %s times that of %s", r.Title, b.Label, short(1/r.Ratio), a.Label)
	}
	if r.Note != "" {
		words += " (" + r.Note + ")"
	}
	switch {
	case r.Significant:
		return fmt.Sprintf("%s (p = %.2g, n = %d and %d)", words, r.P, t.n1, t.n2)
	case t.few && a.Spec.Reused:
		return fmt.Sprintf("%s, but of %d and %d launches that can't be told from chance: repetitions in one launch share "+
			"its luck", words, t.n1, t.n2)
	case t.few:
		return fmt.Sprintf("%s, but n = %d and %d are too few runs to tell that from chance", words, t.n1, t.n2)
	}
	return fmt.Sprintf("%s, which can't be told from chance (p = %.2g, n = %d and %d)", words, r.P, t.n1, t.n2)
}

// holm corrects p values for their number.
func holm(tests []test) []float64 {
	order := make([]int, len(tests))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return tests[order[i]].p < tests[order[j]].p })
	out := make([]float64, len(tests))
	highest := 0.0
	for rank, i := range order {
		highest = max(highest, min(1, tests[i].p*float64(len(tests)-rank)))
		out[i] = highest
	}
	return out
}

// lengthsDiffer says so where one side generated more than the other: later tokens cost more.
func lengthsDiffer(a, b *Cell) string {
	x, y := a.Figure(Tokens), b.Figure(Tokens)
	if !x.Known() || !y.Known() || x.Center() == y.Center() {
		return ""
	}
	return fmt.Sprintf("lengths differ: %s tokens of %s, %s of %s", count(x), a.Label, count(y), b.Label)
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
	f := c.Figure(Cached)
	switch {
	case c.unknownPrefill:
		return 0, 0, false
	case !f.Known():
		return 0, 0, true // untold, of servers that had not been asked for the prompt before
	}
	return slices.Min(f.numbers()), slices.Max(f.numbers()), true
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
			return fmt.Sprintf("%s for %s, which does not tell how many tokens came from it", c.Spec.PromptCache, c.Label)
		case most <= bos:
			return fmt.Sprintf("%s for %s", c.Spec.PromptCache, c.Label)
		}
		return fmt.Sprintf("%s for %s, where %s tokens came from it", c.Spec.PromptCache, c.Label, count(c.Figure(Cached)))
	}
	return fmt.Sprintf("the prompt cache is %s, and %s: times to the first token and prefill are not set against each other",
		side(a), side(b))
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
	if a.Device.Class == record.SoftwareAdapter {
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
	if why := piecesDiffer(a, b); why != "" {
		out = append(out, why+": times to the first token, prefill and decode are not quite alike")
	}
	if a.Device.Name != b.Device.Name {
		out = append(out, fmt.Sprintf("the devices are of one class and have different names: %s and %s", a.Device.Name,
			b.Device.Name))
	}
	return out
}

// differences lists what engines said of themselves where they differ: their policies, and of one and the same engine its parts.
func differences(a, b *Cell) []string {
	out := []string{}
	if a.Engine == nil || b.Engine == nil {
		return out
	}
	list := func(left, right map[string]string) {
		for _, key := range slices.Sorted(maps.Keys(left)) {
			if other, ok := right[key]; ok && other != left[key] {
				out = append(out, fmt.Sprintf("%s is %s for %s and %s for %s", strings.ReplaceAll(key, "_", " "), left[key],
					a.Label, other, b.Label))
			}
		}
	}
	list(a.Engine.Policy, b.Engine.Policy)
	out = append(out, alone(a, b)...)
	out = append(out, alone(b, a)...)
	if a.Spec.Engine == b.Spec.Engine {
		list(parts(a), parts(b))
	}
	return out
}

// alone lists what one side says of its policy, and the other nothing.
func alone(c, other *Cell) []string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(c.Engine.Policy)) {
		if _, ok := other.Engine.Policy[key]; !ok {
			words = append(words, fmt.Sprintf("%s is %s", strings.ReplaceAll(key, "_", " "), c.Engine.Policy[key]))
		}
	}
	if len(words) == 0 || len(other.Engine.Policy) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s says, and %s does not: %s", c.Label, other.Label, strings.Join(words, "; "))}
}

// parts are those that a reader tells apart by name, and the engine's own version.
func parts(c *Cell) map[string]string {
	out := map[string]string{"version": c.Engine.Version}
	for _, key := range []string{"browser", "webllm_origin"} {
		if value, ok := c.Engine.Parts[key]; ok {
			out[key] = value
		}
	}
	return out
}
