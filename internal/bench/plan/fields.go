package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/axis"
	"llmparity/internal/dtype"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Field is how a plan varies an axis. Flags, the schema, entries of include and exclude, and expansion derive from the
// table: a new axis is a row here and one in internal/axis.
type Field struct {
	*axis.Axis
	List                string   // the field of a list
	Flag, Heading, Help string   // of run; empty: it has none
	Least, Most         int      // of a number
	Known               []string // of a text; nil: any
	Empty               bool     // the empty text is a value: the engine's own
	Launch              bool     // another value needs another launch
	Some                bool     // only engines use it that have the list among Kind.Axes
	// Read writes a value into a cell; nil: Expand does, because it needs more than the value.
	Read func(Value, *record.Cell)

	one   func(*Plan) any   // the field of a single value, *int, *float64 or *string; nil: none
	list  func(*Axes) any   // the field of List, *[]int, *[]float64 or *[]string; nil: none
	none  int               // the number of a plan that does not set it
	check func(Value) error // in place of Least, Most and Known

	kind *engine.Kind // whose version, or whose section's field, this is; nil: any engine's
	set  engine.Field // the field of kind's section; a version: the one that may name a build instead of it
	at   int          // its place in an expansion
}

// Axes are lists. Every combination of their values is measured. A list replaces the field of a single value: dtypes
// dtype, output_lengths max_tokens, input_lengths prompts, and so on.
type Axes struct {
	// Lengths of generated prompts in tokens, e.g. [64, 256], instead of prompts.
	InputLengths []int `yaml:"input_lengths,flow,omitempty"`
	// Numbers of tokens to generate, e.g. [32, 128], instead of max_tokens.
	OutputLengths []int `yaml:"output_lengths,flow,omitempty"`
	// Numbers of requests that are sent at once, e.g. [1, 8].
	BatchSizes []int `yaml:"batch_sizes,flow,omitempty"`
	// Numbers of clients, e.g. [1, 2, 4]. Each client sends its next request after an answer.
	Concurrency []int `yaml:"concurrency,flow,omitempty"`
	// Several dtypes, e.g. [f32, f16].
	DTypes []string `yaml:"dtypes,flow,omitempty"`
	// Several KV cache dtypes, e.g. [f16, q8_0].
	KVDTypes []string `yaml:"kv_cache_dtypes,flow,omitempty"`
	// Several temperatures, e.g. [0, 0.7].
	Temperatures []float64 `yaml:"temperatures,flow,omitempty"`
	// Several context windows in tokens, e.g. [512, 1024].
	Contexts []int `yaml:"contexts,flow,omitempty"`
	// Several numbers of threads, e.g. [1, 2].
	ThreadCounts []int `yaml:"thread_counts,flow,omitempty"`
	// To measure with the model file read from disk and from the page cache: [cold, warm].
	Starts []string `yaml:"starts,flow,omitempty"`
	// Several kinds of storage, e.g. [cache, opfs].
	Storages []string `yaml:"storages,flow,omitempty"`
	// What the browser has of the model before each launch: [empty, half, filled]. half: the first half of its files,
	// as an interrupted download leaves them; filled: all. Default: empty.
	Stored []string `yaml:"stored,flow,omitempty"`
	// Weights of WebLLM's packages, e.g. [as-is, f32]: as-is (types that WebLLM lacks become dtype), f32 or f16.
	Weights []string `yaml:"weights,flow,omitempty"`

	VersionLists map[string][]string `yaml:"-"` // of engines that have several versions, by axis
}

// Value is one value of a Field.
type Value struct {
	Text string // as in include and exclude
	N    int    // a number, the index of a prompt or of a section's value, or 1 for a build in place of a version
}

// Headings of flags.
const (
	whatToRun = "What to run"
	request   = "Request"
)

