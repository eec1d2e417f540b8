package run

import "llmparity/internal/record"

// Event reports progress. Kind says which other fields are set. Requests of a traffic report tokens concurrently.
type Event struct {
	Kind EventKind
	Text string // Preparing: what is being made; Ended: the status

	Setup       int // number of the setup; 0: none
	Cell        int // number of the cell; 0: none
	Cells       int // number of cells in the run
	CellsDone   int // cells without further attempts
	Launch      int // from 1, of Launches, including those before a resumption
	Launches    int // launches in the run, including warm-ups
	Engine      string
	Repetition  int
	Repetitions int
	Warmup      bool

	Phase  record.Phase // Entered
	Token  int          // Generated: tokens so far, of Tokens
	Tokens int
	Memory int64 // total RSS of the engine at the last reading, in bytes; 0: unknown
	Err    error // Ended
}

// EventKind is what happened.
type EventKind int

// The kinds of events, in the order of a launch.
const (
	Preparing EventKind = iota // a package or library is being made for the cache
	Recording                  // the run folder exists; Text is its path
	Launched
	Entered
	Generated
	Ended
	Scoring // after all launches: an engine starts scoring a text (Token 0), or has scored so many tokens
	Judged  // before a cell's first launch, if its memory may not fit: Text says why; Err is set if it is skipped
)

// Progress receives events. It must return quickly, because it is called during measurements.
type Progress func(Event)
