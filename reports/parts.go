package reports

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// partsWords say once how to read the components.
const partsWords = "MiB, medians over launches. Weights, KV cache (reserved), activations, multi-GPU overhead, the browser's own and everything else come " +
	"to the increase from baseline to peak: everything else is what is left by difference, with the errors of all the rest, and may be below zero. What is " +
	"filled of the KV cache is calculated (tokens × the bytes of one) and lies within what is reserved; total is what was held at the peak, the baseline with it."

// partColumns of the terminal's table: two header lines, and a component each.
func partColumns() [][3]string {
	return [][3]string{{"", "weights", figure.ModelWeights}, {"KV", "reserved", figure.KVCache},
		{"KV", "filled", figure.KVCacheUsed},
		{"acti-", "vations", figure.Activations}, {"browser's", "own", figure.BrowserShare},
		{"every-", "thing else", figure.FrameworkOverhead},
		{"multi-", "GPU", figure.MultiGPUOverhead},
		{"in-", "crease", figure.MemoryIncrease}, {"", "total", figure.TotalMemory}}
}

// parts is where the memory goes, by component: a row a cell, and below it how each was obtained.
func (t *table) parts() {
	rows, cells := [][]string{{"", ""}, {"cell", "confidence"}}, []int{}
	columns := slices.DeleteFunc(partColumns(),
		func(col [3]string) bool { return col[2] == figure.BrowserShare && !someBeyond(t.res) })
	for _, col := range columns {
		rows[0], rows[1] = append(rows[0], col[0]), append(rows[1], col[1])
	}
	for i := range t.res.Cells {
		c := &t.res.Cells[i]
		if c.Parts == nil {
			continue
		}
		row := []string{line(c.Label), c.Parts.Confidence}
		for _, col := range columns {
			row = append(row, strings.ReplaceAll(held(c.Parts.Shown(col[2]).Figure, c.Launches), "–", "-"))
		}
		rows, cells = append(rows, row), append(cells, i)
	}
	if len(cells) == 0 {
		return
	}
	t.b.WriteString("\nMemory by component\n")
	t.print(rows, cells)
	t.b.WriteString(wrap(partsWords, "", "", width))
	t.beyond()
	for _, n := range partNotes(t.res) {
		t.b.WriteString(wrap(n, "- ", "  ", width))
	}
}

// someBeyond tells whether of some cell a browser's own parts are known.
func someBeyond(res *compare.Result) bool {
	return slices.ContainsFunc(res.Cells,
		func(c compare.Cell) bool { return c.Parts.Component(figure.BrowserShare).Known() })
}

// beyond is of what the browser's own is made: a row a part, a column a cell.
func (t *table) beyond() {
	if !someBeyond(t.res) {
		return
	}
	rows, cells := [][]string{{"cell", "part of the browser's own", "MiB"}}, []int{}
	for i := range t.res.Cells {
		c := &t.res.Cells[i]
		if c.Parts == nil {
			continue
		}
		for _, p := range c.Parts.Beyond {
			rows = append(rows, []string{line(c.Label), p.Title,
				strings.ReplaceAll(held(p.Figure, c.Launches), "–", "-")})
			cells = append(cells, i)
		}
	}
	t.b.WriteString("\n")
	t.print(rows, cells)
}

// partNotes say how each component was obtained, and what else to know, once for all cells of which it holds.
func partNotes(res *compare.Result) []string {
	var out shared
	for i := range res.Cells {
		if c := &res.Cells[i]; c.Parts != nil {
			out.say(c, methodsOf(c.Parts))
			for _, n := range c.Parts.Notes {
				out.say(c, n)
			}
		}
	}
	return out.lines()
}

// origins say where each cell's components come from, once for all cells of which it holds.
func origins(res *compare.Result) []string {
	var out shared
	for i := range res.Cells {
		c := &res.Cells[i]
		if c.Parts == nil {
			continue
		}
		by := newGrouped()
		for _, p := range c.Parts.Components {
			if p.Known() && !none(p) {
				by.add(originWords(p.Origin), partName(p.Name))
			}
		}
		if len(by.order) > 0 {
			out.say(c, by.words(func(origin, names string) string { return origin + ": " + names }))
		}
	}
	return out.lines()
}

// originWords are an origin's, behind which nothing says of whom.
func originWords(o record.Origin) string {
	if o == record.OriginReported {
		return "reported by the engine"
	}
	return string(o)
}

// none tells a component that goes without saying: one device has no overhead of several.
func none(c compare.Component) bool { return c.Name == figure.MultiGPUOverhead && c.Center() == 0 }

