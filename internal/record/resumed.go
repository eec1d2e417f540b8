package record

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"llmparity/internal/whole"
)

// Resumed is a line of the journal: from here on another process has resumed the run.
type Resumed struct {
	Tool    Tool         `json:"tool"`
	Changed []Difference `json:"changed,omitempty"` // of the machine, and of whatever else is not as it was
	// SetBackNS is by how much the machine's clock stands before the record's last line: somebody has set it back. The
	// record's own times go on where they were.
	SetBackNS int64 `json:"clock_set_back_ns,omitempty"`
}

// Difference is something that is not as it was.
type Difference struct {
	What string `json:"what"`
	Was  string `json:"was"`
	Is   string `json:"is"`
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s, was %s", d.What, said(d.Is), said(d.Was))
}

func said(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// ResumedAt is Resumed as it was read.
type ResumedAt struct {
	NS int64
	Resumed
}

// Resumed says in the record who resumes it, and warns of what is not as it was. It comes before everything else
// that is written after Reopen.
func (w *Writer) Resumed(r Resumed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(w.raiseSchema()) // before the first line that an older reader would not know
	r.SetBackNS = w.setBack
	w.putLocked(entry{Resumed: &r})
	for _, warning := range r.warnings() {
		w.putLocked(entry{Warning: &warning})
	}
	w.sync()
}

// raiseSchema has run.json name this version's schema where an older one began the run: from now on lines follow that
// it did not have.
func (w *Writer) raiseSchema() error {
	if was := w.meta.Schema; was == Schema || was == "" { // "": this very process began it
		return nil
	}
	w.meta.Schema = Schema
	return replaceJSON(filepath.Join(w.dir, metaFile), w.meta)
}

// replaceJSON replaces a file in one step: whoever is killed meanwhile leaves the old one.
func replaceJSON(path string, v any) error {
	return whole.Write(path, func(to io.Writer) error {
		e := json.NewEncoder(to)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

func (r Resumed) warnings() []Warning {
	var out []Warning
	if len(r.Changed) > 0 {
		var all []string
		for _, d := range r.Changed {
			all = append(all, d.String())
		}
		out = append(out, Warning{Code: "resumed-elsewhere",
			Text: "the run was resumed where not everything is as it was when it began: " +
				strings.Join(all, "; ")})
	}
	if r.SetBackNS > 0 {
		out = append(out, Warning{Code: "clock-set-back",
			Text: fmt.Sprintf("when the run was resumed the machine's clock stood %.1f s before "+
				"the record's last line: times in the record go on from that line and are not the clock's",
				float64(r.SetBackNS)/1e9)})
	}
	return out
}

// attemptKey is what an attempt is for.
type attemptKey struct {
	cell, repetition int
	warmup, scoring  bool
}

func (a *Attempt) key() attemptKey {
	return attemptKey{a.Cell, a.Repetition, a.Warmup, a.Scoring != nil}
}

// redone puts aside what a resumed run has made again: attempts that were cut off, and such as failed and were tried
// again.
func (b *builder) redone() {
	if len(b.run.Resumes) == 0 {
		return
	}
	last := map[attemptKey]int64{} // when it was begun for the last time
	for _, all := range [][]*Attempt{b.run.Attempts, b.run.Scorings} {
		for _, a := range all {
			last[a.key()] = max(last[a.key()], a.BeginNS)
		}
	}
	again := func(a *Attempt) bool {
		if a.Status == OK {
			return false
		}
		for _, r := range b.run.Resumes {
			if r.NS >= a.BeginNS && r.NS <= last[a.key()] && a.BeginNS < last[a.key()] {
				return true
			}
		}
		return false
	}
	b.run.Attempts = b.putAside(b.run.Attempts, again)
	b.run.Scorings = b.putAside(b.run.Scorings, again)
	if len(b.run.Redone) > 0 {
		b.run.Warnings = append(b.run.Warnings, madeAgain(b.run.Redone))
	}
}

func (b *builder) putAside(all []*Attempt, again func(*Attempt) bool) []*Attempt {
	var kept []*Attempt
	for _, a := range all {
		if again(a) {
			b.run.Redone = append(b.run.Redone, a)
			continue
		}
		kept = append(kept, a)
	}
	return kept
}

// madeAgain says what must be known of figures that come of a second try.
func madeAgain(redone []*Attempt) Warning {
	failed := 0
	for _, a := range redone {
		if a.Status == Failed {
			failed++
		}
	}
	text := fmt.Sprintf("the run was resumed; attempts that were cut off and made again: %d", len(redone)-failed)
	if failed > 0 {
		text += fmt.Sprintf("; that had failed and were tried again: %d, so that what counts was chosen", failed)
	}
	return Warning{Code: "made-again", Text: text}
}
