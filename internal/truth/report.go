package truth

import (
	"fmt"
	"strings"
	"time"

	"llmparity/internal/record"
)

// Report is what was found out on a machine, and where that was.
type Report struct {
	At      time.Time
	Machine string
	Size    int64
	Repeats int
	Parts   []Part
}

// Part is a matrix, and what it is true of.
type Part struct {
	Matrix   Matrix
	Facts    []Fact
	Warnings []record.Warning
}

// Fact is something of a part's surroundings.
type Fact struct{ Name, Value string }

// Contradictions are the cells that are not what the documentation leads to expect of this platform.
func (r Report) Contradictions() []string {
	var all []string
	for _, p := range r.Parts {
		all = append(all, p.Matrix.Contradictions()...)
	}
	return all
}

// legend says how cells are read.
const legend = "yes: it moved by the size, within 3 %; no: by less than 3 MiB; other: by something else; -: it can't be read here; " +
	"!: not what is expected of this platform"

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
