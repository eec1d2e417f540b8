package progress

import (
	"encoding/json"
	"io"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/run"
)

// Schema names the shape of a Line. Fields are added under the same name; none is taken away or given another meaning.
const Schema = "llmparity.event/1"

// Kind is what an event is of.
type Kind string

// The kinds, in the order in which a run goes through them.
const (
	kindPreparing Kind = "preparing" // something is made, or fetched, that will be kept
	kindNote      Kind = "note"      // what a reader should know; a cell that can't run here is one
	kindRecording Kind = "recording" // the run's folder is there
	kindLaunched  Kind = "launched"
	kindPhase     Kind = "phase"
	kindTokens    Kind = "tokens" // four a second at most, of all requests together
	kindEnded     Kind = "ended"  // a repetition
	kindScoring   Kind = "scoring"
	kindDone      Kind = "done" // the last one of every run, however it went
)

// Line is one of what `llmparity run --json` prints.
type Line struct {
	Schema string    `json:"schema"`
	Time   time.Time `json:"time"`
	Kind   Kind      `json:"kind"`
	Text   string    `json:"text,omitempty"`
	Side   string    `json:"side,omitempty"` // baseline run, of two that take turns

	Engine      string `json:"engine,omitempty"`
	Cell        int    `json:"cell,omitempty"` // from 1, as in the record
	Cells       int    `json:"cells,omitempty"`
	CellsDone   int    `json:"cells_done,omitempty"` // of which no repetition is missing, or to which none will come
	Launch      int    `json:"launch,omitempty"`     // from 1, of all cells' warm-ups and repetitions, in their order
	Launches    int    `json:"launches,omitempty"`
	Repetition  int    `json:"repetition,omitempty"` // 0: a warm-up launch
	Repetitions int    `json:"repetitions,omitempty"`
	Warmup      bool   `json:"warmup,omitempty"`

	Phase   record.Phase `json:"phase,omitempty"`
	Token   int          `json:"token,omitempty"`
	Tokens  int          `json:"tokens,omitempty"`
	Rate    float64      `json:"tokens_per_s,omitempty"` // of this phase so far
	MemoryB int64        `json:"memory_bytes,omitempty"` // of the engine's processes together, RSS, at the last reading
	LeftS   *float64     `json:"left_s,omitempty"`       // how long the rest may take; absent: not known

	Status record.Status `json:"status,omitempty"` // ended, done
	Error  string        `json:"error,omitempty"`
	Class  fault.Kind    `json:"class,omitempty"`     // done: of the error, as docs/reference/exit-codes.md has them
	Code   *int          `json:"exit_code,omitempty"` // done
	Record string        `json:"record,omitempty"`    // recording, done: the run's folder
	Report string        `json:"report,omitempty"`    // done: its report
	Gate   string        `json:"gate,omitempty"`      // done: pass, fail, inconclusive; absent: not judged
}

// jsonEvents writes events as lines of JSON.
type jsonEvents struct {
	out   *json.Encoder
	drawn time.Time // the last line about tokens
}

func newJSONEvents(w io.Writer) *jsonEvents {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return &jsonEvents{out: e}
}

func (j *jsonEvents) write(e Line, now time.Time) {
	e.Schema, e.Time = Schema, now
	_ = j.out.Encode(e) // whoever reads no more loses lines, and no measurement
}

// Event writes what the runner tells.
func (j *jsonEvents) event(e run.Event, p *pace, now time.Time, side string) {
	out := Line{Side: side, Engine: e.Engine, Cell: e.Cell, Cells: e.Cells, CellsDone: e.CellsDone,
		Launch: e.Launch, Launches: e.Launches,
		Repetition: e.Repetition, Repetitions: e.Repetitions, Warmup: e.Warmup, Text: e.Text}
	if e.Err != nil {
		out.Error = fault.OneLine(e.Err.Error())
	}
	switch e.Kind {
	case run.Preparing:
		out.Kind = kindPreparing
	case run.Recording:
		out.Kind, out.Record, out.Text = kindRecording, e.Text, ""
	case run.Judged:
		out.Kind = kindNote
	case run.Launched:
		out.Kind = kindLaunched
	case run.Entered:
		out.Kind, out.Phase = kindPhase, e.Phase
	case run.Generated, run.Scoring:
		if e.Token > 0 && now.Sub(j.drawn) < redraw {
			return
		}
		j.drawn = now
		out.Kind, out.Phase, out.Token, out.Tokens, out.Rate, out.MemoryB = kindTokens, e.Phase, e.Token, e.Tokens,
			p.rate(now), p.memory
		if e.Kind == run.Scoring {
			out.Kind, out.Rate = kindScoring, 0
		}
	case run.Ended:
		out.Kind, out.Status, out.Text = kindEnded, record.Status(e.Text), ""
		out.MemoryB = p.memory
	}
	if rest, known := p.rest(now); known && e.Launches > 0 {
		s := float64(rest.Round(time.Second)) / float64(time.Second)
		out.LeftS = &s
	}
	j.write(out, now)
}

// Ended completes the last event: how the run went, by its error, and the one that gives the exit code.
func (e Line) Ended(err, why error) Line {
	code := fault.ExitCode(why)
	e.Class, e.Code, e.Status = fault.Of(why), &code, record.OK
	switch {
	case e.Class == fault.Interrupted || e.Class == fault.Terminated:
		e.Status = record.Interrupted
	case err != nil:
		e.Status = record.Failed
	}
	if err != nil {
		e.Error = fault.OneLine(err.Error())
	}
	return e
}

// Gated says how the gate was.
func (e *Line) Gated(err error) {
	switch fault.Of(err) {
	case "":
		e.Gate = "pass"
	case fault.Gate:
		e.Gate = "fail"
	case fault.Inconclusive:
		e.Gate = "inconclusive"
	}
}
