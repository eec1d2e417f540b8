// Package plan reads plans: which engines run which model on which prompts, how often.
//
// It knows nothing of engines or model files but their names; whoever builds those says what it can't find.
package plan

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/gates"
)

// Plan is what to run. Every combination of engine and prompt is a cell.
type Plan struct {
	Name    string   `yaml:"name"`
	Engines []string `yaml:"engines,flow"`
	// tiny, the path of a GGUF file or of a package, an id of WebLLM's catalogue
	Model       string   `yaml:"model,omitempty"`
	Prompts     []string `yaml:"prompts,omitempty"`
	Sources     []Source `yaml:"-"` // prompts that are not texts; written among prompts, after them
	MaxTokens   int      `yaml:"max_tokens,omitempty"`
	Temperature float64  `yaml:"temperature"`
	Context     int      `yaml:"context"` // in tokens; 0: the model's own; Unsaid where the plan has none
	Warmup      Warmup   `yaml:"warmup"`
	Repetitions int      `yaml:"repetitions"`
	Isolation   string   `yaml:"isolation,omitempty"`    // OfLaunch, Reused, Shared; empty: OfLaunch
	Cache       string   `yaml:"cache,omitempty"`        // of prompts, in engines: off, on; empty: off
	Timeout     Duration `yaml:"timeout"`                // of one launch
	CellTimeout Duration `yaml:"cell_timeout,omitempty"` // of all launches of a cell; 0: none
	RunTimeout  Duration `yaml:"run_timeout,omitempty"`  // of the run; 0: none
	Order       string   `yaml:"order,omitempty"`        // Interleaved, Shuffled, Grouped; empty: Interleaved
	Seed        uint64   `yaml:"seed,omitempty"`         // of an order and of traffic
	CoolDown    Duration `yaml:"cool_down,omitempty"`    // between launches
	UntilCI     *UntilCI `yaml:"until_ci,omitempty"`
	// how long an engine at work may give no sign of life; 0: its own
	Watchdog Duration `yaml:"watchdog,omitempty"`
	CheckOOM *bool    `yaml:"check_oom,omitempty"` // refuse what would run out of memory; nil: true
	// have engines score one text, when all is measured; nil: where their own texts part
	Parity    *bool  `yaml:"parity,omitempty"`
	Reference string `yaml:"reference,omitempty"` // the engine whose text that is; empty: the first native one
	// How engines compute, and with which parts; empty, or 0: what the program takes of itself.
	DType   string `yaml:"dtype,omitempty"`
	Threads int    `yaml:"threads,omitempty"` // of engines that have them
	// Versions are those of engines that have several, by their axis.
	Versions map[string]string `yaml:"-"`

	KVDType string `yaml:"kv_cache_dtype,omitempty"` // f32, f16, q8_0 ...; empty: the engine's own
	Start   string `yaml:"start,omitempty"`          // record.ColdStart, record.WarmStart; empty: as the machine has it
	// of a setup: requests that an engine must be able to do at once; 0: one
	Slots int `yaml:"-"`

	Models     []Group `yaml:"models,omitempty"` // in place of Model
	Axes       `yaml:",inline"`
	Include    []Cells  `yaml:"include,omitempty"`
	Exclude    []Cells  `yaml:"exclude,omitempty"`
	Traffic    *Traffic `yaml:"traffic,omitempty"`
	Deployment `yaml:",inline"`
	Gate       *gates.Gate `yaml:"gate,omitempty"`

	// Sections are what it says to engines, by the names of the sections.
	Sections map[string]engine.Section `yaml:"-"`
	kinds    engine.Kinds              // that it may name

	// DefaultEngines says that the user named none; it is read from nowhere.
	DefaultEngines bool `yaml:"-"`

	// ContextNote is said beside the context where the plan is written; it is read from nowhere.
	ContextNote string `yaml:"-"`
}

// What a repetition has of its own, as a plan says it.
const (
	// the engine is launched and the model loaded for each, which is what a plan that says nothing gets
	OfLaunch = "launch"
	Reused   = "reused" // one launch for all of a cell's repetitions, with its model
	Shared   = "shared" // one launch for all cells that an engine has in a setup, with their model
)

// Whether engines are asked, when all is measured, what they think of one and the same text.
const (
	// where their own texts part, which is what a plan that says nothing gets: it tells how near they were
	ScoreDiffering = iota
	ScoreAll
	ScoreNothing
)

// Scores tells which prompts' texts are scored.
func (p Plan) Scores() int {
	switch {
	case p.Parity == nil:
		return ScoreDiffering
	case *p.Parity:
		return ScoreAll
	}
	return ScoreNothing
}

