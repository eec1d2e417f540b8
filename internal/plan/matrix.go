package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MostCells is how many cells a plan may have: each is a launch at least, and a plan of more is a slip of somebody's.
const MostCells = 1_000_000

// mostRules is how many entries include and exclude may have each.
const mostRules = 1000

// axis is one of those that a setup or a shape has a value of.
type axis int

const (
	ofContext axis = iota // those that need a launch
	ofDType
	ofKVDType
	ofVersion
	ofThreads
	ofStart
	ofBatch
	ofConcurrency
	ofPrompt // those that need none; also of input length: a prompt that has yet to be made
	ofOutput
	ofEngine
	axisCount

	launched = ofPrompt // those before it need a launch
)

// axisNames are those of one value, as include and exclude have them.
func (a axis) String() string {
	return [axisCount]string{"context", "dtype", "kv_cache_dtype", "webllm_version", "threads", "start", "batch_size",
		"concurrency",
		"prompt", "output_length", "engine"}[a]
}

// value of an axis.
type value struct {
	text string // as include and exclude name it
	n    int    // of numbers; of a prompt, which of asked
}

// asked is what a prompt may be.
type asked struct {
	text   string
	source *Source
	tokens int  // how long it is to be
	mixed  bool // each request has its own: a mix, beside which other prompts are asked alone
}

// group is a model with its axes' values. Beyond base there are those that include brings.
type group struct {
	model      string
	values     [axisCount][]value
	base       [axisCount]int
	deployment Deployment
	added      bool // by include: neither include nor exclude looks at it again
	out, set   masks
	sets       [][]change // of set's rules
}

// matrix is a plan's axes, looked through.
type matrix struct {
	plan   Plan
	asked  []asked
	tokens map[int]int // lengths' indices in asked
	groups []*group
	listed [axisCount]bool // whether a list is given anywhere
}

// combination has an index into a group's values for every axis.
type combination [axisCount]int32

// newMatrix looks at a plan's axes. What it refuses begins with the field.
func newMatrix(p Plan) (*matrix, error) {
	m := &matrix{plan: p, tokens: map[int]int{}}
	m.ask()
	if err := m.gather(); err != nil {
		return nil, err
	}
	if n := m.product(); n > MostCells {
		return nil, fmt.Errorf("%s: %s cells are more than %s: leave out values of an axis, or make several plans",
			m.longest(), grouped(n),
			grouped(MostCells))
	}
	if err := m.rules(); err != nil {
		return nil, err
	}
	return m, nil
}

// ask numbers the plan's prompts: texts, what stands in files, and lengths, each once.
func (m *matrix) ask() {
	p := m.plan
	for _, text := range p.Prompts {
		m.asked = append(m.asked, asked{text: text})
	}
	for i := range p.Sources {
		m.asked = append(m.asked, asked{source: &p.Sources[i]})
	}
	if p.Traffic.complete() {
		m.asked = append(m.asked, asked{mixed: true})
	}
	for _, n := range p.InputLengths {
		m.length(n)
	}
	for _, g := range p.Models {
		for _, n := range g.InputLengths {
			m.length(n)
		}
	}
}

// length gives the number of the prompt of so many tokens.
func (m *matrix) length(tokens int) int {
	i, ok := m.tokens[tokens]
	if !ok {
		i = len(m.asked)
		m.tokens[tokens] = i
		m.asked = append(m.asked, asked{tokens: tokens})
	}
	return i
}

// gather makes a group of each model.
func (m *matrix) gather() error {
	p := m.plan
	plans, single := m.lists(p.Axes), m.single()
	plans[ofEngine] = names(p.Engines)
	if len(p.Models) == 0 {
		m.groups = append(m.groups, m.group(Group{Model: p.Model}, &plans, &single))
	}
	for _, of := range p.Models {
		m.groups = append(m.groups, m.group(of, &plans, &single))
	}
	for i, g := range m.groups {
		if err := m.engines(i, g); err != nil {
			return err
		}
	}
	return nil
}