// Values that a plan may name: dtypes of weights and activations, of the KV cache, and states of the model file before
// a launch. An engine may support only some of them.
var (
	DTypes   = dtype.Computes()
	KVDTypes = dtype.Caches()
	Starts   = []string{record.ColdStart, record.WarmStart}
	Storages = engine.Storages
)

// Fields are the table, with the versions of engines that have several. They are in the order of cells: values of the
// last ones change first.
func Fields(kinds engine.Kinds) []*Field {
	return slices.Concat([]*Field{
		{Axis: axis.Named(axis.Context), List: "contexts", Flag: "contexts", Heading: request,
			Help: "several context windows, e.g. 1024,4096",
			Most: mostTokens, check: checkContext, none: Unsaid, Launch: true,
			Read: func(v Value, c *record.Cell) { c.Model.Context = max(v.N, 0) },
			one:  func(p *Plan) any { return &p.Context }, list: func(x *Axes) any { return &x.Contexts }},
		{Axis: axis.Named(axis.DType), List: "dtypes", Flag: "dtype", Heading: whatToRun, Help: dtypesHelp(kinds),
			Known: DTypes, Empty: true, Launch: true,
			Read: func(v Value, c *record.Cell) { c.DType = v.Text },
			one:  func(p *Plan) any { return &p.DType }, list: func(x *Axes) any { return &x.DTypes }},
		{Axis: axis.Named(axis.KVDType), List: "kv_cache_dtypes", Flag: "kv-cache-dtype", Heading: whatToRun,
			Help: kvTypesHelp(kinds), Known: KVDTypes, Empty: true, Launch: true,
			Read: func(v Value, c *record.Cell) { c.KVDType = v.Text },
			one:  func(p *Plan) any { return &p.KVDType }, list: func(x *Axes) any { return &x.KVDTypes }},
		{Axis: axis.Named(axis.Weights), List: "weights", Flag: "weights", Heading: whatToRun,
			Help:  "weights of WebLLM's packages: as-is (types that WebLLM lacks become --dtype), f32, f16, or several",
			Known: engine.WeightForms, Empty: true, Some: true, Launch: true,
			Read: func(v Value, c *record.Cell) {
				if v.Text != engine.WeightForms[0] {
					c.Weights = v.Text
				}
			},
			list: func(x *Axes) any { return &x.Weights }},
	}, versions(kinds), []*Field{
		{Axis: axis.Named(axis.Threads), List: "thread_counts", Flag: "thread-counts", Heading: whatToRun,
			Help: "several numbers of threads, e.g. 1,2", Least: 1, Most: mostTokens, Some: true, Launch: true,
			Read: func(v Value, c *record.Cell) { c.Threads = v.N },
			one:  func(p *Plan) any { return &p.Threads }, list: func(x *Axes) any { return &x.ThreadCounts }},
		{Axis: axis.Named(axis.Start), List: "starts", Flag: "start", Heading: whatToRun,
			Help:  "state of the model file before each launch: cold (not in the page cache), warm (in the page cache), or both",
			Known: Starts, Launch: true,
			Read: func(v Value, c *record.Cell) { c.Start = v.Text },
			one:  func(p *Plan) any { return &p.Start }, list: func(x *Axes) any { return &x.Starts }},
		{Axis: axis.Named(axis.Storage), List: engine.AxisStorage, Flag: "storage", Heading: whatToRun,
			Help:  "where a browser keeps the model: cache, indexeddb, opfs, cross-origin, none, or several",
			Known: Storages, Some: true, Launch: true,
			Read: func(v Value, c *record.Cell) { c.Storage = v.Text },
			one:  func(p *Plan) any { return &p.Storage }, list: func(x *Axes) any { return &x.Storages }},
		{Axis: axis.Named(axis.Stored), List: engine.AxisStored, Flag: "stored", Heading: whatToRun,
			Help:  "what the browser has of the model before each launch: empty, half (an interrupted download), filled, or several",
			Known: engine.Stored, Some: true, Launch: true,
			Read: func(v Value, c *record.Cell) {
				if v.Text != engine.Stored[0] {
					c.Stored = v.Text
				}
			},
			list: func(x *Axes) any { return &x.Stored }},
		{Axis: axis.Named(axis.BatchSize), List: "batch_sizes", Flag: "batch-size", Heading: request,
			Help:  "number of requests sent at once, e.g. 1,8",
			Least: 1, Most: mostClients, Launch: true, list: func(x *Axes) any { return &x.BatchSizes }},
		{Axis: axis.Named(axis.Concurrency), List: "concurrency", Flag: "concurrency", Heading: request,
			Help:  "number of clients, e.g. 1,2,4,8; each sends its next request after an answer",
			Least: 1, Most: mostClients, Launch: true, list: func(x *Axes) any { return &x.Concurrency }},
		{Axis: axis.Named(axis.Temperature), List: "temperatures", Flag: "temperature", Heading: request,
			Help:  "sampling temperatures, e.g. 0,0.7; above 0, answers are random, and outputs are not compared",
			check: checkTemperature,
			Read:  func(v Value, c *record.Cell) { c.Temperature = v.float() },
			one:   func(p *Plan) any { return &p.Temperature }, list: func(x *Axes) any { return &x.Temperatures }},
		{Axis: axis.Named(axis.Prompt), List: "input_lengths", Flag: "input-len", Heading: request,
			Help:  "prompt lengths in tokens, e.g. 256,512; the prompts are generated",
			Least: 1, Most: mostTokens, list: func(x *Axes) any { return &x.InputLengths }},
		{Axis: axis.Named(axis.Output), List: "output_lengths", Flag: "output-len", Heading: request,
			Help: "output lengths in tokens, e.g. 64,256", Least: 1, Most: mostTokens,
			Read: func(v Value, c *record.Cell) { c.MaxTokens = v.N },
			one:  func(p *Plan) any { return &p.MaxTokens }, list: func(x *Axes) any { return &x.OutputLengths }},
		{Axis: axis.Named(axis.Engine), List: "engines",
			Read: func(v Value, c *record.Cell) { c.Engine = v.Text }},
		{Axis: axis.Named(axis.Model), List: "models", Flag: "models", Heading: whatToRun,
			Help: "several models, e.g. tiny,my.gguf",
			Read: func(v Value, c *record.Cell) { c.Model.Name = v.Text },
			one:  func(p *Plan) any { return &p.Model }},
	})
}

