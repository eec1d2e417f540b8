package compare

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"llmparity/compare/explain"
)

// comparability says in plain words what may be compared with what. What holds for several pairs of cells is said once,
// of all of them: with thirty cells there are hundreds. The result's comparisons tell each pair by itself.
func (r *Result) comparability() []string {
	out := []string{}
	switch {
	case len(r.Cells) == 0:
		return append(out, "There is nothing to compare: no cell was begun.")
	case len(r.Runs) > 1:
		out = append(out, r.unpairedWords()...)
	case len(r.engines()) == 1 && len(r.Comparisons) == 0:
		out = append(out, fmt.Sprintf("There is one engine here, %s, and nothing to compare it with.",
			r.Cells[0].Spec.Engine))
	}
	out = append(out, r.libraryWords()...)
	out = append(out, r.refusalWords()...)
	out = append(out, r.caveatWords()...)
	out = append(out, r.policyWords()...)
	ratios, unlike := 0, 0
	for _, c := range r.Comparisons {
		switch {
		case c.Refused != "":
		case len(c.Different) > 0:
			unlike++
		default:
			ratios++
		}
	}
	if ratios > 0 {
		out = append(out, "Ratios are given where both sides had the same model, prompt and request, on the same class of "+
			"device.")
	}
	if unlike > 0 {
		out = append(out, "Ratios of what is not alike are marked wherever they stand: they say as much about what differs as about the "+
			"engines.")
	}
	if with, without := r.baselines(); len(with) > 0 && len(without) > 0 {
		out = append(out, fmt.Sprintf("Increases mean different things: %s had no process before the load, so its increase "+
			"is its whole peak; "+
			"that of %s is what came on top of an engine that was already there.",
			strings.Join(without, ", "), strings.Join(with, ", ")))
	}
	if who := r.foreigners(); len(who) > 0 {
		out = append(out, strings.Join(who, "; ")+
			": rows that another program wrote, which tell neither model nor prompt nor device: no ratio "+
			"is drawn from them unless it is asked for (--allow-different), and they are shown beside the others for a reader who knows what they are.")
	}
	if isolated := r.isolated(); len(isolated) > 0 && len(r.engines()) > 1 {
		out = append(out, fmt.Sprintf("%s: not compared, because no other engine ran the same model with the same prompt.",
			strings.Join(isolated, "; ")))
	}
	return out
}

// remark is what is said of pairs of cells: whole says all of it where there is one, the rest where there are several.
type remark struct {
	whole      string // of the first pair
	begin, why string // around the pairs
	pairs      []int  // indexes of comparisons
	texts      map[string]bool
}

// remarks are in order, each with a key.
type remarks struct {
	list []*remark
	at   map[string]*remark
}

func (m *remarks) add(key string, pair int, text string, x remark) {
	if m.at == nil {
		m.at = map[string]*remark{}
	}
	at := m.at[key]
	if at == nil {
		at, x.texts = &x, map[string]bool{}
		m.at[key], m.list = at, append(m.list, at)
	}
	if at.texts[text] = true; !slices.Contains(at.pairs, pair) {
		at.pairs = append(at.pairs, pair)
	}
}

func (m *remarks) words(r *Result) []string {
	var out []string
	for _, x := range m.list {
		several := ""
		if len(x.texts) > 1 {
			several = " (so, or with other numbers)"
		}
		if len(x.pairs) > 1 {
			x.whole = x.begin + r.whose(x.pairs) + several + ": " + x.why
		}
		out = append(out, x.whole)
	}
	return out
}

// whose names the engines of several pairs of cells, and how many pairs there are.
func (r *Result) whose(pairs []int) string {
	const most = 4
	var names []string
	of := map[string]int{}
	for _, i := range pairs {
		name := r.sides(i).name()
		names = explain.AppendNew(names, name)
		of[name]++
	}
	for i, n := range names {
		if of[n] > 1 {
			names[i] = fmt.Sprintf("%s in %d pairs of cells", n, of[n])
		}
	}
	return explain.Some(names, most)
}

// pairSides are a pair's cells. Those of two engines are always in the same order, whichever is the baseline: what is
// said of both is the same.
type pairSides struct{ x, y *Cell }

