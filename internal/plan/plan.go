// Package plan reads plans: which engines run which model on which prompts, how often.
//
// It knows nothing of engines or model files but their names; whoever builds those says what it can't find.
package plan

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"llmparity/internal/fault"
)

// Plan is what to run. Every combination of engine and prompt is a cell.
type Plan struct {
	Name        string   `yaml:"name"`
	Engines     []string `yaml:"engines,flow"`
	Model       string   `yaml:"model,omitempty"` // tiny, the path of a GGUF file or of a package, an id of WebLLM's catalogue
	Prompts     []string `yaml:"prompts"`
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
	Thread      string   `yaml:"thread,omitempty"`    // where in a page an engine runs: page, worker; empty: page
	Watchdog    Duration `yaml:"watchdog,omitempty"`  // how long that thread may give no sign of life; 0: the engine's own
	CheckOOM    *bool    `yaml:"check_oom,omitempty"` // refuse what would run out of memory; nil: true
	Parity      *bool    `yaml:"parity,omitempty"`    // have engines score one text, when all is measured; nil: where their own texts part
	Reference   string   `yaml:"reference,omitempty"` // the engine whose text that is; empty: the first native one
	// How engines compute, and with which parts; empty, or 0: what the program takes of itself.
	Adapter       string `yaml:"adapter,omitempty"`
	DType         string `yaml:"dtype,omitempty"`
	Kernels       string `yaml:"kernels,omitempty"`
	Sort          string `yaml:"sort,omitempty"`
	ModelLib      string `yaml:"model_lib,omitempty"` // a file or an address, in place of a library of those kernels
	WebLLMVersion string `yaml:"webllm_version,omitempty"`
	WebLLMBundle  string `yaml:"webllm_bundle,omitempty"` // a file, in place of a version
	Threads       int    `yaml:"threads,omitempty"`       // llama-server's

	KVDType string `yaml:"kv_cache_dtype,omitempty"` // f32, f16, q8_0 ...; empty: the engine's own
	Start   string `yaml:"start,omitempty"`          // record.ColdStart, record.WarmStart; empty: as the machine has it
	Slots   int    `yaml:"-"`                        // of a setup: requests that an engine must be able to do at once; 0: one

	Models     []Group `yaml:"models,omitempty"` // in place of Model
	Axes       `yaml:",inline"`
	Include    []Cells  `yaml:"include,omitempty"`
	Exclude    []Cells  `yaml:"exclude,omitempty"`
	Traffic    *Traffic `yaml:"traffic,omitempty"`
	Deployment `yaml:",inline"`

	OpenAI   *OpenAI   `yaml:"openai,omitempty"`
	Ollama   *Ollama   `yaml:"ollama,omitempty"`
	LlamaCpp *LlamaCpp `yaml:"llamacpp,omitempty"`

	// ContextNote is said beside the context where the plan is written; it is read from nowhere.
	ContextNote string `yaml:"-"`
}

// Unsaid is the context of a plan that says none: whoever knows the model chooses.
const Unsaid = math.MinInt

// Warmup is what comes before anything is counted.
type Warmup struct {
	Launches int `yaml:"launches"`
	Tokens   int `yaml:"tokens"`
}

// Duration is written as in 90s or 3m.
type Duration time.Duration

// UnmarshalYAML reads a duration with its unit.
func (d *Duration) UnmarshalYAML(text []byte) error {
	v, err := time.ParseDuration(strings.Trim(strings.TrimSpace(string(text)), `"'`))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 90s or 3m", strings.TrimSpace(string(text)))
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML writes the duration with its unit.
func (d Duration) MarshalYAML() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Parse reads a plan. file names it in errors, which carry the line.
func Parse(text []byte, file string) (Plan, error) {
	p, err := decode(text)
	if err != nil {
		return Plan{}, yamlFault(err, file)
	}
	if err := p.Validate(); err != nil {
		return Plan{}, fault.Wrap(fault.Usage, err, "", "%s", file+line(text, err))
	}
	return p, nil
}

// line is where the field is that an error of Validate begins with; empty where it isn't there, or not on a line of its own.
func line(text []byte, err error) string {
	field, _, _ := strings.Cut(err.Error(), ":")
	parts := strings.Split(field, ".")
	form := `(?m)^` + strings.Repeat(`[ \t]+`, len(parts)-1) + regexp.QuoteMeta(parts[len(parts)-1]) + `[ \t]*:`
	at := regexp.MustCompile(form).FindIndex(text)
	if at == nil {
		return ""
	}
	return fmt.Sprintf(" line %d", 1+strings.Count(string(text[:at[0]]), "\n"))
}

// decode survives the parser, which panics on some documents that nobody writes by hand, such as a list with an unknown tag.
func decode(text []byte) (p Plan, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("this YAML can't be read: write plain lists and values, without tags")
		}
	}()
	p.Context = Unsaid
	err = yaml.UnmarshalWithOptions(text, &p, yaml.Strict())
	return p, err
}

