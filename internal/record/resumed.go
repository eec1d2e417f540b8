package record

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Resumed is a line of the journal: another process resumes the run here.
type Resumed struct {
	Tool    Tool         `json:"tool"`              // program that resumes the run
	Changed []Difference `json:"changed,omitempty"` // differences from the start of the run
	// SetBackNS is how far the machine's clock was behind the record's last line, in nanoseconds. Times in the record
	// continue from that line.
	SetBackNS int64 `json:"clock_set_back_ns,omitempty"`
}

// Difference is a property that changed.
type Difference struct {
	What string `json:"what"` // the property
	Was  string `json:"was"`  // at the start of the run
	Is   string `json:"is"`   // now
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s, was %s", d.What, cmp.Or(d.Is, "unknown"), cmp.Or(d.Was, "unknown"))
}

// ResumedAt is Resumed as it was read.
type ResumedAt struct {
	NS int64
	Resumed
}

// Resumed records that this process resumes the run, with warnings about what changed. It must come first after Reopen.
func (w *Writer) Resumed(r Resumed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.SetBackNS = w.setBack
	w.putLocked(entry{Resumed: &r})
	if len(r.Changed) > 0 {
		var all []string
		for _, d := range r.Changed {
			all = append(all, d.String())
		}
		w.putLocked(entry{Warning: &Warning{Code: "resumed-elsewhere",
			Text: "changed between the start of the run and its resumption: " + strings.Join(all, "; ")}})
	}
	if r.SetBackNS > 0 {
		back := Warnf("clock-set-back", "the machine's clock was set back: on resuming it was %.1f s behind the last "+
			"line of the record; times in the record continue from that line", float64(r.SetBackNS)/1e9)
		w.putLocked(entry{Warning: &back})
	}
	w.sync()
}

// attemptKey identifies what an attempt is for.
type attemptKey struct {
	cell, repetition int
	warmup, scoring  bool
	window           int
}

func (a *Attempt) key() attemptKey {
	return attemptKey{a.Cell, a.Repetition, a.Warmup, a.Scoring != nil, a.Scoring.At().Number}
}

// redone moves attempts that a resumed run repeated, because they were interrupted or failed, to Run.Redone.
func (b *builder) redone() {
	r := b.run
	last := map[attemptKey]int64{} // latest beginning
	for _, a := range slices.Concat(r.Attempts, r.Scorings) {
		last[a.key()] = max(last[a.key()], a.BeginNS)
	}
	again := func(a *Attempt) bool {
		repeated := a.Status != OK && slices.ContainsFunc(r.Resumes, func(at ResumedAt) bool {
			return at.NS >= a.BeginNS && at.NS <= last[a.key()] && a.BeginNS < last[a.key()]
		})
		if repeated {
			r.Redone = append(r.Redone, a)
		}
		return repeated
	}
	r.Attempts, r.Scorings = slices.DeleteFunc(r.Attempts, again), slices.DeleteFunc(r.Scorings, again)
	if len(r.Redone) > 0 {
		r.Warnings = append(r.Warnings, madeAgain(r.Redone))
	}
}

// madeAgain warns of repeated attempts.
func madeAgain(redone []*Attempt) Warning {
	failed := 0
	for _, a := range redone {
		if a.Status == Failed {
			failed++
		}
	}
	text := fmt.Sprintf("the run was resumed; interrupted attempts repeated: %d", len(redone)-failed)
	if failed > 0 {
		text += fmt.Sprintf("; failed attempts repeated: %d (a bias: only failures got another try)", failed)
	}
	return Warning{Code: "made-again", Text: text}
}
