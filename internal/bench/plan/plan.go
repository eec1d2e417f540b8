// Package plan reads plans: which engines run which models with which requests, how often and in which order.
//
// It knows engines and models by name only. Whether they exist here is decided in internal/bench/resolve.
package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"llmparity/internal/engine"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kit/document"
)

// Plan says what to measure. Every combination of engines, models, prompts and lists is a cell.
type Plan struct {
	// Name of the run's folder. Letters, digits, dots, dashes and underscores. Default: the plan's file name.
	Name string `yaml:"name"`
	// Engines to run, e.g. [webllm, llamacpp]. Default: webllm and llamacpp.
	Engines []string `yaml:"engines,flow"`
	// Model to run: tiny, tiny-q4_0, tiny-q8_0, smollm2, a GGUF file, a WebLLM package's folder, an id of WebLLM's
	// catalogue, hf:ORG/NAME or ollama:NAME of another tool's downloads, or served:NAME. A list is the same as models.
	// A group has a form for each engine, e.g.
	// {name: llama, webllm: Llama-3.2-1B-Instruct-q4f32_1-MLC, llamacpp: llama.gguf}.
	Model string `yaml:"model,omitempty"`
	// Prompts, passed to the model as they are, unless chat is true: texts, or groups such as {file: prompt.txt}.
	Prompts []Prompt `yaml:"prompts,omitempty"`
	// Whether each prompt is the message of a user in the model's own chat template, instead of raw text. For texts and
	// files. Default: false.
	Chat bool `yaml:"chat,omitempty"`
	// Number of tokens to generate, e.g. 64.
	MaxTokens int `yaml:"max_tokens,omitempty"`
	// Sampling temperature, up to 2. Above 0, answers are random: the record has their seeds, and outputs are not
	// compared token by token. Default: 0 (greedy).
	Temperature float64 `yaml:"temperature"`
	// Context window in tokens, e.g. 1024; 0: the model's maximum. Default: 4096, or the model's maximum if smaller.
	Context int `yaml:"context"` // Unsaid if the plan has none
	// What happens before the measurement, e.g. {launches: 1, tokens: 8}.
	Warmup Warmup `yaml:"warmup"`
	// Measured launches of each cell. Default: 6. Fewer than 6 give no 95% confidence interval.
	Repetitions int `yaml:"repetitions"`
	// What repetitions share. launch: nothing, each has its own process; reused: one process per cell; shared: one
	// process for all cells of an engine with the same start settings. Default: launch.
	Isolation string `yaml:"isolation,omitempty"`
	// Whether engines may reuse the KV cache of an earlier prompt: off or on. Default: off.
	Cache string `yaml:"cache,omitempty"`
	// Time limit of a launch, e.g. 3m. Default: 3m.
	Timeout Duration `yaml:"timeout"`
	// Time limit of all launches of a cell, e.g. 30m. Default: none.
	CellTimeout Duration `yaml:"cell_timeout,omitempty"`
	// Time limit of the run, e.g. 8h. Default: none. run --resume measures what is missing.
	RunTimeout Duration `yaml:"run_timeout,omitempty"`
	// Order of launches. interleaved: each cell of a model once, then each again; shuffled: the same in random order;
	// grouped: all repetitions of a cell, one after the other. Default: interleaved.
	Order string `yaml:"order,omitempty"`
	// Random seed of shuffled order, traffic and generated prompts. Default: 0.
	Seed uint64 `yaml:"seed,omitempty"`
	// Random seed of shuffled order. Default: seed, or a random number, which the run records.
	OrderSeed uint64 `yaml:"order_seed,omitempty"`
	// Pause before each launch, e.g. 10s. Default: none.
	CoolDown Duration `yaml:"cool_down,omitempty"`
	// Repeat cells until the 95% confidence interval of a figure is within this share of its median, e.g. 5%.
	UntilCI *UntilCI `yaml:"until_ci,omitempty"`
	// Time after which a silent page or exec: engine counts as hung, e.g. 1m. Default: the engine's.
	Watchdog Duration `yaml:"watchdog,omitempty"`
	// Whether to skip cells that are predicted to run out of memory. Default: true.
	CheckOOM *bool `yaml:"check_oom,omitempty"`
	// Whether to measure an engine that got less than was asked for, e.g. the CPU instead of a GPU, or fewer threads.
	// Default: false, the launch fails.
	AllowFallback bool `yaml:"allow_fallback,omitempty"`
	// Whether engines score the reference text token by token after the run. Default: only where outputs differ.
	Parity *bool `yaml:"parity,omitempty"`
	// Whether each engine that can score is checked: it scores a text of 64 tokens once, outside measured launches.
	// Default: true.
	Check *bool `yaml:"check,omitempty"`
	// Whether llmparity's reference implementation scores that text, too. It reads GGUF files of up to 200 million
	// parameters. Default: only for the built-in model and random models.
	CheckReference bool `yaml:"check_reference,omitempty"`
	// Engine whose output is the reference text. Default: the first native engine that reports token ids.
	TextOf string `yaml:"text_of,omitempty"`
	// Text whose perplexity engines are scored by after the run: a file, builtin, or its first windows, quick.
	// Default: none.
	Quality string `yaml:"quality,omitempty"`
	// The one engine that scores that text. Default: each that can score.
	QualityOf string `yaml:"quality_of,omitempty"`
	// Dtype that engines compute in: f32, f16 or bf16. Default: f32.
	DType string `yaml:"dtype,omitempty"`
	// Threads of native engines. Default: 1.
	Threads  int               `yaml:"threads,omitempty"`
	Versions map[string]string `yaml:"-"` // of engines that have several, by axis

	// KV cache dtype, e.g. f16 or q8_0. Default: the plan's dtype, else the engine's own.
	KVDType string `yaml:"kv_cache_dtype,omitempty"`
	// Whether the model file is in the page cache before a launch: cold (no) or warm (yes). Default: unchanged.
	Start string `yaml:"start,omitempty"`
	// Where a browser keeps the model: cache, indexeddb, opfs, cross-origin or none. Default: the engine's.
	Storage string `yaml:"storage,omitempty"`
	Slots   int    `yaml:"-"` // of a setup: requests that an engine must handle at once; 0: one

	Forms map[string]string `yaml:"-"` // of a setup: the model of each engine; nil: model

	// Several models, instead of model: names, or groups with engines and lists of their own.
	Models []Group `yaml:"models,omitempty"`
	Axes   `yaml:",inline"`
	// Cells to change or add, e.g. [{engine: webllm, context: 2048}]. An entry selects cells by values of axes and
	// sets its other values in these cells. If there are no such cells, the entry adds them.
	Include []Entry `yaml:"include,omitempty"`
	// Cells to leave out, e.g. [{engine: webllm, context: 8192}].
	Exclude []Entry `yaml:"exclude,omitempty"`
	// Cell that others are compared with: a value for each axis, e.g. {webllm_version: 0.2.86}. Default: the first
	// value of each axis, and the first native engine.
	Reference Entry `yaml:"reference_cell,omitempty"`
	// How requests arrive, if a launch measures several.
	Traffic    *Traffic `yaml:"traffic,omitempty"`
	Deployment `yaml:",inline"`
	// Limits and tolerances that the run must meet.
	Gate *gates.Gate `yaml:"gate,omitempty"`

	Sections map[string]engine.Section `yaml:"-"` // settings of engines, by section
	kinds    engine.Kinds              // engines that the plan may name
	from     source                    // what it was read from

	DefaultEngines bool   `yaml:"-"` // whether the user named no engines
	ContextNote    string `yaml:"-"` // a comment beside the context in the written plan
}

