package truth

import (
	"fmt"
	"strings"
	"time"

	"llmparity/internal/record"
)

// Schema identifies the report's JSON.
const Schema = "llmparity.truth/1"

// Report is what was found out on a machine, and where that was.
type Report struct {
	Schema  string    `json:"schema"`
	At      time.Time `json:"at"`
	Machine string    `json:"machine"`
	Size    int64     `json:"size_bytes"`
	Repeats int       `json:"repeats"`
	Parts   []Part    `json:"parts"`
	// Contradictions are the cells that are not what the documentation leads to expect of this platform.
	Contradictions []string `json:"contradictions,omitempty"`
}

// Part is a matrix, and what it is true of.
type Part struct {
	Matrix   Matrix           `json:"matrix"`
	Facts    []Fact           `json:"facts,omitempty"`
	Warnings []record.Warning `json:"warnings,omitempty"`
}

// Fact is something of a part's surroundings.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Conclude judges the whole.
func (r *Report) Conclude() {
	r.Schema = Schema
	for i, p := range r.Parts {
		r.Contradictions = append(r.Contradictions, p.Matrix.Contradictions()...)
		for _, line := range p.Matrix.Unsteady() {
			r.Parts[i].Warnings = append(r.Parts[i].Warnings, record.Warning{Code: "unsteady", Text: line})
		}
	}
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

// Text is the report for a terminal.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", r.Machine, r.how())
	for _, p := range r.Parts {
		fmt.Fprintf(&b, "\n%s", p.Matrix.Title)
		if len(p.Facts) > 0 {
			fmt.Fprintf(&b, ": %s", p.facts())
		}
		fmt.Fprintf(&b, "\n\n%s", p.Matrix.Text())
		for _, w := range p.Warnings {
			fmt.Fprintf(&b, "warning: %s\n", w.Text)
		}
	}
	fmt.Fprintf(&b, "\n%s\n", legend)
	for _, c := range r.Contradictions {
		fmt.Fprintf(&b, "contradiction: %s\n", c)
	}
	return b.String()
}
