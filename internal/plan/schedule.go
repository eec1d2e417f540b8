package plan

import (
	"fmt"
	"strconv"
	"strings"

	"llmparity/internal/figure"
)

// Orders of launches.
const (
	Interleaved = "interleaved" // each cell once, then each cell again, so that drift affects all alike; the default
	Shuffled    = "shuffled"    // the same, each time in a random order
	Grouped     = "grouped"     // all repetitions of a cell, one after the other
)

// Percent is written like 5%.
type Percent float64

func (p *Percent) parse(text string) error {
	number, sign := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if *p = Percent(v); !sign {
		return strconv.ErrSyntax
	}
	return err
}

func (*Percent) wanted() string { return "a percentage such as 5%" }

// String writes the number with the sign.
func (p Percent) String() string { return strconv.FormatFloat(float64(p), 'g', -1, 64) + "%" }

// MarshalYAML writes the percentage with its sign.
func (p Percent) MarshalYAML() (any, error) { return p.String(), nil }

// UntilCI repeats cells beyond the plan's repetitions, until the confidence interval of a figure is narrow enough. It
// can be written as the width alone, e.g. until_ci: 5%.
type UntilCI struct {
	// Maximum distance of the 95% confidence interval from the median, as a share of the median, e.g. 5%.
	Width Percent `yaml:"width"`
	// Figure that must be known so well. Default: decode_tps.
	Figure string `yaml:"figure,omitempty"`
	// Maximum launches of a cell. Default: 5 times repetitions.
	Most int `yaml:"max_repetitions,omitempty"`
}

func (u *UntilCI) alone() any { return &u.Width }

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
		return fmt.Errorf("until_ci: %s is out of range; use more than 0%% and at most 100%%", u.Width)
	case u.Most < 0 || u.Most > mostRepetitions:
		return fmt.Errorf("until_ci.max_repetitions: %d is out of range; use at most %d", u.Most, mostRepetitions)
	case u.Most > 0 && u.Most < p.Repetitions:
		return fmt.Errorf("until_ci.max_repetitions: %d is less than repetitions: %d", u.Most, p.Repetitions)
	}
	if u.Figure != "" {
		if _, err := figure.Find(u.Figure); err != nil {
			return fmt.Errorf("until_ci.figure: %w", err)
		}
	}
	return nil
}
