package gates

import (
	"slices"
	"time"

	"llmparity/internal/figure"
	"llmparity/internal/stats"
)

// Schema identifies the layout of a marshalled Outcome.
const Schema = "llmparity.gate/1"

// Outcome is the result of a gate.
type Outcome struct {
	Schema   string    `json:"schema"`
	Status   Status    `json:"status"`
	Verdict  string    `json:"verdict"` // in a sentence
	Run      Side      `json:"run"`
	Baseline *Side     `json:"baseline"` // null: there is none
	Judged   time.Time `json:"judged"`
	Tests    int       `json:"tests"` // distinct tests against the baseline run, for which Holm corrects
	Alpha    float64   `json:"alpha"` // largest share of gates on equal runs in which any figure is called different
	// UnderTest is what may differ from the baseline run; empty: all but the model and the machine.
	UnderTest []string `json:"under_test,omitempty"`
	// Interleaved says that launches of both runs alternated, so that changes of the machine affected both alike.
	Interleaved bool `json:"interleaved,omitempty"`
	// Output says whether both sides generated the same output; empty: launches did not alternate, or none is compared.
	Output string `json:"output,omitempty"`
	// Advice says what would settle inconclusive checks; empty: there are none, or nothing would.
	Advice string    `json:"advice,omitempty"`
	Checks []Check   `json:"checks"`
	Notes  []string  `json:"notes"` // beside the checks: new cells, changed versions
	Counts []Counted `json:"counts"`
}

// Side is one of the two runs.
type Side struct {
	Name    string    `json:"name"` // of the plan
	Dir     string    `json:"dir"`
	Started time.Time `json:"started"`
	// Attempts is how many attempts the run had then. A run that was resumed since has more, and needs a new judgement.
	Attempts int `json:"attempts"`
	// Stored is its name in the store of baselines, SHA256 that of all its files; empty where it is a run's folder.
	Stored string    `json:"stored,omitempty"`
	SHA256 string    `json:"sha256,omitempty"`
	Saved  time.Time `json:"saved,omitzero"`
}

// Counted is how many checks have a status.
type Counted struct {
	Status Status `json:"status"`
	Checks int    `json:"checks"`
}

// Status is the result of a check, or of a gate.
type Status string

// The statuses.
const (
	Passed       Status = "pass"
	Warned       Status = "warn" // failed at the level warn, or worse within the tolerance
	Failed       Status = "fail"
	Inconclusive Status = "inconclusive" // could not be decided; Why says why
)

// Kind is what a check is about.
type Kind string

// The kinds of checks.
const (
	KindLaunches Kind = "launches"    // all of a cell's launches succeeded
	KindLimit    Kind = "limit"       // a figure's median lies within bounds
	KindChange   Kind = "vs_baseline" // a figure is not worse than the baseline run's by more than the tolerance
	KindCell     Kind = "cell"        // the run has every cell of the baseline run
	KindParity   Kind = "parity"      // the output is the same
	KindScores   Kind = "scores"      // the scores of the score check are the same
)

// Check is a check with its result.
type Check struct {
	Name   string `json:"name"` // what is required, in a few words
	Kind   Kind   `json:"kind"`
	Cell   string `json:"cell"` // as reports of the run call it; of a pair both
	Level  string `json:"level"`
	Status Status `json:"status"`
	Why    string `json:"why"` // in a sentence

	Figure string `json:"figure,omitempty"` // by its name in results
	Column string `json:"column,omitempty"` // and in summary.csv
	Unit   string `json:"unit,omitempty"`
	// Part is the kind of processes whose CPU time is meant, such as renderer; its change is in percent of the CPU time
	// of all. Empty: all processes.
	Part string `json:"part,omitempty"`
	// Measured is the run's median; of parity the share of tokens that agree; of scores the largest difference.
	Measured *float64        `json:"measured"`
	Interval *stats.Interval `json:"interval"` // of Measured; null with too few launches
	Launches int             `json:"launches,omitempty"`
	Min      *float64        `json:"min,omitempty"`
	Max      *float64        `json:"max,omitempty"`
	// Of a change: the baseline run's median, the change and the tolerance in percent. P is from Mann and Whitney's
	// test of the hypothesis that the figure changed by exactly the tolerance. PCorrected is P after Holm's correction
	// for all tests of the gate.
	Baseline        *float64        `json:"baseline,omitempty"`
	BaseLaunches    int             `json:"baseline_launches,omitempty"`
	Percent         *float64        `json:"delta_percent,omitempty"`
	PercentInterval *stats.Interval `json:"delta_percent_interval,omitempty"`
	Allowed         *float64        `json:"allowed_percent,omitempty"`
	P               *float64        `json:"p,omitempty"`
	PCorrected      *float64        `json:"p_corrected,omitempty"`
	// Detect is the smallest regression that a passing check must rule out, in percent, and DetectInterval the
	// interval of the change that must exclude it. Found is the smallest regression that these launches would find
	// in nine of ten cases. Needed is how many launches a side would settle an inconclusive check, if they vary as
	// these do; 0: the check is decided, or over a hundred.
	Detect         *float64        `json:"detect_percent,omitempty"`
	DetectInterval *stats.Interval `json:"detect_interval,omitempty"`
	Found          *float64        `json:"found_percent,omitempty"`
	Needed         int             `json:"launches_needed,omitempty"`
}

// Worst is the check that a reader wants to know first: of those with the gravest status the change that exceeds its
// tolerance most, or comes closest to it; else the first, but rather a limit than launches that succeeded. It is nil
// without a check. Checks are sorted by status.
func (o *Outcome) Worst() *Check {
	var worst *Check
	for i := range o.Checks {
		c := &o.Checks[i]
		if worst == nil {
			worst = c
		}
		if c.Status != worst.Status {
			break
		}
		switch {
		case c.changed() && (!worst.changed() || c.Excess() > worst.Excess()):
			worst = c
		case c.Kind == KindLimit && worst.Kind == KindLaunches && c.Status != Failed:
			worst = c
		}
	}
	return worst
}

// changed reports whether the check has a change and a tolerance.
func (c *Check) changed() bool { return c.Kind == KindChange && c.Percent != nil && c.Allowed != nil }

// Excess is by how many percentage points a change is worse than its tolerance; below zero it is within.
func (c *Check) Excess() float64 {
	if row := figure.Of(c.Figure); row != nil && row.Better == figure.Higher {
		return *c.Allowed - *c.Percent
	}
	return *c.Percent - *c.Allowed
}

// LaunchesAlone reports whether nothing but launches failed, which has an exit code of its own.
func (o *Outcome) LaunchesAlone() bool {
	return !slices.ContainsFunc(o.Checks, func(c Check) bool { return c.Status == Failed && c.Kind != KindLaunches })
}
