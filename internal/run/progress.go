package run

import "llmparity/internal/record"

// Event is something that a person who waits wants to know. Kind says which of the other fields are set.
type Event struct {
	Kind EventKind
	Text string // Preparing: what is being made; Ended: how, in a few words

	Launch      int // from 1, of Launches
	Launches    int
	Engine      string
	Repetition  int
	Repetitions int
	Warmup      bool

	Phase  record.Phase // Entered
	Token  int          // Generated: tokens so far, of Tokens
	Tokens int
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
