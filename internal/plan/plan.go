// Package plan reads plans: which engines run which model on which prompts, how often.
//
// It knows nothing of engines or model files but their names; whoever builds those says what it can't find.
package plan

import (
	"errors"
	"fmt"
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
	Model       string   `yaml:"model"` // tiny, or the path of a GGUF file
	Prompts     []string `yaml:"prompts"`
	MaxTokens   int      `yaml:"max_tokens"`
	Temperature float64  `yaml:"temperature"`
	Context     int      `yaml:"context"`
	Warmup      Warmup   `yaml:"warmup"`
	Repetitions int      `yaml:"repetitions"`
	Timeout     Duration `yaml:"timeout"`
	Thread      string   `yaml:"thread,omitempty"`   // where in a page an engine runs: page, worker; empty: page
	Watchdog    Duration `yaml:"watchdog,omitempty"` // how long that thread may give no sign of life; 0: the engine's own
}

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
		return Plan{}, fault.Wrap(fault.Usage, err, "", "%s", file)
	}
	return p, nil
}

// decode survives the parser, which panics on some documents that nobody writes by hand, such as a list with an unknown tag.
func decode(text []byte) (p Plan, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("this YAML can't be read: write plain lists and values, without tags")
		}
	}()
	err = yaml.UnmarshalWithOptions(text, &p, yaml.Strict())
	return p, err
}

// yamlFault makes one line of the parser's answer, which draws the source beneath it.
func yamlFault(err error, file string) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		return fault.New(fault.Usage, "", "%s line %d: %s", file, at.GetToken().Position.Line, at.GetMessage())
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return fault.New(fault.Usage, "", "%s: %s", file, first)
}

// nameForm is what a plan may be called: its name becomes a folder's.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Validate says which field is wrong and what would be right.
func (p Plan) Validate() error {
	for _, c := range []struct {
		wrong bool
		text  string
	}{
		{!nameForm.MatchString(p.Name), fmt.Sprintf("name: %q becomes a folder's name: up to 100 letters, digits, dots, dashes and underscores", p.Name)},
		{len(p.Engines) == 0, "engines: none is named"},
		{p.Model == "", "model: none is named; `tiny` needs no file"},
		{len(p.Prompts) == 0, "prompts: there is none"},
		{slices.Contains(p.Prompts, ""), "prompts: one is empty"},
		{p.MaxTokens < 1, fmt.Sprintf("max_tokens: %d, at least 1 is needed", p.MaxTokens)},
		{p.Temperature != 0, fmt.Sprintf("temperature: %g, only 0 (greedy) can be compared token by token so far", p.Temperature)},
		{p.Context < 2, fmt.Sprintf("context: %d, at least 2 is needed", p.Context)},
		{p.Repetitions < 1, fmt.Sprintf("repetitions: %d, at least 1 is needed", p.Repetitions)},
		{p.Warmup.Launches < 0, fmt.Sprintf("warmup.launches: %d is negative", p.Warmup.Launches)},
		{p.Warmup.Tokens < 1, fmt.Sprintf("warmup.tokens: %d, at least 1 is needed", p.Warmup.Tokens)},
		{p.Timeout <= 0, "timeout: a duration such as 3m is needed"},
		{!slices.Contains([]string{"", "page", "worker"}, p.Thread), fmt.Sprintf("thread: %q, use page or worker", p.Thread)},
		{p.Watchdog != 0 && time.Duration(p.Watchdog) < time.Second, fmt.Sprintf("watchdog: %s, at least 1s is needed", time.Duration(p.Watchdog))},
	} {
		if c.wrong {
			return errors.New(c.text)
		}
	}
	return twice(p.Engines)
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
func (p Plan) YAML() ([]byte, error) { return yaml.Marshal(p) }
