package compare

import (
	"math"

	"llmparity/internal/record"
)

// launch is a session with the counted repetitions that were in it: one of its own, unless launches are reused.
type launch struct {
	id       int // of the attempt that opened it
	opener   *record.Attempt
	attempts []*record.Attempt // that count, in order
}

// launches groups attempts by the launch that they were in, in the order in which those were opened.
func launches(counted []*record.Attempt) []launch {
	var out []launch
	at := map[int]int{}
	for _, a := range counted {
		of := a.Launch()
		n, ok := at[of.ID]
		if !ok {
			n = len(out)
			at[of.ID], out = n, append(out, launch{id: of.ID, opener: of})
		}
		out[n].attempts = append(out[n].attempts, a)
	}
	return out
}

// at are the attempts that a phase of the launch may lie in: what comes before the measurement lies in the one that
// opened it, whether that counts or not.
func (l launch) at(p record.Phase) []*record.Attempt {
	switch p {
	case record.Baseline, record.Load, record.Warmup:
		return []*record.Attempt{l.opener}
	}
	return l.attempts
}

// last is what was read latest of a launch at the end of a phase, which each repetition has; NaN where it never was.
func (l launch) last(p record.Phase, read func(*record.Attempt) float64) float64 {
	out := math.NaN()
	for _, a := range l.at(p) {
		if v := read(a); !math.IsNaN(v) {
			out = v
		}
	}
	return out
}