// versions are the rows of engines that have several versions. A section's field that names a build instead, such as a
// file, adds values to a list of versions.
func versions(kinds engine.Kinds) (out []*Field) {
	for _, k := range kinds {
		if k.VersionAxis == "" {
			continue
		}
		f := &Field{Axis: axis.Named(k.VersionAxis), List: k.VersionList(), Flag: flagOf(k.VersionList()),
			Heading: k.Title, Help: k.VersionHelp, Launch: true, kind: k}
		if k.Config != nil {
			for _, set := range k.Config().Fields() {
				if set.Axis == f.List {
					f.set = set
				}
			}
		}
		f.Read = func(v Value, c *record.Cell) {
			name := f.Name
			if v.N > 0 {
				name = f.set.Key
			}
			c.Settings = with(c.Settings, name, v.Text, v.Text != "")
		}
		out = append(out, f)
	}
	return out
}

// flagOf is the flag of a list.
func flagOf(list string) string { return strings.TrimSuffix(strings.ReplaceAll(list, "_", "-"), "s") }

// ofSections are the rows of lists in fields of single values of engines' sections, the last first. Duplicate values
// are refused.
func (p Plan) ofSections() (out []*Field, err error) {
	for _, k := range p.kinds.Sections() {
		for _, set := range k.Config().Fields() {
			f := &Field{Axis: axis.OfField(set.Key), List: k.Field(set.Key), Launch: true, kind: k, set: set}
			all := p.Sections[k.Section].Varied(set)
			for i, v := range all {
				if slices.Contains(all[:i], v) {
					return nil, fmt.Errorf("%s[%d]: duplicate value %q", f.List, i, fmt.Sprint(v))
				}
			}
			if all == nil || set.Axis != "" && p.Says(set.Axis) { // a list of versions has them
				continue
			}
			f.Read = func(v Value, c *record.Cell) { c.Settings = with(c.Settings, set.Key, v.Text, true) }
			out = append([]*Field{f}, out...)
		}
	}
	return out, nil
}

