package compare

import "time"

// GateSchema identifies the layout of a marshalled Gate.
const GateSchema = "llmparity.gate/1"

// Gate is what came of holding a run against what it must keep to.
type Gate struct {
	Schema   string        `json:"schema"`
	Status   GateStatus    `json:"status"`
	Verdict  string        `json:"verdict"` // in a sentence
	Run      GateSide      `json:"run"`
	Baseline *GateSide     `json:"baseline"` // null: there is none
	Judged   time.Time     `json:"judged"`
	Tests    int           `json:"tests"` // against the baseline, that are told apart: what Holm corrects for
	Alpha    float64       `json:"alpha"` // the most gates of equals, as a share, in which any is called different
	Checks   []GateCheck   `json:"checks"`
	Notes    []string      `json:"notes"` // what to know beside them: cells that are new, versions that changed
	Counts   []GateCounted `json:"counts"`
}

// GateSide is one of the two runs.
type GateSide struct {
	Name    string    `json:"name"` // of the plan
	Dir     string    `json:"dir"`
	Started time.Time `json:"started"`
	// Attempts is how many had been made when it was judged: a run that went on since is another one.
	Attempts int `json:"attempts"`
	// Stored is its name in the store of baselines, SHA256 that of all its files; empty where it is a run's folder.
	Stored string    `json:"stored,omitempty"`
	SHA256 string    `json:"sha256,omitempty"`
	Saved  time.Time `json:"saved,omitzero"`
}

// Attempts is how many attempts its cells have had, however they ended.
func (r *Result) Attempts() int {
	n := 0
	for i := range r.Cells {
		l := r.Cells[i].Launches
		n += l.Counted + l.Warmup + l.Failed + l.Interrupted
	}
	return n
}

// GateCounted is how many checks have a status.
type GateCounted struct {
	Status GateStatus `json:"status"`
	Checks int        `json:"checks"`
}

// GateStatus is what came of a check, or of all of them.
type GateStatus string

// The statuses. A gate as a whole is never unknown: one of which nothing could be judged failed.
const (
	GatePassed  GateStatus = "pass"
	GateWarned  GateStatus = "warn" // it does not hold at the level warn, or it is not sure that it does not
	GateFailed  GateStatus = "fail"
	GateUnknown GateStatus = "unknown" // it could not be judged, and Why says why
)

// GateKind is what a check asks.
type GateKind string

// The kinds of checks.
const (
	GateLaunches GateKind = "launches"    // all of a cell's launches ended well
	GateLimit    GateKind = "limit"       // a figure's median lies within bounds
	GateChange   GateKind = "vs_baseline" // a figure is not worse than the baseline's by more than is let pass
	GateCell     GateKind = "cell"        // what the baseline has is there
	GateParity   GateKind = "parity"      // the same words were said
)

// GateCheck is one question and its answer.
type GateCheck struct {
	Name   string     `json:"name"` // what is wanted, in a few words
	Kind   GateKind   `json:"kind"`
	Cell   string     `json:"cell"` // as reports of the run call it; of a pair both
	Level  string     `json:"level"`
	Status GateStatus `json:"status"`
	Why    string     `json:"why"` // in a sentence

	Figure string `json:"figure,omitempty"` // by its name in results
	Column string `json:"column,omitempty"` // and in summary.csv
	Unit   string `json:"unit,omitempty"`
	// Measured is the run's median; of parity the share of tokens that agree.
	Measured *float64  `json:"measured"`
	Interval *Interval `json:"interval"` // of it; null where launches are too few
	Launches int       `json:"launches,omitempty"`
	Min      *float64  `json:"min,omitempty"`
	Max      *float64  `json:"max,omitempty"`
	// Of a change: the baseline's median, what the change is and may be, in percent, and how likely chance alone gives what was seen where it
	// has changed by just what is let pass.
	Baseline        *float64  `json:"baseline,omitempty"`
	BaseLaunches    int       `json:"baseline_launches,omitempty"`
	Percent         *float64  `json:"delta_percent,omitempty"`
	PercentInterval *Interval `json:"delta_percent_interval,omitempty"`
	Allowed         *float64  `json:"allowed_percent,omitempty"`
	P               *float64  `json:"p,omitempty"`
	PHolm           *float64  `json:"p_holm,omitempty"`
}
