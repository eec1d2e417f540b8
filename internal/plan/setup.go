package plan

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"

	"llmparity/internal/record"
)

// Setup is a plan whose axes have one value each, but for those that need no launch of their own: its Shapes.
type Setup struct {
	ID int // from 1, in the plan's order
	// its lists of axes are empty: what they said stands in Engines, Model, Context, DType, KVDType, WebLLMVersion,
	// Threads, Slots, Start
	Plan   Plan
	Shapes []Shape
}

// Shape is what is asked of an engine in a cell.
type Shape struct {
	// from 1 within the plan; the same text, source or number of tokens has the same number in every setup
	PromptID    int
	Prompt      string  // empty where InputTokens says how long it is to be: who knows the model's tokenizer makes it
	Source      *Source // where the prompt, or those of its requests, stand in a file; nil: nowhere
	InputTokens int
	MaxTokens   int
	Traffic     *record.Traffic // nil: one request. Shapes share it: it is not to be changed
	Engines     []string        // of the setup's, those that are asked; nil: all
}

// Asks tells whether an engine of the setup is asked this.
func (s Shape) Asks(engine string) bool {
	return s.Engines == nil || slices.Contains(s.Engines, engine)
}

// Cells is how many a setup has.
func (s Setup) Cells() int {
	n := 0
	for _, shape := range s.Shapes {
		if shape.Engines == nil {
			n += len(s.Plan.Engines)
		} else {
			n += len(shape.Engines)
		}
	}
	return n
}

// Count tells how many setups and cells a plan has, repetitions not counted: by multiplication, or, with include or
// exclude, by going through them. It is an error that there is none, or more than MostCells.
func (p Plan) Count() (setups, cells int64, err error) {
	m, err := newMatrix(p)
	if err != nil {
		return 0, 0, err
	}
	setups, cells = m.count()
	return setups, cells, empty(cells, p)
}

// Setups gives them in order; each is made when its turn comes. Of a plan that is not valid there are none.
func (p Plan) Setups() iter.Seq[Setup] {
	return func(yield func(Setup) bool) {
		m, err := newMatrix(p)
		if err != nil {
			return
		}
		b, id := newBuilder(m), 0
		for _, g := range m.groups {
			for of, cells := range g.setups() {
				id++
				if !yield(b.setup(id, g, of, cells)) {
					return
				}
			}
		}
	}
}

func (m *matrix) count() (setups, cells int64) {
	if len(m.plan.Include)+len(m.plan.Exclude) == 0 {
		for _, g := range m.groups {
			s, c := g.size()
			setups, cells = setups+s, cells+c
		}
		return setups, cells
	}
	for _, g := range m.groups {
		if len(g.sets) > 0 {
			for _, of := range g.setups() {
				setups++
				cells += int64(len(of))
			}
			continue
		}
		var at [launched]int32
		first := true
		for c := range g.cells() {
			if first || c.launch() != at {
				setups++
			}
			at, first = c.launch(), false
			cells++
		}
	}
	return setups, cells
}

// cells goes through a group's own combinations that are not left out. The combination is overwritten.
func (g *group) cells() iter.Seq[*combination] {
	return func(yield func(*combination) bool) {
		for _, n := range g.base {
			if n == 0 {
				return
			}
		}
		var c combination
		var words []uint64
		for {
			if g.concerned(&c) {
				if words = g.out.of(&c, words); none(words) && !yield(&c) {
					return
				}
			}
			if !g.next(&c) {
				return
			}
		}
	}
}

// concerned tells whether the axes beyond their first values say something to the engine.
func (g *group) concerned(c *combination) bool {
	for _, a := range [...]axis{ofVersion, ofThreads} {
		if c[a] > 0 && !concerns(a, g.values[ofEngine][c[ofEngine]].text) {
			return false
		}
	}
	return true
}

// next is the combination after one; false: there was none, and c is the first.
func (g *group) next(c *combination) bool {
	for a := axisCount - 1; a >= 0; a-- {
		if c[a]++; int(c[a]) < g.base[a] {
			return true
		}
		c[a] = 0
	}
	return false
}

// launch is the part of a combination that setups differ by.
func (c *combination) launch() (of [launched]int32) { return [launched]int32(c[:launched]) }

// setups goes through a group's setups with their cells, which are overwritten. Where include sets what a launch needs
// in some of a setup's cells, those are a setup of their own.
func (g *group) setups() iter.Seq2[combination, []combination] {
	return func(yield func(combination, []combination) bool) {
		var gathered []combination
		var at [launched]int32
		for c := range g.cells() {
			if len(gathered) > 0 && c.launch() != at {
				if !g.split(gathered, yield) {
					return
				}
				gathered = gathered[:0]
			}
			at = c.launch()
			gathered = append(gathered, *c)
		}
		if len(gathered) > 0 {
			g.split(gathered, yield)
		}
	}
}

func (g *group) split(cells []combination, yield func(combination, []combination) bool) bool {
	if len(g.sets) == 0 {
		return yield(cells[0], cells)
	}
	var order [][launched]int32
	parts := map[[launched]int32][]combination{}
	var words []uint64
	for i := range cells {
		words = g.change(&cells[i], words)
		of := cells[i].launch()
		if parts[of] == nil {
			order = append(order, of)
		}
		parts[of] = append(parts[of], cells[i])
	}
	for _, of := range order {
		if !yield(parts[of][0], parts[of]) {
			return false
		}
	}
	return true
}