// What repetitions share. An empty isolation means OfLaunch.
const (
	OfLaunch = "launch" // nothing: a process per repetition
	Reused   = "reused" // a process per cell
	Shared   = "shared" // a process for all cells of an engine in a setup
)

// ScoresNothing reports whether no engine scores outputs after the run. Otherwise those are scored that differ between
// engines, and with parity all.
func (p Plan) ScoresNothing() bool { return p.Parity != nil && !*p.Parity }

// ScoresQuality reports whether an engine that can score scores the text for quality.
func (p Plan) ScoresQuality(engine string) bool { return p.QualityOf == "" || p.QualityOf == engine }

// Checks reports whether engines' scores are checked.
func (p Plan) Checks() bool { return p.Check == nil || *p.Check }

// ChecksOOM reports whether cells that are predicted to run out of memory are skipped.
func (p Plan) ChecksOOM() bool { return p.CheckOOM == nil || *p.CheckOOM }

// Unsaid is the context of a plan that has none. It is chosen when the model is known.
const Unsaid = math.MinInt

// Warmup is what happens before the measurement.
type Warmup struct {
	// Number of warm-up launches of each cell. Figures leave these launches out. Default: 1.
	Launches int `yaml:"launches"`
	// Tokens generated in each launch before it is measured. Default: 8.
	Tokens int `yaml:"tokens"`
}