// yamlFault makes one line of the parser's answer, which draws the source beneath it.
func yamlFault(err error, file string) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		what := at.GetMessage()
		var kind *yaml.TypeError
		if errors.As(err, &kind) && kind.DstType != nil {
			what = fmt.Sprintf("%q stands where %s is wanted", kind.Token.Value, wanted(kind.DstType))
			if strings.Contains("[{-:", kind.Token.Value) { // how a list or a group begins
				what = fmt.Sprintf("%s is wanted", wanted(kind.DstType))
			}
		}
		return fault.New(fault.Usage, "", "%s line %d: %s", file, at.GetToken().Position.Line, what)
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return fault.New(fault.Usage, "", "%s: %s", file, first)
}

// wanted says of a field's type what may stand there.
func wanted(t reflect.Type) string {
	switch k := t.Kind(); {
	case k == reflect.Pointer:
		return wanted(t.Elem())
	case k == reflect.Bool:
		return "true or false"
	case k >= reflect.Int && k <= reflect.Uint64:
		return "a whole number"
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number"
	case k == reflect.String:
		return "a text"
	case k == reflect.Slice:
		return "a list"
	}
	return "a group of settings"
}

// nameForm is what a plan may be called: its name becomes a folder's.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Validate says which field is wrong and what would be right.
func (p Plan) Validate() error {
	for _, c := range []struct {
		wrong bool
		text  string
	}{
		{p.Name == "", "name is missing: it becomes the name of the run's folder"},
		{!nameForm.MatchString(p.Name),
			fmt.Sprintf("name: %q becomes a folder's name: up to 100 letters, digits, dots, dashes and underscores", p.Name)},
		{len(p.Engines) == 0, "engines: none is named"},
		{p.Model == "", "model: none is named; `tiny` needs no file"},
		{len(p.Prompts) == 0, "prompts: there is none"},
		{slices.Contains(p.Prompts, ""), "prompts: one is empty"},
		{p.MaxTokens < 1, fmt.Sprintf("max_tokens: %d, at least 1 is needed", p.MaxTokens)},
		{p.Temperature != 0, fmt.Sprintf("temperature: %g, only 0 (greedy) can be compared token by token so far", p.Temperature)},
		{p.Context < 2 && p.Context != 0 && p.Context != Unsaid,
			fmt.Sprintf("context: %d, at least 2 is needed, or 0 for the model's own", p.Context)},
		{p.Repetitions < 1, fmt.Sprintf("repetitions: %d, at least 1 is needed", p.Repetitions)},
		{p.Warmup.Launches < 0, fmt.Sprintf("warmup.launches: %d is negative", p.Warmup.Launches)},
		{p.Warmup.Tokens < 1, fmt.Sprintf("warmup.tokens: %d, at least 1 is needed", p.Warmup.Tokens)},
		{p.Timeout <= 0, "timeout: a duration such as 3m is needed"},
		{p.Watchdog != 0 && time.Duration(p.Watchdog) < time.Second,
			fmt.Sprintf("watchdog: %s, at least 1s is needed", time.Duration(p.Watchdog))},
	} {
		if c.wrong {
			return errors.New(c.text)
		}
	}
	if err := p.validateParts(); err != nil {
		return err
	}
	if err := p.LlamaCpp.validate(); err != nil {
		return err
	}
	if err := p.Ollama.validate(time.Duration(p.Timeout)); err != nil {
		return err
	}
	if err := p.OpenAI.validate(); err != nil {
		return err
	}
	if p.Reference != "" && !slices.Contains(p.Engines, p.Reference) {
		return fmt.Errorf("reference: %q is none of the engines (%s)", p.Reference, strings.Join(p.Engines, ", "))
	}
	return twice(p.Engines)
}

// validateParts looks at what is said of how engines compute.
func (p Plan) validateParts() error {
	for _, c := range []struct {
		field, value string
		known        []string
	}{
		{"isolation", p.Isolation, []string{OfLaunch, Reused}},
		{"thread", p.Thread, []string{"page", "worker"}},
		{"adapter", p.Adapter, []string{"auto", "gpu", "swiftshader"}},
		{"dtype", p.DType, []string{"f32", "f16"}},
		{"kernels", p.Kernels, []string{"auto", "software", "gpu"}},
		{"sort", p.Sort, []string{"partial", "full"}},
	} {
		if last := len(c.known) - 1; c.value != "" && !slices.Contains(c.known, c.value) {
			return fmt.Errorf("%s: %q, use %s or %s", c.field, c.value, strings.Join(c.known[:last], ", "), c.known[last])
		}
	}
	switch {
	case p.Threads < 0:
		return fmt.Errorf("threads: %d, at least 1 is needed", p.Threads)
	case p.WebLLMVersion != "" && p.WebLLMBundle != "":
		return errors.New("webllm_bundle: webllm_version says which WebLLM runs too; choose one")
	case p.ModelLib != "" && p.Kernels+p.Sort != "":
		return errors.New("model_lib: it names a library that is compiled, and kernels and sort say how one is; choose one")
	}
	return nil
}

func twice(engines []string) error {
	for i, e := range engines {
		if slices.Contains(engines[:i], e) {
			return fmt.Errorf("engines: %s is named twice", e)
		}
	}
	return nil
}

// YAML writes the plan as it was resolved.
func (p Plan) YAML() ([]byte, error) {
	comments := yaml.CommentMap{}
	if p.ContextNote != "" {
		comments["$.context"] = []*yaml.Comment{yaml.LineComment(" " + p.ContextNote)}
	}
	return yaml.MarshalWithOptions(p, yaml.WithComment(comments))
}