// entry is its name in entries of include and exclude. Sections may have fields of the same name.
func (f *Field) entry() string {
	if f.ofSection() {
		return f.List
	}
	return f.Name
}

// ofSection reports whether it is a field of an engine's section.
func (f *Field) ofSection() bool { return f.kind != nil && !f.ofVersion() }

// ofVersion reports whether it is an engine's version.
func (f *Field) ofVersion() bool { return f.kind != nil && f.List == f.kind.VersionList() }

// Text reports whether its values are texts.
func (f *Field) Text() bool { return f.Most == 0 }

// uses reports whether an engine uses it. If it does not, only the first value makes a cell.
func (f *Field) uses(k *engine.Kind) bool {
	switch {
	case f.ofSection():
		return k.Section == f.kind.Section
	case f.ofVersion():
		return k.Concerned(f.List)
	}
	return !f.Some || k.Name == "" || k.Concerned(f.List) // an unknown engine may use it
}

// value reads a value.
func (f *Field) value(text string) (Value, error) {
	switch {
	case f.Name == axis.DType, f.Name == axis.KVDType:
		return Value{Text: ownDType(text)}, nil
	case f.fractions():
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return Value{}, fmt.Errorf("must be a number, not %q", text)
		}
		return fraction(n), nil
	case f.Text():
		return Value{Text: text}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return Value{}, fmt.Errorf("must be a whole number, not %q", text)
	}
	return number(n), nil
}

func number(n int) Value { return Value{strconv.Itoa(n), n} }

// fractions reports whether its values are numbers with fractions. A Value has them as text.
func (f *Field) fractions() bool {
	if f.list == nil {
		return false
	}
	_, ok := f.list(new(Axes)).(*[]float64)
	return ok
}

func fraction(n float64) Value { return Value{Text: strconv.FormatFloat(n, 'g', -1, 64)} }

// float is the number of a fraction; that of no text is 0.
func (v Value) float() float64 {
	n, _ := strconv.ParseFloat(v.Text, 64)
	return n
}

func texts(all []string) (out []Value) {
	for _, text := range all {
		out = append(out, Value{Text: text})
	}
	return out
}

// known refuses values that it cannot have.
func (f *Field) known(v Value) error {
	switch {
	case f.check != nil:
		return f.check(v)
	case f.ofVersion() && v.Text == "":
		return errors.New("must be a version such as 0.2.86")
	case f.Text() && (f.Known == nil || v.Text == "" && f.Empty || slices.Contains(f.Known, v.Text)):
		return nil
	case f.Text():
		return unknown(v.Text, f.Known)
	}
	return within(v.N, f.Least, f.Most)
}

// values are those of its list.
func (f *Field) values(x *Axes) (out []Value) {
	if f.list == nil {
		return texts(x.VersionLists[f.Name])
	}
	switch list := f.list(x).(type) {
	case *[]int:
		for _, n := range *list {
			out = append(out, number(n))
		}
	case *[]float64:
		for _, n := range *list {
			out = append(out, fraction(n))
		}
	case *[]string:
		return texts(*list)
	}
	return out
}

// setList replaces its list; no values remove it.
func (f *Field) setList(x *Axes, values []Value) {
	var texts []string
	var numbers []int
	var floats []float64
	for _, v := range values {
		texts, numbers, floats = append(texts, v.Text), append(numbers, v.N), append(floats, v.float())
	}
	if f.ofVersion() {
		x.VersionLists = with(x.VersionLists, f.Name, texts, len(texts) > 0)
	}
	if f.list == nil {
		return
	}
	switch to := f.list(x).(type) {
	case *[]string:
		*to = texts
	case *[]int:
		*to = numbers
	case *[]float64:
		*to = floats
	}
}