// Duration is written like 90s or 3m.
type Duration time.Duration

// Parse reads a duration.
func (d *Duration) Parse(text string) error {
	v, err := time.ParseDuration(text)
	*d = Duration(v)
	return err
}

// Wanted describes one.
func (*Duration) Wanted() string { return "a duration such as 90s or 3m" }

// MarshalYAML writes the duration with a unit.
func (d Duration) MarshalYAML() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Parse reads a plan, which may have the sections of these kinds of engines. Errors begin with file and line. The
// plan's default name comes from file.
func Parse(text []byte, file string, kinds ...*engine.Kind) (Plan, error) {
	return document.Read(text, file, "plan", axisOf, func(root *document.Node) (Plan, error) {
		p := Plan{Context: Unsaid, Warmup: Warmup{Launches: 1, Tokens: 8}, Repetitions: 6,
			Timeout: Duration(3 * time.Minute), kinds: kinds, from: source{root: root, file: file}}
		if err := newReader(kinds).axes(root, &p, &p.Axes, &p, ""); err != nil {
			return p, err
		}
		p.complete(root, file)
		return p, root.Placed("", p.blocked(root, p.Validate()))
	})
}

// source is the text of a plan.
type source struct {
	root  *document.Node
	file  string
	moved bool // flags changed the plan since: only include and exclude are certainly the file's
}

// placed adds to an error that begins with a field where that stands in the file that the plan is from.
func (p *Plan) placed(err error) error {
	if err == nil || p.from.root == nil {
		return err
	}
	if text := err.Error(); p.from.moved && !strings.HasPrefix(text, "include") && !strings.HasPrefix(text, "exclude") {
		return err
	}
	return document.In(p.from.file, p.from.root.Placed("", p.blocked(p.from.root, err)))
}

// Moved says that a plan is no longer as in its file.
func (p *Plan) Moved() { p.from.moved = true }

// blocked names a field by its engine's group, if it is not written at the top level.
func (p *Plan) blocked(root *document.Node, err error) error {
	if err == nil {
		return nil
	}
	field, _, _ := strings.Cut(err.Error(), ":")
	field, _, _ = strings.Cut(field, "[")
	for _, k := range p.kinds.Sections() {
		_, said := p.Sections[k.Section][field]
		if said && k.Root && !root.Has(field) {
			return fmt.Errorf("%s.%w", k.Section, err)
		}
	}
	return err
}

// complete sets what a document leaves out, and uses our names of dtypes.
func (p *Plan) complete(root *document.Node, file string) {
	p.DType, p.KVDType = ownDType(p.DType), ownDType(p.KVDType)
	for _, s := range p.scopes() { // which share their lists with the plan
		s.rename()
	}
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".yaml"), ".yml")
	if !root.Has("name") && nameForm.MatchString(name) {
		p.Name = name
	}
	lacks := func(g Group) bool { return len(g.Engines) == 0 }
	if !root.Has("engines") && (len(p.Models) == 0 || slices.ContainsFunc(p.Models, lacks)) {
		p.Engines, p.DefaultEngines = p.kinds.In(""), len(p.Models) == 0
		contained := func(s scope) bool { return s.ContainerName != "" }
		if of := p.kinds.Contained(); len(of) > 0 && slices.ContainsFunc(p.scopes(), contained) {
			p.Engines, p.DefaultEngines = of, false
		}
	}
}