// grouped are names by what they have in common, in the order in which that came first.
type grouped struct {
	order []string
	names map[string][]string
}

func newGrouped() *grouped { return &grouped{names: map[string][]string{}} }

func (g *grouped) add(key, name string) {
	if g.names[key] == nil {
		g.order = append(g.order, key)
	}
	g.names[key] = append(g.names[key], name)
}

func (g *grouped) words(of func(key, names string) string) string {
	var out []string
	for _, key := range g.order {
		out = append(out, of(key, strings.Join(g.names[key], ", ")))
	}
	return strings.Join(out, "; ")
}

// shared are sentences, and of which cells they hold.
type shared struct {
	order []string
	whose map[string][]string
}

func (s *shared) say(c *compare.Cell, words string) {
	if s.whose == nil {
		s.whose = map[string][]string{}
	}
	if s.whose[words] == nil {
		s.order = append(s.order, words)
	}
	s.whose[words] = append(s.whose[words], c.Label)
}

// lines have each sentence once, behind its cells.
func (s *shared) lines() []string {
	var out []string
	for _, words := range s.order {
		out = append(out, strings.Join(s.whose[words], "; ")+": "+strings.TrimSuffix(words, ".")+".")
	}
	return out
}

// methodsOf lists the components by origin, method and confidence, with types, and why those that are absent are.
func methodsOf(p *compare.Parts) string {
	var absent []string
	by := newGrouped()
	for _, c := range p.Components {
		name := partName(c.Name)
		switch {
		case !c.Known() && c.Name != figure.TotalMemory:
			absent = append(absent, "no "+name+": "+c.Absent)
			continue
		case !c.Known(), none(c):
			continue
		}
		if c.DType != "" {
			name += " (" + line(c.DType) + ")"
		}
		by.add(fmt.Sprintf("%s, confidence %s", c.From(), c.Confidence), name)
	}
	var out []string
	if len(by.order) > 0 {
		out = append(out, by.words(func(from, names string) string { return names + ": " + from }))
	}
	out = append(out, absent...)
	if s := p.DTypes.Scales; s != "" {
		out = append(out, "scales of weights are "+line(s))
	}
	return strings.Join(out, "; ")
}

// partName is a component in a word or two.
func partName(name string) string {
	for _, col := range partColumns() {
		if col[2] == name {
			if head, ok := strings.CutSuffix(col[0], "-"); ok {
				return head + col[1]
			}
			return strings.TrimSpace(col[0] + " " + col[1])
		}
	}
	return name
}

// partGrid has every component of every cell with its method, confidence and type.
func partGrid(res *compare.Result) *grid {
	t := &grid{Head: []string{"cell", "component", "median (MiB)", "95 % interval", "from", "confidence", "type"}}
	for i := range res.Cells {
		c := &res.Cells[i]
		if c.Parts == nil {
			continue
		}
		for _, p := range slices.Concat(c.Parts.Components, c.Parts.Beyond) {
			t.Rows = append(t.Rows, []string{line(c.Label), p.Title, held(p.Figure, c.Launches),
				intervalWords(p.Figure), orDash(p.From()), orDash(p.Confidence),
				orDash(line(p.DType))})
		}
		if s := c.Parts.DTypes.Scales; s != "" {
			t.Rows = append(t.Rows, []string{line(c.Label), "scales, within the weights", "–", "", "–", "–", line(s)})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// partHow says once what each component is, or why it is absent.
func partHow(res *compare.Result) *grid {
	t := &grid{Head: []string{"component", "from", "what it is, or why it is absent", "what that can't see", "cells"}}
	for i := range res.Cells {
		c := &res.Cells[i]
		if c.Parts == nil {
			continue
		}
		for _, p := range slices.Concat(c.Parts.Components, c.Parts.Beyond) {
			words := p.How
			if !p.Known() {
				words = p.Absent
			}
			row := []string{p.Title, orDash(p.From()), line(words), line(p.Blind)}
			at := slices.IndexFunc(t.Rows, func(have []string) bool { return slices.Equal(have[:len(row)], row) })
			if at >= 0 {
				t.Rows[at][len(row)] += "; " + line(c.Label)
				continue
			}
			t.Rows = append(t.Rows, append(row, line(c.Label)))
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t.without("what that can't see")
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// negative lists the cells of which something is left below zero.
func negative(res *compare.Result) []string {
	var out []string
	for i := range res.Cells {
		c := &res.Cells[i]
		if f := c.Parts.Component(figure.FrameworkOverhead); f.Words != "" {
			out = append(out, c.Label+": "+f.Words+".")
		}
	}
	return slices.Clip(out)
}
