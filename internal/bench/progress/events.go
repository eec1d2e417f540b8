package progress

import (
	"time"

	"llmparity/internal/bench/run"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Schema names the format of a Line. New fields keep the name; existing ones keep their meaning.
const Schema = "llmparity.event/1"

// Line is one line of `llmparity run --json`.
type Line struct {
	Schema string        `json:"schema"`
	Time   time.Time     `json:"time"`
	Kind   run.EventKind `json:"kind"`
	Text   string        `json:"text,omitempty"`
	Side   string        `json:"side,omitempty"` // "baseline run" for the other one of two runs that alternate

	run.Event

	Rate    float64  `json:"tokens_per_s,omitempty"` // in this phase so far
	MemoryB int64    `json:"memory_bytes,omitempty"` // RSS of all processes of the engine at the last reading
	LeftS   *float64 `json:"left_s,omitempty"`       // predicted; absent: unknown

	Status record.Status `json:"status,omitempty"` // ended, done
	Error  string        `json:"error,omitempty"`
	Class  fault.Kind    `json:"class,omitempty"`     // done: class of the error, see docs/reference/exit-codes.md
	Code   *int          `json:"exit_code,omitempty"` // done
	Record string        `json:"record,omitempty"`    // recording, done: the run folder
	Report string        `json:"report,omitempty"`    // done: the HTML report
	Gate   string        `json:"gate,omitempty"`      // done: pass, fail, inconclusive; absent: no gate
}

func (p *Progress) write(e Line, now time.Time) {
	e.Schema, e.Time = Schema, now
	_ = p.json.Encode(e) // a reader that went away must not end the measurement
}

// line is what programs read of an event of the runner.
func (p *Progress) line(e run.Event, now time.Time) Line {
	out := Line{Kind: e.Kind, Text: e.Text, Side: p.side, Event: e}
	if e.Err != nil {
		out.Error = fault.OneLine(e.Err.Error())
	}
	switch e.Kind {
	case run.Recording:
		out.Record, out.Text = e.Text, ""
	case run.Generated, run.Scoring:
		out.MemoryB = p.pace.memory
		if e.Kind == run.Generated {
			out.Rate = p.pace.rate(now)
		}
	case run.Ended:
		out.Status, out.Text, out.MemoryB = record.Status(e.Text), "", p.pace.memory
	}
	if rest, known := p.rest(now); known && (e.Launches > 0 || e.Kind == run.Scoring) {
		out.LeftS = new(rest.Round(time.Second).Seconds())
	}
	return out
}

// Ended completes the last event with the run's error, and with the one that decides the exit code.
func (e Line) Ended(err, why error) Line {
	e.Class, e.Code, e.Status = fault.Of(why), new(fault.ExitCode(why)), record.OK
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