// YAML writes the resolved plan.
func (p Plan) YAML() ([]byte, error) {
	comments := yaml.CommentMap{}
	if p.ContextNote != "" {
		comments["$.context"] = []*yaml.Comment{yaml.LineComment(" " + p.ContextNote)}
	}
	text, err := yaml.MarshalWithOptions(struct {
		Plan `yaml:",inline"`
		More map[string]any `yaml:",inline"`
	}{p, p.written()}, yaml.WithComment(comments))
	if p.Context == Unsaid {
		text = bytes.Replace(text, fmt.Appendf(nil, "\ncontext: %d\n", Unsaid), []byte("\n"), 1)
	}
	if len(p.Temperatures) > 0 {
		text = bytes.Replace(text, []byte("\ntemperature: 0.0\n"), []byte("\n"), 1)
	}
	return text, err
}

// Values are what a plan requests, by field, as text: two plans that measure the same have the same ones.
func (p Plan) Values() (map[string]string, error) {
	text, err := p.YAML()
	var all map[string]any
	if err == nil {
		err = yaml.Unmarshal(text, &all)
	}
	out := map[string]string{}
	delete(all, "name")
	delete(all, "gate")
	values("", all, out)
	return out, err
}

// values adds what stands below a field.
func values(field string, value any, to map[string]string) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for key, below := range v {
			values(strings.TrimPrefix(field+"."+key, "."), below, to)
		}
	default:
		to[field] = fmt.Sprint(v)
	}
}

// Source is where prompts come from that are not texts of the plan. Exactly one of File, Dataset, Trace and
// Conversation is set. Paths are relative to the current folder; the files are read when the plan is resolved.
type Source struct {
	// File whose text is the prompt.
	File string `yaml:"file,omitempty"`
	// File of JSON lines, each with the prompt of a request.
	Dataset string `yaml:"dataset,omitempty"`
	// CSV or JSON file with arrival times and lengths of requests.
	Trace string `yaml:"trace,omitempty"`
	// What the user says in each turn of a conversation.
	Conversation []string `yaml:"conversation,omitempty"`
	// Field of a dataset that has the prompt. Default: a usual name such as prompt.
	Field string `yaml:"field,omitempty"`
	// Lines of a dataset or trace to use. Default: all.
	Limit int `yaml:"limit,omitempty"`
}

// Prompt is a text, or a source of one or several. A text can be written alone.
type Prompt struct {
	Text   string `yaml:"text,omitempty"`
	Source `yaml:",inline"`
}

// Texts returns prompts.
func Texts(texts ...string) (out []Prompt) {
	for _, text := range texts {
		out = append(out, Prompt{Text: text})
	}
	return out
}

// Alone is what a prompt may be written as.
func (p *Prompt) Alone() any { return &p.Text }

// MarshalYAML writes a text alone.
func (p Prompt) MarshalYAML() (any, error) {
	if p.Text != "" {
		return p.Text, nil
	}
	return p.Source, nil
}

