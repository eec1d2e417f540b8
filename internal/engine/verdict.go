package engine

import "fmt"

// Answer says whether something can run here.
type Answer string

const (
	Runs    Answer = "runs"
	Refused Answer = "refused"
	// Unknown: only the engine itself can decide, after it has started.
	Unknown Answer = "unknown"
)

// Verdict is an answer with its reason. The zero Verdict means that it runs.
type Verdict struct {
	Answer Answer
	// Reason says why it is refused or unknown; nil if it runs.
	Reason error
}

// Refuse returns the verdict for err; nil means that it runs.
func Refuse(err error) Verdict {
	if err == nil {
		return Verdict{Answer: Runs}
	}
	return Verdict{Refused, err}
}

// Undecided returns the verdict Unknown; the reason says what will decide.
func Undecided(format string, args ...any) Verdict {
	return Verdict{Unknown, fmt.Errorf(format, args...)}
}

// Err returns why it cannot run; nil if it runs or may run.
func (v Verdict) Err() error {
	if v.Answer == Refused {
		return v.Reason
	}
	return nil
}
