package run

import "llmparity/internal/record"

// Event reports progress. Kind says which other fields are set: Phase if it is Entered or Generated, and Token, the
// tokens so far of Tokens, if it is Generated or Scoring. Requests of a traffic report tokens concurrently.
type Event struct {
	Kind  EventKind `json:"-"`
	Text  string    `json:"-"` // Preparing: what is being made; Ended: the status; Scoring: what for
	Setup int       `json:"-"` // number of the setup; 0: none

	Engine      string `json:"engine,omitempty"`
	Cell        int    `json:"cell,omitempty"` // from 1, as in the record
	Cells       int    `json:"cells,omitempty"`
	CellsDone   int    `json:"cells_done,omitempty"` // cells without further launches
	Launch      int    `json:"launch,omitempty"`     // from 1, of all launches, including warm-ups
	Launches    int    `json:"launches,omitempty"`
	Repetition  int    `json:"repetition,omitempty"` // 0: a warm-up launch
	Repetitions int    `json:"repetitions,omitempty"`
	Warmup      bool   `json:"warmup,omitempty"`

	Phase  record.Phase `json:"phase,omitempty"`
	Token  int          `json:"token,omitempty"`
	Tokens int          `json:"tokens,omitempty"`
	Left   int          `json:"tokens_left,omitempty"` // Scoring: to score in this setup, by all engines, after this one
	Memory int64        `json:"-"`                     // total RSS of the engine at the last reading, in bytes; 0: unknown
	Err    error        `json:"-"`                     // Ended
}

// EventKind is what happened, as `run --json` names it.
type EventKind string

// The kinds, in the order in which a run goes through them.
const (
	Preparing EventKind = "preparing" // a file for the cache is made or downloaded
	// Judged comes before a cell's first launch, if its memory may not fit: Text says why; Err is set if it is skipped.
	Judged    EventKind = "note"
	Recording EventKind = "recording" // the run folder exists; Text is its path
	Launched  EventKind = "launched"
	Entered   EventKind = "phase"
	Generated EventKind = "tokens"
	Ended     EventKind = "ended"   // a repetition
	Scoring   EventKind = "scoring" // an engine starts scoring a text (Token 0), or has scored so many tokens
	Done      EventKind = "done"    // the last line of every `run --json`; the runner has no such event
)

// Progress receives events. It must return quickly, because it is called during measurements.
type Progress func(Event)