// validate returns an error that follows the prompt's field.
func (p Prompt) validate() error {
	set := map[string]bool{"file": p.File != "", "dataset": p.Dataset != "", "trace": p.Trace != "",
		"conversation": p.Conversation != nil}
	kinds := slices.DeleteFunc([]string{"file", "dataset", "trace", "conversation"},
		func(kind string) bool { return !set[kind] })
	switch {
	case reflect.ValueOf(p).IsZero():
		return errors.New(": empty")
	case p.Text != "" && !reflect.ValueOf(p.Source).IsZero():
		return errors.New(": text cannot be combined with other sources; make them separate entries")
	case p.Text != "":
		return nil
	case len(kinds) == 0:
		return errors.New(".file: missing; set text, file, dataset, trace or conversation")
	case len(kinds) > 1:
		return fmt.Errorf(".%s: cannot be combined with %s; remove one", kinds[1], kinds[0])
	case p.Field != "" && p.Dataset == "":
		return fmt.Errorf(".field: requires dataset, not %s", kinds[0])
	case p.Limit != 0 && p.Dataset == "" && p.Trace == "":
		return fmt.Errorf(".limit: requires dataset or trace, not %s", kinds[0])
	case p.Limit < 0 || p.Limit > mostRequests:
		return fmt.Errorf(".limit: %d is out of range; use 1 to %d", p.Limit, mostRequests)
	case p.Conversation != nil && len(p.Conversation) == 0:
		return errors.New(".conversation: empty")
	}
	if i := slices.Index(p.Conversation, ""); i >= 0 {
		return fmt.Errorf(".conversation[%d]: empty", i)
	}
	return nil
}

// Orders of launches.
const (
	Interleaved = "interleaved" // each cell once, then each cell again, so that drift affects all alike; the default
	Shuffled    = "shuffled"    // the same, each time in a random order
	Grouped     = "grouped"     // all repetitions of a cell, one after the other
)

// Percent is written like 5%.
type Percent float64

// Parse reads a percentage.
func (p *Percent) Parse(text string) error {
	number, sign := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if *p = Percent(v); !sign {
		return strconv.ErrSyntax
	}
	return err
}

// Wanted describes one.
func (*Percent) Wanted() string { return "a percentage such as 5%" }

// String writes the number with the sign.
func (p Percent) String() string { return strconv.FormatFloat(float64(p), 'g', -1, 64) + "%" }

// MarshalYAML writes the percentage with its sign.
func (p Percent) MarshalYAML() (any, error) { return p.String(), nil }

// UntilCI repeats cells beyond the plan's repetitions, until the confidence interval of a figure is narrow enough. A
// plan can also give the width alone, e.g. until_ci: 5%.
type UntilCI struct {
	// Maximum distance of the 95% confidence interval from the median, as a share of the median, e.g. 5%.
	Width Percent `yaml:"width"`
	// Figure whose interval is checked. Default: decode_tps.
	Figure string `yaml:"figure,omitempty"`
	// Maximum launches of a cell. Default: 5 times repetitions.
	Most int `yaml:"max_repetitions,omitempty"`
}

// Alone is what it may be written as.
func (u *UntilCI) Alone() any { return &u.Width }

// MarshalYAML writes the width alone if nothing else is set.
func (u UntilCI) MarshalYAML() (any, error) {
	if u.Figure == "" && u.Most == 0 {
		return u.Width, nil
	}
	type plain UntilCI
	return plain(u), nil
}

// DefaultUntil is the default figure of UntilCI.
const DefaultUntil = "decode_tps"

// MostRepetitions is the maximum number of repetitions of a cell.
func (p Plan) MostRepetitions() int {
	if p.UntilCI == nil {
		return p.Repetitions
	}
	return cmp.Or(p.UntilCI.Most, 5*p.Repetitions)
}

func (u *UntilCI) validate(p Plan) error {
	switch {
	case u == nil:
		return nil
	case !(u.Width > 0 && u.Width <= 100):
		return fmt.Errorf("until_ci: %s is out of range; use more than 0%% and at most 100%%", u.Width)
	case u.Most < 0 || u.Most > mostRepetitions:
		return fmt.Errorf("until_ci.max_repetitions: %d is out of range; use at most %d", u.Most, mostRepetitions)
	case u.Most > 0 && u.Most < p.Repetitions:
		return fmt.Errorf("until_ci.max_repetitions: %d is less than repetitions: %d", u.Most, p.Repetitions)
	}
	if _, err := figure.Find(cmp.Or(u.Figure, DefaultUntil)); err != nil {
		return fmt.Errorf("until_ci.figure: %w", err)
	}
	return nil
}
