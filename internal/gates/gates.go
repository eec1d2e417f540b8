// Package gates has what a gate checks: limits of figures, tolerances against a baseline run, and whether engines must
// generate the same tokens. It reads flags and writes YAML.
//
// It judges nothing, which package compare/gate does, and it reads no YAML, which package gatefile does.
package gates

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/figure"
)

// Level is what a failed check does to the gate.
type Level string

// The levels.
const (
	Error Level = "error" // the gate fails
	Warn  Level = "warn"  // the gate warns
	Off   Level = "off"   // nothing: the check is left out
)

// Gate is a plan's section `gate`, or a file of its own: limits of figures, how much worse they may be than in a
// baseline run, and whether engines must generate the same output. A check without a level has the gate's, whose
// default is error.
//
//	gate:
//	  peak_pss_mb: {max: 900}
//	  decode_tps: [{min: 20, engine: webllm}, {min: 50, engine: llamacpp, level: warn}]
//	  vs_baseline: {decode_tps: -5%, peak_pss_mb: +3%, ttft_ms: {change: +10%, level: warn}}
//	  parity: {min_agreement: 100%}
//	  scores: {max_difference: 0.01}
type Gate struct {
	Level  Level `yaml:"level"`  // of checks that have none of their own
	Failed Level `yaml:"failed"` // of launches that failed; empty: error
	Gone   Level `yaml:"gone"`   // of cells that the baseline run has and the run lacks; empty: error
	// Inconclusive says what checks that could not be decided do to the gate: error makes it inconclusive, with warn
	// it passes with a warning, with off it passes; empty: error.
	Inconclusive Level    `yaml:"inconclusive"`
	NoBaseline   string   `yaml:"no_baseline"` // BaselineOptional: pass without one; empty: inconclusive
	UnderTest    []string // what may differ from the baseline run; empty: everything but the model and the machine
	Detect       float64  // a share: what passing checks must rule out; 0: the figure's
	Baseline     string   `yaml:"baseline"` // by its name in the store, or a run's folder; empty: none
	Limits       []Limit
	Changes      []Change
	Parity       *Parity `yaml:"parity"` // nil: not checked
	Scores       *Scores `yaml:"scores"` // nil: as rounding explains, where scores were checked
	Default      bool    `yaml:"-"`      // Changes are those of Against
}

// Against is the gate for a comparison with a baseline run: g, which may be nil. If none of its checks compares with
// the baseline run, it gets the default tolerances: otherwise the gate would pass without a comparison.
func (g *Gate) Against() *Gate {
	out := Gate{}
	if g != nil {
		out = *g
	}
	if len(out.Changes) == 0 && (out.Parity == nil || out.Parity.With != TheBaseline) {
		out.Default = true
		out.Changes = []Change{{Figure: figure.Of(figure.DecodeTPS), Change: -0.05},
			{Figure: figure.Of(figure.PeakPSS), Change: 0.03},
			{Figure: figure.Of(figure.TTFT), Change: 0.10, Level: Warn}}
	}
	return &out
}

