package progress

import (
	"encoding/json"
	"io"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/run"
)

// Schema names the format of a Line. New fields keep the name; existing ones keep their meaning.
const Schema = "llmparity.event/1"

// Kind is what happened.
type Kind string

// The kinds, in the order in which a run goes through them.
const (
	kindPreparing Kind = "preparing" // a file for the cache is made or downloaded
	kindNote      Kind = "note"      // a remark, e.g. that a cell cannot run here
	kindRecording Kind = "recording" // the run folder exists
	kindLaunched  Kind = "launched"
	kindPhase     Kind = "phase"
	kindTokens    Kind = "tokens" // at most four a second, of all requests together
	kindEnded     Kind = "ended"  // a repetition
	kindScoring   Kind = "scoring"
	kindDone      Kind = "done" // the last one of every run
)

// Line is one line of `llmparity run --json`.
type Line struct {
	Schema string    `json:"schema"`
	Time   time.Time `json:"time"`
	Kind   Kind      `json:"kind"`
	Text   string    `json:"text,omitempty"`
	Side   string    `json:"side,omitempty"` // "baseline run" for the other one of two runs that alternate

	Engine      string `json:"engine,omitempty"`
	Cell        int    `json:"cell,omitempty"` // from 1, as in the record
	Cells       int    `json:"cells,omitempty"`
	CellsDone   int    `json:"cells_done,omitempty"` // cells without further launches
	Launch      int    `json:"launch,omitempty"`     // from 1, of all launches, including warm-ups
	Launches    int    `json:"launches,omitempty"`
	Repetition  int    `json:"repetition,omitempty"` // 0: a warm-up launch
	Repetitions int    `json:"repetitions,omitempty"`
	Warmup      bool   `json:"warmup,omitempty"`

	Phase   record.Phase `json:"phase,omitempty"`
	Token   int          `json:"token,omitempty"`
	Tokens  int          `json:"tokens,omitempty"`
	Rate    float64      `json:"tokens_per_s,omitempty"` // in this phase so far
	MemoryB int64        `json:"memory_bytes,omitempty"` // RSS of all processes of the engine at the last reading
	LeftS   *float64     `json:"left_s,omitempty"`       // predicted; absent: unknown

	Status record.Status `json:"status,omitempty"` // ended, done
	Error  string        `json:"error,omitempty"`
	Class  fault.Kind    `json:"class,omitempty"`     // done: class of the error, see docs/reference/exit-codes.md
	Code   *int          `json:"exit_code,omitempty"` // done
	Record string        `json:"record,omitempty"`    // recording, done: the run folder
	Report string        `json:"report,omitempty"`    // done: the HTML report
	Gate   string        `json:"gate,omitempty"`      // done: pass, fail, inconclusive; absent: no gate
}

// jsonEvents writes events as lines of JSON.
type jsonEvents struct {
	out   *json.Encoder
	drawn time.Time // time of the last line about tokens
}

func newJSONEvents(w io.Writer) *jsonEvents {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return &jsonEvents{out: e}
}

func (j *jsonEvents) write(e Line, now time.Time) {
	e.Schema, e.Time = Schema, now
	_ = j.out.Encode(e) // a reader that went away must not end the measurement
}

// event writes an event of the runner.
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

// Ended completes the last event with the run's error, and with the one that decides the exit code.
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

// Gated sets the outcome of the gate.
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
