// Package compare turns records into a Result: figures over launches, parity token by token, ratios of comparable
// cells, and warnings. It only reads records, so a run can be judged years later on another machine, and the same
// records always give the same Result.
//
// The launch is the unit of repetition: requests within one launch are not independent, so their median counts once.
// No distribution is assumed: medians, order-statistic intervals, Mann-Whitney. Launches that failed, were interrupted
// or only warmed up are shown, and enter no statistic. Package axis says which cells are compared; a ratio also needs
// the same class of device, or is marked.
//
// Tests that answer one question are a family: does run B differ from run A (or one engine from another) in any figure
// of any pair of cells, or in a mean over them? A correction keeps false differences to at most 1 family of equals in
// 20: Holm's for up to five pairs of cells, Benjamini and Hochberg's for more. Peak memory, time to first token and
// decode weigh eight times as much as other figures, six times with six launches a side. Figures that order the
// launches alike, such as a peak and an increase over nothing, are one test. A significant difference below the minimum
// effect does not matter. Intervals of medians are order statistics. Those of ratios and changes are exact bootstrap
// percentiles over launches; means over cells use a seeded bootstrap. Fewer than six launches a side have no interval.
//
// It cannot explain why engines differ. Margins of tokens are known only where engines scored a text.
package compare

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"llmparity/compare/conduct"
	"llmparity/compare/cost"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/growth"
	"llmparity/compare/label"
	"llmparity/compare/matrix"
	"llmparity/compare/pairs"
	"llmparity/compare/parity"
	"llmparity/compare/ratio"
	"llmparity/compare/settings"
	"llmparity/compare/ship"
	"llmparity/internal/axis"
	"llmparity/internal/gates"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
	"llmparity/internal/stats"
)

// Result is what every renderer shows. It is plain data; figures that are not known are absent, so that it always
// marshals.
type Result struct {
	Comparability []string           `json:"comparability"` // what may be compared with what: the texts of Reasons
	Reasons       []Reason           `json:"comparability_reasons"`
	Settings      *settings.Table    `json:"settings,omitempty"` // what engines report; nil: nothing
	Runs          []Run              `json:"runs"`
	Cells         []*Cell            `json:"cells"`
	Parity        []parity.Parity    `json:"parity"`
	Matrices      []parity.Matrix    `json:"parity_matrices"` // the same pairs, a table a prompt
	Comparisons   []Comparison       `json:"comparisons"`
	Families      []ratio.Family     `json:"families"`         // of comparisons
	Groups        []Group            `json:"groups,omitempty"` // of cells, where they are asked for
	Statistics    Statistics         `json:"statistics"`
	Sweeps        []growth.Sweep     `json:"sweeps"` // cells that differ along one axis alone
	Forms         []*ship.Table      `json:"forms,omitempty"`
	Costs         []*cost.Cost       `json:"browser_costs,omitempty"` // of pages on the CPU, against the same library outside
	Support       *matrix.Matrix     `json:"support_matrix,omitempty"`
	Warnings      []evidence.Warning `json:"warnings"` // what may change a conclusion, the most serious first
	Notes         []evidence.Warning `json:"notes"`    // all other remarks
	// the baseline run once more; nil: it was measured once
	Noise *Noise `json:"noise,omitempty"`
	// outcome of the run's gate; nil: it has none
	Gate *gates.Outcome `json:"gate,omitempty"`

	labels *label.Labels
}

// Run is a run folder that entered the result.
type Run struct {
	Dir         string             `json:"dir"`
	Name        string             `json:"name"`
	Side        string             `json:"side,omitempty"` // what distinguishes it from the other runs
	Started     time.Time          `json:"started"`
	Against     string             `json:"against,omitempty"`        // folder of the run that it was interleaved with
	Reference   map[string]string  `json:"reference_cell,omitempty"` // requested values of the reference cell, by axis
	Status      record.Status      `json:"status"`
	Plan        string             `json:"plan_sha256,omitempty"` // SHA-256 of plan.yaml
	Tool        record.Tool        `json:"tool"`
	Environment record.Environment `json:"environment"`
	Checklist   []explain.Check    `json:"checklist"`             // whether the run is reproducible and credible
	Pieces      map[int]string     `json:"token_texts,omitempty"` // of tokens that occur, by id
}

// Runs compares what is in these runs, by the default options. It changes none of them.
func Runs(runs ...*record.Run) *Result { return With(Defaults(), runs...) }

