package engine

import "fmt"

// Answer says whether something can run here.
type Answer string

const (
	Runs    Answer = "runs"
	Refused Answer = "refused"
	// Unknown is the answer where only the engine itself decides, once it has started.
	Unknown Answer = "unknown"
)

// Verdict is an answer with its reason. The zero Verdict says that it runs.
type Verdict struct {
	Answer Answer
	// Reason says why it is refused, or why it is not known; nil where it runs.
	Reason error
}

// Refuse is the verdict that err gives; nil says that it runs.
func Refuse(err error) Verdict {
	if err == nil {
		return Verdict{Answer: Runs}
	}
	return Verdict{Refused, err}
}

// Undecided is the verdict that something is unknown, and who decides it.
func Undecided(format string, args ...any) Verdict {
	return Verdict{Unknown, fmt.Errorf(format, args...)}
}

// Err is why it can't run; nil where it runs or may run.
func (v Verdict) Err() error {
	if v.Answer == Refused {
		return v.Reason
	}
	return nil
}

// And is the verdict on both: refused where one is, else unknown where one is. Of two refusals the first stands.
func (v Verdict) And(other Verdict) Verdict {
	if v.Answer == Refused || other.Answer != Refused && v.Answer == Unknown {
		return v
	}
	return other
}