// single is its single value; ok is false if there is no field for one.
func (f *Field) single(p *Plan) (v Value, ok bool) {
	if f.one == nil {
		return Value{Text: p.Versions[f.Name]}, f.ofVersion()
	}
	switch of := f.one(p).(type) {
	case *int:
		return number(*of), true
	case *float64:
		return fraction(*of), true
	case *string:
		return Value{Text: *of}, true
	}
	return Value{}, false
}

// said reports whether a plan sets a single value.
func (f *Field) said(p *Plan) bool {
	v, ok := f.single(p)
	if f.Text() {
		return ok && v.Text != "" && !(f.fractions() && v.float() == 0)
	}
	return ok && v.N != f.none && v.N != 0
}

// setSingle sets the single value of a plan; the zero value clears it.
func (f *Field) setSingle(p *Plan, v Value) {
	switch {
	case f.one != nil:
		switch of := f.one(p).(type) {
		case *int:
			*of = v.N
		case *float64:
			*of = v.float()
		case *string:
			*of = v.Text
		}
	case f.ofVersion():
		p.Versions = with(p.Versions, f.Name, v.Text, v.Text != "" && v.N == 0)
		section := p.Sections[f.kind.Section]
		if _, there := section[f.set.Key]; v.N > 0 {
			p.Say(f.kind.Section, with(section, f.set.Key, any(v.Text), true))
		} else if v.Text != "" && there { // not removed: that would leave what a flag or the whole plan set
			p.Say(f.kind.Section, with(section, f.set.Key, any(""), true))
		}
	case f.ofSection():
		section := p.Sections[f.kind.Section]
		p.Say(f.kind.Section, section.With(f.set.Key, section.Varied(f.set)[v.N]))
	case f.list != nil && f.Some && v.Text != "": // a list stands for its single value
		f.setList(&p.Axes, []Value{v})
	}
}

func checkTemperature(v Value) error {
	const most = 2 // of OpenAI's API
	if n := v.float(); !(n >= 0 && n <= most) {
		return fmt.Errorf("%s is out of range; use 0 (greedy) to %d", v.Text, most)
	}
	return nil
}

func checkContext(v Value) error {
	switch n := v.N; {
	case n > mostTokens:
		return fmt.Errorf("%d is too large; use at most %d, or 0 for the model's maximum", n, mostTokens)
	case n < 2 && n != 0 && n != Unsaid:
		return fmt.Errorf("%d is too small; use at least 2, or 0 for the model's maximum", n)
	}
	return nil
}

// within refuses numbers outside a range.
func within(n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("%d is out of range; use %d to %d", n, least, most)
	}
	return nil
}

// dtypesHelp says what a dtype means to each engine.
func dtypesHelp(kinds engine.Kinds) string {
	return "f32, f16 (needs shader-f16), or both; sets the dtype of " + each(kinds, ", and of ", func(k *engine.Kind) string {
		if k.DTypeOf == "" {
			return ""
		}
		return k.Title + "'s " + k.DTypeOf
	})
}

// kvTypesHelp lists the KV cache dtypes of engines.
func kvTypesHelp(kinds engine.Kinds) string {
	return "KV cache dtypes, instead of --dtype; " + each(kinds, "; ", func(k *engine.Kind) string {
		if len(k.KVTypes) < 2 {
			return ""
		}
		return k.Title + ": " + strings.Join(k.KVTypes, ", ")
	})
}

// each joins what there is to say of kinds.
func each(kinds engine.Kinds, separator string, of func(*engine.Kind) string) string {
	var out []string
	for _, k := range kinds.Sections() {
		if text := of(k); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, separator)
}