// ChecksOOM tells whether cells that would run out of memory are refused: they are unless the plan says otherwise.
func (p Plan) ChecksOOM() bool { return p.CheckOOM == nil || *p.CheckOOM }

// Unsaid is the context of a plan that says none: whoever knows the model chooses.
const Unsaid = math.MinInt

// Warmup is what comes before anything is counted.
type Warmup struct {
	Launches int `yaml:"launches"`
	Tokens   int `yaml:"tokens"`
}

// Duration is written as in 90s or 3m.
type Duration time.Duration

// read takes a duration with its unit.
func (d *Duration) read(_ *reader, n ast.Node, path string) error {
	text, ok := single(n)
	if !ok {
		return mistyped(n, path, "a duration such as 90s or 3m")
	}
	v, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil {
		return wrong(n, path, "%.60q is not a duration such as 90s or 3m", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML writes the duration with its unit.
func (d Duration) MarshalYAML() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Parse reads a plan, which may have the sections of these kinds of engines. file names it in errors, which carry the
// line, and gives it a name where it has none.
func Parse(text []byte, file string, kinds ...*engine.Kind) (Plan, error) {
	d := document{Plan: Plan{Context: Unsaid, Warmup: Warmup{Launches: 1, Tokens: 8}, Repetitions: 6,
		Timeout: Duration(3 * time.Minute)}}
	d.kinds = kinds
	p, err := parse(text, file, &d)
	if err != nil {
		return Plan{}, yamlFault(err, file)
	}
	return p, nil
}

func parse(text []byte, file string, d *document) (p Plan, err error) {
	defer survive(&err)
	r, err := open(text, "plan")
	if err != nil {
		return p, err
	}
	r.kinds = d.kinds
	if err := r.value(r.root, reflect.ValueOf(d).Elem(), ""); err != nil {
		return p, err
	}
	p = d.plan()
	p.Sections = r.sections
	if !r.has("name") {
		p.Name = fileName(file)
	}
	lacks := func(g Group) bool { return len(g.Engines) == 0 }
	if !r.has("engines") && (len(p.Models) == 0 || slices.ContainsFunc(p.Models, lacks)) {
		p.Engines, p.DefaultEngines = p.kinds.Defaults(), len(p.Models) == 0
	}
	if err := p.Validate(); err != nil {
		at, text := r.find(r.root, err.Error())
		return p, wrong(at, "", "%s", text)
	}
	return p, nil
}

// document is a plan as it is written.
type document struct {
	Plan    `yaml:",inline"`
	Prompts prompts `yaml:"prompts"`
}

// plan is what was meant, in the words of here.
func (d *document) plan() Plan {
	p := d.Plan
	p.Prompts, p.Sources = d.Prompts.texts, d.Prompts.sources
	p.DType, p.KVDType = dtype(p.DType), dtype(p.KVDType)
	p.Axes.rename()
	for i := range p.Models {
		p.Models[i].rename()
	}
	return p
}

// fileName makes a plan's name of its file's; empty where that can't be one.
func fileName(file string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".yaml"), ".yml")
	if !nameForm.MatchString(name) {
		return ""
	}
	return name
}

// yamlFault makes one line of the parser's answer, which draws the source beneath it.
func yamlFault(err error, file string) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		what, _, _ := strings.Cut(at.GetMessage(), "\n")
		return fault.New(fault.Usage, "", "%s line %d: %s", file, at.GetToken().Position.Line, what)
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return fault.New(fault.Usage, "", "%s: %s", file, first)
}

// YAML writes the plan as it was resolved.
func (p Plan) YAML() ([]byte, error) {
	more, context := p.written(), p.Context
	if len(p.Sources) > 0 {
		var asked []any
		for _, text := range p.Prompts {
			asked = append(asked, text)
		}
		for _, s := range p.Sources {
			asked = append(asked, s)
		}
		p.Prompts, more["prompts"] = nil, asked
	}
	comments := yaml.CommentMap{}
	if p.ContextNote != "" {
		comments["$.context"] = []*yaml.Comment{yaml.LineComment(" " + p.ContextNote)}
	}
	text, err := appended(p, more, yaml.WithComment(comments))
	if context == Unsaid { // which nobody has said: 0 says something
		text = bytes.Replace(text, fmt.Appendf(nil, "\ncontext: %d\n", Unsaid), []byte("\n"), 1)
	}
	return text, err
}

// appended writes a group of settings, with more of them behind.
func appended(v any, more map[string]any, options ...yaml.EncodeOption) ([]byte, error) {
	text, err := yaml.MarshalWithOptions(v, options...)
	if len(more) == 0 || err != nil {
		return text, err
	}
	rest, err := yaml.Marshal(more)
	return append(text, rest...), err
}