// change sets what include says of a cell; of two entries the later one is right. words is overwritten.
func (g *group) change(c *combination, words []uint64) []uint64 {
	words = g.set.of(c, words)
	for i, word := range words {
		for ; word != 0; word &= word - 1 {
			for _, change := range g.sets[64*i+bits.TrailingZeros64(word)] {
				c[change.axis] = int32(change.index)
			}
		}
	}
	return words
}

// builder makes setups. What shapes can share they do.
type builder struct {
	*matrix
	engines map[string][]string
	traffic map[trafficKey]*record.Traffic
}

type trafficKey struct {
	batch, concurrency, prompt, output int
}

func newBuilder(m *matrix) *builder {
	return &builder{matrix: m, engines: map[string][]string{}, traffic: map[trafficKey]*record.Traffic{}}
}

// setup makes one of cells that need the same launch.
func (b *builder) setup(id int, g *group, of combination, cells []combination) Setup {
	p := b.plan
	p.Axes, p.Models, p.Include, p.Exclude, p.Traffic, p.Sources = Axes{}, nil, nil, nil, nil, nil
	at := func(a axis) value { return g.values[a][of[a]] }
	p.Model, p.Deployment = g.model, g.deployment
	p.Context, p.Threads = at(ofContext).n, at(ofThreads).n
	p.DType, p.KVDType, p.WebLLMVersion, p.Start = at(ofDType).text, at(ofKVDType).text, at(ofVersion).text,
		at(ofStart).text
	p.Engines = b.named(g, cells)
	p.Prompts, p.MaxTokens, p.Slots = nil, 0, 0
	s := Setup{ID: id, Shapes: b.shapes(g, cells, len(p.Engines))}
	for i, shape := range s.Shapes {
		if shape.Prompt != "" && (i == 0 || shape.PromptID != s.Shapes[i-1].PromptID) {
			p.Prompts = append(p.Prompts, shape.Prompt)
		}
		p.MaxTokens = max(p.MaxTokens, shape.MaxTokens)
		if shape.Traffic != nil {
			p.Slots = max(p.Slots, cmp.Or(shape.Traffic.Concurrency, openSlots))
		}
	}
	s.Plan = p
	return s
}

// named are the engines of cells, in the plan's order.
func (b *builder) named(g *group, cells []combination) []string {
	seen := make([]bool, len(g.values[ofEngine]))
	for i := range cells {
		seen[cells[i][ofEngine]] = true
	}
	var key []byte
	var names []string
	for i, there := range seen {
		if there {
			names = append(names, g.values[ofEngine][i].text)
			key = append(append(key, names[len(names)-1]...), 0)
		}
	}
	if known, ok := b.engines[string(key)]; ok {
		return known
	}
	b.engines[string(key)] = names
	return names
}

// shapes are what cells ask, with the engines that they ask it of.
func (b *builder) shapes(g *group, cells []combination, engines int) []Shape {
	of := func(c *combination) [2]int32 { return [2]int32{c[ofPrompt], c[ofOutput]} }
	if len(g.sets) > 0 { // what include sets may have parted cells that are alike
		slices.SortStableFunc(cells, func(x, y combination) int {
			return cmp.Or(cmp.Compare(x[ofPrompt], y[ofPrompt]), cmp.Compare(x[ofOutput], y[ofOutput]),
				cmp.Compare(x[ofEngine], y[ofEngine]))
		})
	}
	n := 1
	for i := 1; i < len(cells); i++ {
		if of(&cells[i]) != of(&cells[i-1]) {
			n++
		}
	}
	out := make([]Shape, 0, n)
	for first := 0; first < len(cells); {
		end := first + 1
		for end < len(cells) && of(&cells[end]) == of(&cells[first]) {
			end++
		}
		s := b.shape(g, &cells[first])
		if end-first < engines {
			s.Engines = b.named(g, cells[first:end])
		}
		out = append(out, s)
		first = end
	}
	return out
}

// shape is what a cell asks.
func (b *builder) shape(g *group, c *combination) Shape {
	id := g.values[ofPrompt][c[ofPrompt]].n
	a := b.asked[id]
	s := Shape{PromptID: id + 1, Prompt: a.text, Source: a.source, InputTokens: a.tokens,
		MaxTokens: g.values[ofOutput][c[ofOutput]].n}
	key := trafficKey{g.values[ofBatch][c[ofBatch]].n, g.values[ofConcurrency][c[ofConcurrency]].n, 0, s.MaxTokens}
	if a.source != nil || b.plan.Traffic != nil && len(b.plan.Traffic.Mix) > 0 {
		key.prompt = s.PromptID
	}
	t, known := b.traffic[key]
	if !known {
		t = b.plan.traffic(key.batch, key.concurrency, s)
		if t != nil && !a.mixed && b.plan.Traffic.complete() { // alone, to hold the mix against
			t.Mix = nil
		}
		b.traffic[key] = t
	}
	s.Traffic = t
	if t != nil {
		for _, k := range t.Mix {
			s.MaxTokens = max(s.MaxTokens, k.MaxTokens)
		}
	}
	return s
}
