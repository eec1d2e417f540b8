package gates

import (
	"time"

	"llmparity/internal/stats"
)

// Schema identifies the layout of a marshalled Outcome.
const Schema = "llmparity.gate/1"

// Outcome is what came of a gate.
type Outcome struct {
	Schema   string    `json:"schema"`
	Status   Status    `json:"status"`
	Verdict  string    `json:"verdict"` // in a sentence
	Run      Side      `json:"run"`
	Baseline *Side     `json:"baseline"` // null: there is none
	Judged   time.Time `json:"judged"`
	Tests    int       `json:"tests"` // against the baseline, that are told apart: what Holm corrects for
	Alpha    float64   `json:"alpha"` // the most gates of equals, as a share, in which any is called different
	// UnderTest is what may differ from the baseline run; empty: all but the model and the machine.
	UnderTest []string `json:"under_test,omitempty"`
	// Interleaved tells that the launches of both runs took turns, so that what the machine did meanwhile met both.
	Interleaved bool `json:"interleaved,omitempty"`
	// Advice is what settles checks that are inconclusive; empty: there are none, or nothing would.
	Advice string    `json:"advice,omitempty"`
	Checks []Check   `json:"checks"`
	Notes  []string  `json:"notes"` // what to know beside them: cells that are new, versions that changed
	Counts []Counted `json:"counts"`
}

// Side is one of the two runs.
type Side struct {
	Name    string    `json:"name"` // of the plan
	Dir     string    `json:"dir"`
	Started time.Time `json:"started"`
	// Attempts is their number when the gate was judged: a run that was resumed since is another one.
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

// Status is what came of a check, or of all of them.
type Status string

// The statuses, of a check and of a gate as a whole.
const (
	Passed       Status = "pass"
	Warned       Status = "warn" // failed at the level warn, or worse within the tolerance
	Failed       Status = "fail"
	Inconclusive Status = "inconclusive" // could not be decided; Why says why
)

// Kind is what a check asks.
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

// Check is one question and its answer.
type Check struct {
	Name   string `json:"name"` // what is wanted, in a few words
	Kind   Kind   `json:"kind"`
	Cell   string `json:"cell"` // as reports of the run call it; of a pair both
	Level  string `json:"level"`
	Status Status `json:"status"`
	Why    string `json:"why"` // in a sentence

	Figure string `json:"figure,omitempty"` // by its name in results
	Column string `json:"column,omitempty"` // and in summary.csv
	Unit   string `json:"unit,omitempty"`
	// Measured is the run's median; of parity the share of tokens that agree; of scores the largest difference.
	Measured *float64        `json:"measured"`
	Interval *stats.Interval `json:"interval"` // of it; null where launches are too few
	Launches int             `json:"launches,omitempty"`
	Min      *float64        `json:"min,omitempty"`
	Max      *float64        `json:"max,omitempty"`
	// Of a change: the baseline's median, what the change is and may be, in percent. P is that of the null hypothesis
	// that the figure has changed by exactly what is allowed, by Mann and Whitney's test, PHolm the same after Holm's
	// correction for all of the gate's questions.
	Baseline        *float64        `json:"baseline,omitempty"`
	BaseLaunches    int             `json:"baseline_launches,omitempty"`
	Percent         *float64        `json:"delta_percent,omitempty"`
	PercentInterval *stats.Interval `json:"delta_percent_interval,omitempty"`
	Allowed         *float64        `json:"allowed_percent,omitempty"`
	P               *float64        `json:"p,omitempty"`
	PHolm           *float64        `json:"p_holm,omitempty"`
	// Detect is the smallest regression that a passing check must rule out, in percent, and DetectInterval the
	// interval of the change that must exclude it. Found is the smallest regression that these launches would have
	// found nine times in ten, Needed how many launches a side would settle an inconclusive check if they vary as
	// these do; 0: it is not inconclusive, or over a hundred.
	Detect         *float64        `json:"detect_percent,omitempty"`
	DetectInterval *stats.Interval `json:"detect_interval,omitempty"`
	Found          *float64        `json:"found_percent,omitempty"`
	Needed         int             `json:"launches_needed,omitempty"`
}