// lists are an axis' values by what a group or the plan says of it; nil: neither has a list.
func (m *matrix) lists(x Axes) (out [axisCount][]value) {
	for a, list := range map[axis][]int{ofContext: x.Contexts, ofThreads: x.ThreadCounts, ofBatch: x.BatchSizes,
		ofConcurrency: x.Concurrency,
		ofOutput:      x.OutputLengths} {
		for _, n := range list {
			out[a] = append(out[a], value{strconv.Itoa(n), n})
		}
	}
	for a, list := range map[axis][]string{ofDType: x.DTypes, ofKVDType: x.KVDTypes, ofVersion: x.WebLLMVersions,
		ofStart: x.Starts} {
		out[a] = names(list)
	}
	for _, n := range x.InputLengths {
		out[ofPrompt] = append(out[ofPrompt], value{strconv.Itoa(n), m.length(n)})
	}
	return out
}

func names(list []string) []value {
	var out []value
	for _, text := range list {
		out = append(out, value{text: text})
	}
	return out
}

// single are the plan's values where there is no list.
func (m *matrix) single() (out [axisCount][]value) {
	p := m.plan
	for a, n := range map[axis]int{ofContext: p.Context, ofThreads: p.Threads, ofBatch: 0, ofConcurrency: 0,
		ofOutput: p.MaxTokens} {
		out[a] = []value{{strconv.Itoa(n), n}}
	}
	for a, text := range map[axis]string{ofDType: p.DType, ofKVDType: p.KVDType, ofVersion: p.WebLLMVersion,
		ofStart: p.Start} {
		out[a] = []value{{text: text}}
	}
	for i := range m.asked {
		if m.asked[i].tokens == 0 {
			out[ofPrompt] = append(out[ofPrompt], value{"", i})
		}
	}
	return out
}

// group is a model with the plan's axes where it has none of its own.
func (m *matrix) group(of Group, plans, single *[axisCount][]value) *group {
	g := &group{model: of.Model, deployment: m.plan.Deployment.with(of.Deployment)}
	own := m.lists(of.Axes)
	own[ofEngine] = names(of.Engines)
	for a := range axisCount {
		switch {
		case len(own[a]) > 0:
			g.values[a], m.listed[a] = own[a], true
		case len(plans[a]) > 0:
			g.values[a], m.listed[a] = plans[a], true
		default:
			g.values[a] = single[a]
		}
	}
	if mix := slices.IndexFunc(m.asked, func(a asked) bool { return a.mixed }); mix >= 0 &&
		m.asked[g.values[ofPrompt][0].n].tokens > 0 {
		g.values[ofPrompt] = append([]value{{"", mix}}, g.values[ofPrompt]...)
	}
	several := func(v value) bool { return v.n > 1 }
	if g.values[ofBatch][0].n > 0 && g.values[ofConcurrency][0].n > 0 { // one of the two says only 1
		idle := ofConcurrency
		if slices.ContainsFunc(g.values[ofConcurrency], several) {
			idle = ofBatch
		}
		g.values[idle] = single[idle]
	}
	m.listed[ofEngine], m.listed[ofPrompt] = true, true
	for a := range axisCount {
		g.base[a] = len(g.values[a])
	}
	return g
}

// concerns tells whether an axis says something to an engine. One that it says nothing to is not asked the same again
// for each of its values, but for the first.
func concerns(a axis, engine string) bool {
	switch a {
	case ofVersion:
		return engine == webllm
	case ofThreads:
		return engine != webllm && engine != openai
	}
	return true
}

// The engines that axes and sections are for.
const (
	webllm   = "webllm"
	llamacpp = "llamacpp"
	ollama   = "ollama"
	openai   = "openai"
)

// engines refuses lists that none of a group's engines has to do with.
func (m *matrix) engines(i int, g *group) error {
	for _, c := range []struct {
		axis axis
		list string
		need string
	}{{ofVersion, "webllm_versions", webllm}, {ofThreads, "thread_counts", llamacpp + " or " + ollama}} {
		if g.base[c.axis] < 2 || slices.ContainsFunc(g.values[ofEngine],
			func(v value) bool { return concerns(c.axis, v.text) }) {
			continue
		}
		field := c.list
		if len(m.plan.Models) > 0 {
			if own := m.plan.Models[i]; c.axis == ofVersion && own.WebLLMVersions != nil || c.axis == ofThreads &&
				own.ThreadCounts != nil {
				field = fmt.Sprintf("models[%d].%s", i, c.list)
			}
		}
		return fmt.Errorf("%s: none of the engines has to do with it; name %s among them", field, c.need)
	}
	return nil
}