func (r *Result) sides(comparison int) pairSides {
	a, b := &r.Cells[r.Comparisons[comparison].A], &r.Cells[r.Comparisons[comparison].B]
	if engines := r.engines(); slices.Index(engines, b.Spec.Engine) < slices.Index(engines, a.Spec.Engine) {
		a, b = b, a
	}
	return pairSides{a, b}
}

func (s pairSides) same() bool { return s.x.Spec.Engine == s.y.Spec.Engine }

// foreign tells that one is of rows that another program wrote, of which nothing else is known.
func (s pairSides) foreign() bool { return s.x.Foreign() || s.y.Foreign() }

func (s pairSides) name() string {
	if s.same() {
		return s.x.Spec.Engine + " against itself"
	}
	return s.x.Spec.Engine + " against " + s.y.Spec.Engine
}

// called gives both the names of their engines, for words about many of their pairs. Cells of one engine keep their
// own.
func (s pairSides) called() (a, b *Cell) {
	if s.same() {
		return s.x, s.y
	}
	x, y := *s.x, *s.y
	x.Label, y.Label = x.Spec.Engine, y.Spec.Engine
	return &x, &y
}

// refusalWords say for which pairs there is no ratio, or one that was asked for although they are not alike.
func (r *Result) refusalWords() []string {
	var m remarks
	for i, c := range r.Comparisons {
		s := r.sides(i)
		if c.Refused != "" {
			x := remark{whole: c.Refused, begin: "No ratio, ", why: c.because}
			switch {
			case c.of == ofRequest:
				x.begin = "Not compared, "
			case c.of == ofDevice: // it is of the engines, whatever the pair
				x.whole, x.why = differentDevice(s.x, s.y)
			}
			m.add(x.begin+x.why, i, x.why, x)
		}
		if len(c.Different) > 0 {
			all := strings.Join(c.Different, "; ")
			why := all
			if !s.foreign() {
				a, b := s.called()
				why = strings.Join(unlikeWords(a, b, differentLife(a, b)), "; ")
			}
			m.add("unlike "+s.name()+why, i, why, remark{whole: fmt.Sprintf(
				"%s and %s are not alike, and are set against each other because that was asked for: %s.",
				r.Cells[c.A].Label, r.Cells[c.B].Label, all),
				begin: "Not alike, and set against each other because that was asked for, ", why: why + "."})
		}
	}
	return m.words(r)
}

// unlikeWords say in which way two cells are not like and like; life is what differentLife says.
func unlikeWords(a, b *Cell, life string) []string {
	var out []string
	if life != "" {
		out = append(out, life)
	}
	if device, _ := differentDevice(a, b); device != "" {
		out = append(out, fmt.Sprintf("%s computed on %s, %s on %s", a.Label, deviceWords(a.Device), b.Label,
			deviceWords(b.Device)))
	}
	return out
}

var numerals = regexp.MustCompile(`\d+(\.\d+)?`)

// caveatWords say what to know of pairs that are set against each other. Those that differ in a number alone are said
// once.
func (r *Result) caveatWords() []string {
	var m remarks
	for i, c := range r.Comparisons {
		s := r.sides(i)
		if c.Refused != "" || s.foreign() {
			continue
		}
		own, all := caveats(s.x, s.y), caveats(s.called())
		for k, text := range all {
			whole := fmt.Sprintf("%s against %s: %s.", r.Cells[c.A].Label, r.Cells[c.B].Label, own[k])
			m.add(s.name()+numerals.ReplaceAllString(text, "#"), i, text, remark{whole: whole, why: text + "."})
		}
	}
	return m.words(r)
}

// policies are what two engines said of themselves over all pairs of their cells.
type policies struct {
	sides        pairSides // of the first pair
	pairs        []int
	keys         []string                 // in which both said something else
	differ       map[string][]*difference // by key
	onlyX, onlyY map[string][]string      // values by key
}

type difference struct {
	x, y  string
	of    pairSides // the first pair
	pairs int
}