// With compares what is in these runs; the first is the baseline. It changes none of them.
func With(o Rules, runs ...*record.Run) *Result {
	r := &Result{Comparability: []string{}, Runs: []Run{}, Cells: []*Cell{},
		Parity: []parity.Parity{}, Comparisons: []Comparison{}, Families: []ratio.Family{},
		Statistics: Statistics{Alpha: stats.Alpha, Confidence: stats.Confidence, MinEffect: o.MinEffect,
			Perplexity: o.Perplexity, AllowDifferent: o.AllowDifferent, By: o.By}}
	var of []*growth.Member
	var references []map[string]string
	for i, run := range runs {
		reference := o.Reference
		if reference == nil {
			reference = run.Meta.Reference
		}
		references = append(references, reference)
		r.Runs = append(r.Runs, Run{Dir: run.Dir, Name: run.Meta.Name, Started: run.Meta.Started, Reference: reference,
			Against: run.Meta.Against, Status: run.Status,
			Plan: run.Meta.Plan, Tool: run.Meta.Tool, Environment: run.Environment,
			Checklist: explain.Checklist(run), Pieces: run.Pieces})
		for _, spec := range run.Cells {
			cell := newCell(i, run, spec)
			cell.title = o.Titles[spec.Engine]
			cell.With = cell.Setup.With(spec.Engine, cell.Title()) // the label has the name
			r.Cells = append(r.Cells, cell)
			of = append(of, &growth.Member{Footprint: cell.footprint, Title: cell.Title(), Environment: run.Environment,
				Growth: cell.Growth})
		}
	}
	r.name(runs)
	r.quality()
	for i, c := range r.Cells {
		c.Scores = parity.WithAnchor(r.party(i))
	}
	r.Sweeps = growth.Sweeps(of)
	r.pairUp(references)
	sameTask := func(a, b int) bool { return pairs.SameTask(&r.Cells[a].Spec, &r.Cells[b].Spec) }
	r.Matrices = parity.Matrices(r.Parity, sameTask, func(cell int) parity.SelfParity { return r.Cells[cell].Self })
	for i := range r.Matrices {
		of := r.Cells[r.Matrices[i].Cells[0]].Spec
		r.Matrices[i].Title = fmt.Sprintf("%s, prompt %d", of.Model.Name, of.PromptID)
	}
	r.measureNoise(o.Noise)
	r.judge()
	r.group()
	r.Costs, r.Support = r.costs(), r.support()
	if !r.Surveys() {
		r.Forms = r.forms()
	}
	r.Reasons, r.Settings = r.reasons(), r.settings()
	for _, d := range r.Reasons {
		r.Comparability = append(r.Comparability, d.Text)
	}
	r.Warnings, r.Notes = r.remarks(runs)
	return r
}

// quality compares cells that scored a text with one of them, the reference, and adds the figures to all cells. The
// reference is the cell that the first scored cell was to be compared with, or else that first cell itself.
func (r *Result) quality() {
	scored := func(c *Cell) bool { return c.Quality != nil }
	var of *Cell
	if first := slices.IndexFunc(r.Cells, scored); first >= 0 {
		of = r.Cells[first]
		if at := slices.IndexFunc(r.Cells, func(c *Cell) bool {
			return scored(c) && c.Run == of.Run && c.Spec.ID == of.Quality.Compared
		}); at >= 0 {
			of = r.Cells[at]
		}
	}
	for _, c := range r.Cells {
		if scored(c) {
			c.Quality.Against(of.Quality)
			c.Quality.Reference = of.Label
		}
		if of != nil {
			c.Figures = append(c.Figures, c.Quality.Figures(of.Quality)...)
		}
	}
}

// party is a cell as package parity takes it.
func (r *Result) party(cell int) parity.Party {
	c := r.Cells[cell]
	s := parity.Party{Cell: cell, Label: c.Label, Temperature: c.Spec.Temperature, Counted: c.counted, Scored: c.scored,
		TextOf: "a cell that is not here", NoTokenIDs: c.Spec.NoTokenIDs, Unverified: c.unverified(), Self: c.Self,
		Arithmetic: c.arithmetic(), Checked: c.checked, Anchor: c.anchor, Values: c.Spec.Model.Values(),
		Rounded: c.Weights() == record.OtherValues}
	// To float16, weights are rounded as activations are, which tolerances cover.
	s.Requantised = s.Rounded && !(c.Says("weights_dtype") == "f16" && c.Says("activations_dtype") == "f16")
	if c.ModelLibrary().ByMLC() {
		s.Chunk, _ = strconv.Atoi(c.Says("prefill_chunk")) // 0 if it is not reported
	}
	its := func(o *Cell) bool { return c.scored != nil && o.Run == c.Run && o.Spec.ID == c.scored.Reference }
	if at := slices.IndexFunc(r.Cells, its); at >= 0 {
		s.TextOf = r.Cells[at].Label
	}
	return s
}

// unverified reports whether the weights may be others: an engine warned of it, or only a server has the file.
func (c *Cell) unverified() bool {
	return axis.Unverified(&c.Spec.Model) || slices.ContainsFunc(c.all, func(a *record.Attempt) bool {
		return slices.ContainsFunc(a.Warnings, func(w record.Warning) bool { return w.Code == "weights-unverified" })
	})
}

// arithmetic is what the engine computes in, by its score check or else by its reports.
func (c *Cell) arithmetic() []rounding.Arithmetic {
	if c.checked != nil {
		return c.checked.Arithmetic
	}
	return rounding.Of(c.Engine, c.Device, c.Spec.Model)
}

// settings compares the settings that engines report.
func (r *Result) settings() *settings.Table {
	var t settings.Table
	alone := len(r.Distinct((*Cell).Title)) == 1
	for _, c := range r.Cells {
		side := c.Title()
		if set := c.Set(); set != "" {
			side += " (" + set + ")"
		}
		if len(r.Runs) > 1 {
			side += " in " + r.RunName(c.Run)
		}
		if reported := settings.Of(&c.Setup, alone); len(reported) > 0 && !c.Foreign() {
			t.Add(side, reported)
		}
	}
	if len(t.Sides) == 0 {
		return nil
	}
	t.Close()
	return &t
}

// Attempts is the number of attempts of all cells of a run, whatever their status.
func (r *Result) Attempts(run int) int {
	n := 0
	for _, c := range r.Cells {
		if l := c.Launches; c.Run == run {
			n += l.Counted + l.Warmup + l.Failed + l.Interrupted
		}
	}
	return n
}

// Conduct returns how the launches of a run were made.
func (r *Result) Conduct(run int) conduct.Conduct {
	var cells []conduct.Cell
	for _, c := range r.Cells {
		if c.Run == run && c.Refused == "" && len(c.counted) > 0 {
			cells = append(cells, conduct.Cell{All: c.all, Counted: c.counted, Warmups: c.Launches.Warmup})
		}
	}
	return conduct.Of(cells)
}