// product is how many cells there are before include and exclude, by multiplication.
func (m *matrix) product() int64 {
	total := int64(0)
	for _, g := range m.groups {
		_, cells := g.size()
		total = plus(total, cells)
	}
	return total
}

// size is how many setups and cells a group has by itself.
func (g *group) size() (setups, cells int64) {
	rest, shape := int64(1), int64(1)
	for a := range ofEngine {
		switch {
		case a == ofVersion || a == ofThreads:
		case a < launched:
			rest = times(rest, int64(g.base[a]))
		default:
			shape = times(shape, int64(g.base[a]))
		}
	}
	versions, threads := int64(g.base[ofVersion]), int64(g.base[ofThreads])
	for _, class := range []struct {
		n               int64
		version, thread bool // beyond the first one
	}{{1, false, false}, {versions - 1, true, false}, {threads - 1, false, true},
		{(versions - 1) * (threads - 1), true, true}} {
		n := int64(0)
		for _, e := range g.values[ofEngine][:g.base[ofEngine]] {
			if (!class.version || concerns(ofVersion, e.text)) && (!class.thread || concerns(ofThreads, e.text)) {
				n++
			}
		}
		if n > 0 {
			setups = plus(setups, times(rest, class.n))
			cells = plus(cells, times(times(rest, class.n), times(shape, n)))
		}
	}
	return setups, cells
}

// times and plus stay at the largest number rather than go over.
func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// longest is the field of the longest list, which is the one to shorten first.
func (m *matrix) longest() string {
	p := m.plan
	lists := []struct {
		field string
		n     int
	}{{"models", len(p.Models)}, {"engines", len(p.Engines)}, {"prompts", len(p.Prompts) + len(p.Sources)}}
	add := func(prefix string, x Axes) {
		for name, n := range x.lengths() {
			lists = append(lists, struct {
				field string
				n     int
			}{prefix + name, n})
		}
	}
	add("", p.Axes)
	for i, g := range p.Models {
		add(fmt.Sprintf("models[%d].", i), g.Axes)
	}
	return slices.MaxFunc(lists, func(a, b struct {
		field string
		n     int
	}) int {
		return cmp.Or(cmp.Compare(a.n, b.n), -cmp.Compare(a.field, b.field))
	}).field
}

// lengths are those of the lists.
func (x Axes) lengths() map[string]int {
	return map[string]int{"input_lengths": len(x.InputLengths), "output_lengths": len(x.OutputLengths),
		"batch_sizes": len(x.BatchSizes),
		"concurrency": len(x.Concurrency), "dtypes": len(x.DTypes), "kv_cache_dtypes": len(x.KVDTypes),
		"webllm_versions": len(x.WebLLMVersions), "contexts": len(x.Contexts), "thread_counts": len(x.ThreadCounts),
		"starts": len(x.Starts)}
}

// grouped writes a number with its thousands apart.
func grouped(n int64) string {
	if n == math.MaxInt64 {
		return "more than 9,000,000,000,000,000,000"
	}
	text := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, r := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// with is a deployment, and another's values where that has any.
func (d Deployment) with(own Deployment) Deployment {
	return Deployment{
		ContainerName:  cmp.Or(own.ContainerName, d.ContainerName),
		TensorParallel: cmp.Or(own.TensorParallel, d.TensorParallel),
		Quantization:   cmp.Or(own.Quantization, d.Quantization), GPUMemory: cmp.Or(own.GPUMemory, d.GPUMemory),
		Params: cmp.Or(own.Params, d.Params), Layers: cmp.Or(own.Layers, d.Layers), Heads: cmp.Or(own.Heads, d.Heads),
		HeadDim: cmp.Or(own.HeadDim, d.HeadDim), HiddenSize: cmp.Or(own.HiddenSize, d.HiddenSize),
	}
}
