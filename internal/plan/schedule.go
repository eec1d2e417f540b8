package plan

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"llmparity/internal/figure"
)

// In which order a setup's cells take their turns.
const (
	// every cell once, then every cell again: what drifts meets all alike; a plan that says nothing gets it
	Interleaved = "interleaved"
	Shuffled    = "shuffled" // like that, in an order of its own each time, by the plan's seed
	Grouped     = "grouped"  // a cell's repetitions, one after another
)

// Percent is written as in 5%.
type Percent float64

func (p *Percent) read(_ *reader, n ast.Node, path string) error {
	text, ok := single(n)
	if !ok {
		return mistyped(n, path, "a percentage such as 5%")
	}
	number, sign := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !sign {
		return wrong(n, path, "%.60q is not a percentage such as 5%%", text)
	}
	*p = Percent(v)
	return nil
}

// String writes the sign, too.
func (p Percent) String() string { return strconv.FormatFloat(float64(p), 'g', -1, 64) + "%" }

// MarshalYAML writes the percentage with its sign.
func (p Percent) MarshalYAML() (any, error) { return p.String(), nil }

// UntilCI has cells repeated until a figure is known well enough, beyond the plan's repetitions. It may be written as
// its width alone.
type UntilCI struct {
	// the 95 % interval of the median reaches no further from it than so much of it
	Width  Percent `yaml:"width"`
	Figure string  `yaml:"figure,omitempty"`          // empty: decode_tps
	Most   int     `yaml:"max_repetitions,omitempty"` // 0: five times the plan's repetitions
}

func (u *UntilCI) read(r *reader, n ast.Node, path string) error {
	if grouped(n) {
		return r.group(n, reflect.ValueOf(u).Elem(), path)
	}
	return u.Width.read(r, n, path)
}

// MarshalYAML writes the width alone where there is no more.
func (u UntilCI) MarshalYAML() (any, error) {
	if u.Figure == "" && u.Most == 0 {
		return u.Width, nil
	}
	type plain UntilCI
	return plain(u), nil
}

// DefaultUntil is the figure that is to be known well where a plan doesn't say which.
const DefaultUntil = "decode_tps"

// MostRepetitions is how often a cell may be repeated at most.
func (p Plan) MostRepetitions() int {
	switch {
	case p.UntilCI == nil:
		return p.Repetitions
	case p.UntilCI.Most > 0:
		return p.UntilCI.Most
	}
	return 5 * p.Repetitions
}

func (u *UntilCI) validate(p Plan) error {
	switch {
	case !(u.Width > 0 && u.Width <= 100):
		return fmt.Errorf("until_ci: %s, a percentage from more than 0%% to 100%% is needed", u.Width)
	case u.Most < 0 || u.Most > mostRepetitions:
		return fmt.Errorf("until_ci.max_repetitions: %d, at most %d are possible", u.Most, mostRepetitions)
	case u.Most > 0 && u.Most < p.Repetitions:
		return fmt.Errorf("until_ci.max_repetitions: %d is less than repetitions, which are %d", u.Most, p.Repetitions)
	}
	if u.Figure != "" {
		if _, err := figure.Find(u.Figure); err != nil {
			return fmt.Errorf("until_ci.figure: %w", err)
		}
	}
	return nil
}
