package truth

import (
	"fmt"
	"strings"
	"time"

	"llmparity/internal/record"
)

// Report is the result of a measurement on a machine.
type Report struct {
	At      time.Time
	Machine string
	Size    int64
	Repeats int
	Parts   []Part
}

// Part is a matrix with its circumstances.
type Part struct {
	Matrix   Matrix
	Facts    []Fact
	Warnings []record.Warning
}

// Fact is a circumstance, such as a version.
type Fact struct{ Name, Value string }

// Contradictions lists cells that differ from the expectation for this platform.
func (r Report) Contradictions() []string {
	var all []string
	for _, p := range r.Parts {
		all = append(all, p.Matrix.Contradictions()...)
	}
	return all
}

// legend explains the cells.
const legend = "yes: moved by the size, within 3%; no: moved by less than 3 MiB; other: moved by another amount; " +
	"-: not available here; !: not as expected for this platform"

func (r Report) how() string {
	times := "once"
	if r.Repeats > 1 {
		times = fmt.Sprintf("%d times, medians", r.Repeats)
	}
	return fmt.Sprintf("%d MiB of each kind, %s; %s", r.Size/MiB, times, r.At.Format(time.DateOnly))
}

func (p Part) facts() string {
	var all []string
	for _, f := range p.Facts {
		all = append(all, f.Name+" "+f.Value)
	}
	return strings.Join(all, "; ")
}
