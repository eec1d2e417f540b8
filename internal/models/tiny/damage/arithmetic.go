package damage

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/internal/models/tiny/reference"
)

// The faults of arithmetic, by the names that the example engine takes.
const (
	Shifted  = "shifted-keys"  // each value gets the score of the key before its own
	SkipLast = "skip-last-key" // a step after the prompt does not see its own position
	Scale    = "wrong-scale"   // attention scores are 0.2% too large, which turns no token
)

// Names lists the faults of arithmetic.
func Names() []string { return []string{Shifted, SkipLast, Scale} }

// Check refuses a name that is not one of Names, nor "" for no fault.
func Check(name string) error {
	if name != "" && !slices.Contains(Names(), name) {
		return fmt.Errorf("unknown fault %q; use %s", name, strings.Join(Names(), ", "))
	}
	return nil
}

// Start starts a sequence, after a prompt of so many tokens, with a fault of arithmetic.
func Start(m *reference.Model, name string, prompt int) *reference.Sequence {
	s := m.Start()
	switch name {
	case Shifted:
		s.Scored = func(_ int, scores []float64) { copy(scores[1:], slices.Clone(scores)) }
	case SkipLast:
		s.Scored = func(_ int, scores []float64) {
			if last := len(scores) - 1; last >= prompt {
				scores[last] = math.Inf(-1)
			}
		}
	case Scale:
		s.Scored = func(_ int, scores []float64) {
			for i := range scores {
				scores[i] *= 1.002
			}
		}
	}
	return s
}