// Tolerances are how much worse than the baseline run figures may be, in words.
func (g *Gate) Tolerances() string {
	var all []string
	for _, c := range g.Changes {
		text := c.Figure.Asked() + " " + signed(c.Change)
		if g.LevelOf(c.Level) == Warn {
			text += " (can only warn)"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// Scope restricts a check to cells with one of these values of each axis, by the axis's name; empty: all cells. A
// prompt is its number in the plan, or its text.
type Scope map[string][]string

// Limit bounds a figure.
type Limit struct {
	Figure *figure.Row `yaml:"-"`
	Min    *float64    `yaml:"min,omitempty"`
	Max    *float64    `yaml:"max,omitempty"`
	Change string      `yaml:"vs_baseline,omitempty"` // read as a Change of the figure
	Scope  Scope       `yaml:",inline"`
	Level  Level       `yaml:"level,omitempty"`
}

// Wanted describes a limit for the error about another value.
func (*Limit) Wanted() string { return "a limit such as {max: 900}" }

// Change says how much worse a figure may be than in the baseline run.
type Change struct {
	Figure *figure.Row
	Change float64 // the tolerance, a share: -0.05 lets it fall by 5%, 0.03 lets it rise by 3%
	Detect float64 // as the gate's, for this figure; 0: the gate's
	Scope  Scope
	Level  Level
}

// What outputs are compared with.
const (
	OtherEngines = "engines"  // those of the run's other engines, for the same model and prompt
	TheBaseline  = "baseline" // those of the same cell in the baseline run
)

// Parity says how much of two outputs must be the same.
type Parity struct {
	MinAgreement Share  `yaml:"min_agreement,omitempty"`    // share of tokens before the first difference; 1: all
	FirstDiffers int    `yaml:"first_divergence,omitempty"` // least position of the first different token; 0: any
	With         string `yaml:"with,omitempty"`             // OtherEngines, TheBaseline; empty: OtherEngines
	Scope        Scope  `yaml:",inline"`
	Level        Level  `yaml:"level,omitempty"`
}

// Wanted describes the section for the error about another value.
func (*Parity) Wanted() string { return "a group such as {min_agreement: 100%}" }

// Scores says how far apart the scores of a score check may be.
type Scores struct {
	// Max is the largest difference of log-probabilities; 0: what rounding explains.
	Max   float64 `yaml:"max_difference,omitempty"`
	Scope Scope   `yaml:",inline"`
	Level Level   `yaml:"level,omitempty"`
}

// Wanted describes the section for the error about another value.
func (*Scores) Wanted() string { return "a group such as {max_difference: 0.01}" }

// Valid refuses a limit that no scores can keep; nil is valid.
func (s *Scores) Valid() error {
	if s == nil {
		return nil
	}
	if s.Max < 0 || math.IsNaN(s.Max) || math.IsInf(s.Max, 0) {
		return fmt.Errorf("max_difference: %s, give a number of nats above 0", decimal(s.Max))
	}
	return s.Level.Valid()
}

// Share is written like 99.5%.
type Share float64

// Parse reads a share.
func (s *Share) Parse(text string) error {
	v, err := ParseShare(text)
	*s = Share(v)
	return err
}

// Wanted describes a share for the error about another value.
func (*Share) Wanted() string { return "a percentage; use one such as -5%, +3% or 100%" }

// MarshalYAML writes the share with its sign.
func (s Share) MarshalYAML() (any, error) { return share(float64(s)), nil }

// BaselineOptional is the value of no_baseline that lets a gate pass where there is no baseline run yet.
const BaselineOptional = "ok"

// What may be under test: what may differ from the baseline run.
const (
	TestEngine   = "engine"   // versions and builds of engines
	TestLibrary  = "library"  // WebLLM's model library, with its kernels
	TestKernels  = "kernels"  // the kernels in it
	TestBrowser  = "browser"  // its version and build
	TestModel    = "model"    // the model, its file and dtype
	TestSettings = "settings" // what engines are started with
	TestAll      = "all"      // all but the model and the machine
	// TestSystem is the versions of the OS, of drivers and of llmparity. They are under test with all only: under_test
	// has no name for them.
	TestSystem = "system"
)

// UnderTests lists them.
func UnderTests() []string {
	return []string{TestEngine, TestLibrary, TestKernels, TestBrowser, TestModel, TestSettings, TestAll}
}

// The smallest regressions, as shares, that a passing check must rule out by default.
const (
	DetectTime   = 0.15
	DetectMemory = 0.05
)

// DetectOf is the smallest regression, as a signed share of the baseline, that a passing check must rule out: never
// less than its tolerance.
func (g *Gate) DetectOf(c Change) float64 {
	size := cmp.Or(c.Detect, g.Detect, DetectTime)
	if strings.HasSuffix(c.Figure.Column.Name, "_mb") {
		size = cmp.Or(c.Detect, g.Detect, DetectMemory)
	}
	size = max(size, math.Abs(c.Change))
	if c.Figure.Better == figure.Higher {
		return -size
	}
	return size
}

// Tests reports whether something may differ from the baseline run.
func (g *Gate) Tests(what string) bool {
	if len(g.UnderTest) == 0 {
		return what != TestModel
	}
	return slices.ContainsFunc(g.UnderTest, func(t string) bool {
		return t == what || t == TestLibrary && what == TestKernels || t == TestAll && what != TestModel
	})
}

// Empty reports whether the gate only checks that launches succeeded.
func (g *Gate) Empty() bool {
	return g == nil || len(g.Limits)+len(g.Changes) == 0 && g.Parity == nil && g.Scores == nil
}

// LevelOf is a check's own level, else the gate's.
func (g *Gate) LevelOf(own Level) Level { return cmp.Or(own, g.Level, Error) }

// Validate is Valid for a plan, where the fields are those of gate.
func (g *Gate) Validate() error {
	if g == nil {
		return nil
	}
	if err := g.Valid(); err != nil {
		return fmt.Errorf("gate.%w", err)
	}
	return nil
}

// Valid returns an error that begins with the field.
func (g *Gate) Valid() error {
	for _, c := range []struct {
		field string
		err   error
	}{{"level", g.Level.Valid()}, {"failed", g.Failed.Valid()}, {"gone", g.Gone.Valid()},
		{"inconclusive", g.Inconclusive.Valid()}, {"detect", validDetect(g.Detect)}} {
		if c.err != nil {
			return fmt.Errorf("%s: %w", c.field, c.err)
		}
	}
	if g.NoBaseline != "" && g.NoBaseline != BaselineOptional {
		return fmt.Errorf("no_baseline: %q, use %s, or leave it out", g.NoBaseline, BaselineOptional)
	}
	for _, t := range g.UnderTest {
		if !slices.Contains(UnderTests(), t) {
			return fmt.Errorf("under_test: %q, use %s", t, strings.Join(UnderTests(), ", "))
		}
	}
	for _, l := range g.Limits {
		if err := l.Valid(); err != nil {
			return fmt.Errorf("%s: %w", l.Figure.Asked(), err)
		}
	}
	for _, c := range g.Changes {
		if err := c.Valid(); err != nil {
			return fmt.Errorf("vs_baseline.%s: %w", c.Figure.Asked(), err)
		}
	}
	if err := g.Parity.Valid(); err != nil {
		return fmt.Errorf("parity: %w", err)
	}
	if err := g.Scores.Valid(); err != nil {
		return fmt.Errorf("scores: %w", err)
	}
	return nil
}

// Valid refuses a text that is none of the levels; it may be empty.
func (l Level) Valid() error {
	if l == "" || l == Error || l == Warn || l == Off {
		return nil
	}
	return fmt.Errorf("%q, use error, warn or off", string(l))
}

func validDetect(v float64) error {
	if v < 0 || v >= 1 {
		return fmt.Errorf("%s, give a share from more than 0%% to less than 100%%", share(v))
	}
	return nil
}

// Valid refuses a limit without a bound, or whose bounds allow no value.
func (l Limit) Valid() error {
	switch {
	case l.Min == nil && l.Max == nil && l.Change == "":
		return errors.New("there is no limit: give max or min")
	case l.Min != nil && l.Max != nil && *l.Min > *l.Max:
		return fmt.Errorf("min is %s and max is %s: nothing lies between them", decimal(*l.Min), decimal(*l.Max))
	}
	return l.Level.Valid()
}

// Valid refuses a tolerance of the wrong sign, or one that allows anything.
func (c Change) Valid() error {
	switch {
	case c.Figure.Better == figure.Neither:
		return errors.New("neither more nor less of this figure is better; use min or max instead")
	case c.Figure.Better == figure.Higher && c.Change > 0:
		return fmt.Errorf("lower is worse; use -%s to allow that decrease", share(c.Change))
	case c.Figure.Better == figure.Lower && c.Change < 0:
		return fmt.Errorf("higher is worse; use +%s to allow that increase", share(-c.Change))
	case c.Change <= -1:
		return fmt.Errorf("%s allows a decrease to zero", share(c.Change))
	}
	if err := validDetect(c.Detect); err != nil {
		return fmt.Errorf("detect: %w", err)
	}
	return c.Level.Valid()
}

// Valid refuses a check without a bound, or with an impossible one; nil is valid.
func (p *Parity) Valid() error {
	switch {
	case p == nil:
		return nil
	case p.MinAgreement < 0 || p.MinAgreement > 1:
		return fmt.Errorf("min_agreement: %s, give a share from 0%% to 100%%", share(float64(p.MinAgreement)))
	case p.FirstDiffers < 0:
		return fmt.Errorf("first_divergence: %d, tokens are numbered from 1", p.FirstDiffers)
	case p.MinAgreement == 0 && p.FirstDiffers == 0:
		return errors.New("no check; give min_agreement or first_divergence")
	case p.With != "" && p.With != OtherEngines && p.With != TheBaseline:
		return fmt.Errorf("with: %q, use engines or baseline", p.With)
	}
	return p.Level.Valid()
}

// ParseShare reads a percentage as a share: -5%, +3%, 0%.
func ParseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !percent || err != nil || math.IsNaN(v) || math.IsInf(v, 0) || math.Abs(v) > 1e6 {
		return 0, fmt.Errorf("%q is not a percentage; use one such as -5%%, +3%% or 100%%", text)
	}
	return math.Round(v*1e6) / 1e8, nil // the share that a decimal number of percent stands for
}

// ParseRegression reads the regression that passing checks must rule out, a percentage without a sign; 0: the text is
// empty.
func ParseRegression(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	v, err := ParseShare(text)
	if err == nil && v == 0 {
		err = errors.New("no number of launches rules out a change of nothing: give a share such as 15%")
	}
	return v, cmp.Or(err, validDetect(v))
}

// MaxFlag reads figure=number, and replaces the upper limits of the figure.
func (g *Gate) MaxFlag(text string) error { return g.limitFlag(text, true) }

// MinFlag does the same for lower limits.
func (g *Gate) MinFlag(text string) error { return g.limitFlag(text, false) }

func (g *Gate) limitFlag(text string, most bool) error {
	row, value, level, err := flagFigure(text, "900")
	if err != nil {
		return err
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%q is not a number", value)
	}
	l := Limit{Figure: row, Min: &v, Level: level}
	if most {
		l.Min, l.Max = nil, &v
	}
	for i := range g.Limits {
		if other := &g.Limits[i]; other.Figure == row && most {
			other.Max = nil
		} else if other.Figure == row {
			other.Min = nil
		}
	}
	g.Limits = append(slices.DeleteFunc(g.Limits, func(l Limit) bool { return l.Min == nil && l.Max == nil }), l)
	return nil
}

// ChangeFlag reads figure=share, and replaces the tolerances of the figure.
func (g *Gate) ChangeFlag(text string) error {
	row, value, level, err := flagFigure(text, "-5%")
	if err != nil {
		return err
	}
	c := Change{Figure: row, Level: level}
	if c.Change, err = ParseShare(value); err != nil {
		return err
	}
	g.Changes = append(slices.DeleteFunc(g.Changes, func(c Change) bool { return c.Figure == row }), c)
	return c.Valid()
}

// DetectFlag sets the smallest regression that passing checks must rule out: share, or figure=share for the checks of
// one figure.
func (g *Gate) DetectFlag(text string) error {
	name, value, one := strings.Cut(text, "=")
	if !one {
		value = text
	}
	v, err := ParseRegression(strings.TrimPrefix(value, "-"))
	if err != nil || !one {
		g.Detect = v
		return err
	}
	f, err := figure.Find(strings.TrimSpace(name))
	if err != nil {
		return err
	}
	err = fmt.Errorf("no check compares %s with the baseline run", f.Asked())
	for i := range g.Changes {
		if g.Changes[i].Figure == f {
			g.Changes[i].Detect, err = v, nil
		}
	}
	return err
}

// flagFigure reads figure=value, with a level of its own behind a comma.
func flagFigure(text, example string) (*figure.Row, string, Level, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return nil, "", "", fmt.Errorf("%q: write figure=%s", text, example)
	}
	value, level, own := strings.Cut(value, ",")
	if own && level == "" {
		return nil, "", "", fmt.Errorf("%q: write %s, warn or off behind the comma", text, Error)
	}
	if err := Level(level).Valid(); err != nil {
		return nil, "", "", err
	}
	f, err := figure.Find(strings.TrimSpace(name))
	return f, value, Level(level), err
}

// decimal writes a number in full; share one in percent.
func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func share(v float64) string { return decimal(math.Round(v*1e8)/1e6) + "%" }

func signed(v float64) string {
	if v > 0 {
		return "+" + share(v)
	}
	return share(v)
}
