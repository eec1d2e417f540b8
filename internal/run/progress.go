package run

import "llmparity/internal/record"

// Event is something that a person who waits wants to know. Kind says which of the other fields are set. Requests of a
// traffic tell of their tokens from goroutines of their own.
type Event struct {
	Kind EventKind
	Text string // Preparing: what is being made; Ended: how, in a few words

	Setup       int // its number; 0: of none
	Cell        int // its number in the record; 0: of none
	Cells       int // of the run
	CellsDone   int // to which no attempt will be added
	Launch      int // from 1, of Launches; those that an earlier part of the run has made are counted too
	Launches    int // of the run, warm-ups with them
	Engine      string
	Repetition  int
	Repetitions int
	Warmup      bool

	Phase  record.Phase // Entered
	Token  int          // Generated: tokens so far, of Tokens
	Tokens int
	Memory int64 // of the engine's processes together, RSS, at the last reading, in bytes; 0: not known
	Err    error // Ended
}

// EventKind is what happened.
type EventKind int

// The kinds of events, in the order in which a launch goes through them.
const (
	Preparing EventKind = iota // something is made that is cached: a package, a library
	Recording                  // the run folder exists; Text is its path
	Launched
	Entered
	Generated
	Ended
	Scoring // behind all launches: an engine begins to score a text (Token 0), or has scored so many of its tokens
	Judged  // before a cell's first launch, where its memory may not do: Text says why, Err is set where it is refused
)

// Progress is told what happens. It must return quickly: it is called while things are measured.
type Progress func(Event)
