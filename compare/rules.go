package compare

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"llmparity/compare/explain"
	"llmparity/compare/ship"
	"llmparity/internal/axis"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
	"llmparity/internal/record"
)

// Rules say how runs are compared.
type Rules struct {
	// MinEffect is the share below which a significant difference does not matter: 0.01 is 1%.
	MinEffect float64
	// Perplexity is by how much it may rise, as a share, in a form of a model that keeps the quality.
	Perplexity float64
	// AllowDifferent gives marked ratios of cells that are not alike: other devices, isolation, unverified weights.
	AllowDifferent bool
	// By names the fields whose values averaged cells share; nil: the engine, without groups.
	By []string
	// Reference has values of the reference cell, by axis; nil: those of the runs' plans. An axis without a value has
	// its first one.
	Reference map[string]string
	// Titles has engines' names for people, by their names in records, which are the default.
	Titles map[string]string
	// Noise is the baseline run once more, for the machine's noise; nil: it was measured once.
	Noise *record.Run
}

// Defaults are the options of Runs.
func Defaults() Rules { return Rules{MinEffect: 0.01, Perplexity: ship.Tolerance} }

// Statistics are the rules of a Result.
type Statistics struct {
	Alpha          float64  `json:"alpha"`      // greatest share of families of equal cells that are called different
	Confidence     float64  `json:"confidence"` // of intervals
	MinEffect      float64  `json:"min_effect"` // a share
	Perplexity     float64  `json:"-"`          // a share; tables of forms have it
	AllowDifferent bool     `json:"allow_different,omitempty"`
	By             []string `json:"by,omitempty"` // as in the options
}

// Check validates options for some runs.
func (o Rules) Check(runs ...*record.Run) error {
	if !(o.MinEffect >= 0 && o.MinEffect < 1) {
		return fault.New(fault.Usage, "use a percentage from 0% to 100%, such as 1%",
			"minimum effect %g%%: out of range", 100*o.MinEffect)
	}
	if !(o.Perplexity >= 0) || math.IsInf(o.Perplexity, 0) {
		return fault.New(fault.Usage, "use a percentage, such as 1%", "perplexity tolerance %g%%: out of range",
			100*o.Perplexity)
	}
	var specs []*record.Cell
	for _, run := range runs {
		for i := range run.Cells {
			specs = append(specs, &run.Cells[i])
		}
	}
	if err := checkReference(o.Reference, specs); err != nil {
		return err
	}
	known := fieldsOf(specs...)
	for _, name := range o.By {
		if !slices.Contains(known, name) && !slices.Contains(known, axis.Named(name).ByName()) {
			return fault.New(fault.Usage, "use "+strings.Join(known, ", "), "unknown field %q", name)
		}
	}
	return nil
}

// checkReference says which axis or value of a requested reference cell no cell has.
func checkReference(reference map[string]string, specs []*record.Cell) error {
	for name, value := range reference {
		x := axis.Named(name)
		known := fieldsOf(specs...)
		if !slices.Contains(known, x.ByName()) || x.ByName() == axis.Run {
			return fault.New(fault.Usage, cmp.Or(nearest.Question(name, known), "axes: "+strings.Join(known, ", ")),
				"reference cell: unknown axis %q", name)
		}
		values, matches := x.Among(specs, value)
		if !matches {
			return fault.New(fault.Usage, "use "+explain.Some(values, 8), "reference cell: no cell has %s %q", name,
				value)
		}
	}
	return nil
}

// Fields lists the fields that cells can be grouped by, without engines' own.
func Fields() []string { return fieldsOf() }