// policyWords say what engines ran with where it differs, an engine and the others at a time.
func (r *Result) policyWords() []string {
	var order []string
	all := map[string]*policies{}
	for i := range r.Comparisons {
		s := r.sides(i)
		if s.x.Engine == nil || s.y.Engine == nil || s.foreign() || r.Comparisons[i].of == ofRequest {
			continue
		}
		p := all[s.name()]
		if p == nil {
			p = &policies{sides: s, differ: map[string][]*difference{}, onlyX: map[string][]string{},
				onlyY: map[string][]string{}}
			all[s.name()], order = p, append(order, s.name())
		}
		p.add(i, s)
	}
	var out []string
	for _, name := range order {
		p := all[name]
		if len(p.pairs) > 1 {
			out = append(out, p.words()...)
			continue
		}
		c := r.Comparisons[p.pairs[0]]
		a, b := &r.Cells[c.A], &r.Cells[c.B]
		for _, text := range differences(a, b) {
			out = append(out, fmt.Sprintf("%s against %s: %s.", a.Label, b.Label, text))
		}
	}
	return out
}

func (p *policies) add(pair int, s pairSides) {
	p.pairs = append(p.pairs, pair)
	x, y := s.x.Engine.Policy, s.y.Engine.Policy
	differ := unlikeSettings(x, y)
	if s.same() {
		differ = append(differ, unlikeSettings(parts(s.x), parts(s.y))...)
	}
	for _, d := range differ {
		p.unlike(d.key, d.x, d.y, s)
	}
	for _, only := range onlySettings(x, y) {
		p.onlyX[only.key] = explain.AppendNew(p.onlyX[only.key], only.x)
	}
	for _, only := range onlySettings(y, x) {
		p.onlyY[only.key] = explain.AppendNew(p.onlyY[only.key], only.x)
	}
}

func (p *policies) unlike(key, x, y string, s pairSides) {
	if _, there := p.differ[key]; !there {
		p.keys = append(p.keys, key)
	}
	at := slices.IndexFunc(p.differ[key],
		func(d *difference) bool { return d.x == x && d.y == y || s.same() && d.x == y && d.y == x })
	if at < 0 {
		p.differ[key] = append(p.differ[key], &difference{x: x, y: y, of: s})
		at = len(p.differ[key]) - 1
	}
	p.differ[key][at].pairs++
}

func (p *policies) words() []string {
	var out []string
	begin := fmt.Sprintf("%s in %d pairs of cells: ", p.sides.name(), len(p.pairs))
	if len(p.keys) > 0 {
		var words []string
		for _, key := range p.keys {
			words = append(words, p.differing(key))
		}
		out = append(out, begin+strings.Join(words, "; ")+".")
	}
	x, y := p.sides.x.Spec.Engine, p.sides.y.Spec.Engine
	if p.sides.same() {
		x, y = "one", "the other"
	}
	for _, side := range []struct {
		who, other string
		says       map[string][]string
	}{{x, y, p.onlyX}, {y, x, p.onlyY}} {
		var words []string
		for _, key := range slices.Sorted(maps.Keys(side.says)) {
			values := side.says[key]
			slices.SortFunc(values, byNumber)
			words = append(words, fmt.Sprintf("%s is %s", strings.ReplaceAll(key, "_", " "), explain.Some(values, 5)))
		}
		if len(words) > 0 {
			out = append(out, fmt.Sprintf("%s%s says, and %s does not: %s.", begin, side.who, side.other,
				strings.Join(words, "; ")))
		}
	}
	return out
}

// differing says in which values of a policy pairs differ: each where they are few, else which there are.
func (p *policies) differing(key string) string {
	const most = 3
	all, name := p.differ[key], strings.ReplaceAll(key, "_", " ")
	if len(all) > most {
		var values []string
		n := 0
		for _, d := range all {
			values = explain.AppendNew(explain.AppendNew(values, d.x), d.y)
			n += d.pairs
		}
		slices.SortFunc(values, byNumber)
		return fmt.Sprintf("%s differs in %d of them (%s)", name, n, explain.Some(values, 6))
	}
	var words []string
	for _, d := range all {
		a, b := d.of.x.Spec.Engine, d.of.y.Spec.Engine
		switch {
		case d.pairs == 1:
			a, b = d.of.x.Label, d.of.y.Label
		case d.of.same():
			a, b = "one", "the other"
		}
		text := fmt.Sprintf("%s is %s for %s and %s for %s", name, d.x, a, d.y, b)
		if d.pairs > 1 && d.pairs < len(p.pairs) {
			text += fmt.Sprintf(" (%d pairs)", d.pairs)
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}

// byNumber sorts values that are numbers by their size.
func byNumber(a, b string) int {
	if d := len(a) - len(b); d != 0 && allDigits(a) && allDigits(b) {
		return d
	}
	return strings.Compare(a, b)
}

func allDigits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}
