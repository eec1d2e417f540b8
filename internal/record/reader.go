package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
)

// Open reads a run folder, even while the run goes on or after it was killed: it ignores an incomplete last line, and
// attempts without an end are Interrupted. Any other invalid line is an error that names it.
func Open(dir string) (*Run, error) {
	r, err := newRun(dir)
	if err != nil {
		return nil, err
	}
	b, cut, err := readJournal(r)
	if err != nil {
		return nil, notARun(err, dir)
	}
	r.warnCut(cut, JournalFile)
	if err := b.readRows(dir); err != nil {
		return nil, notARun(err, dir)
	}
	b.missing()
	b.wholeScores()
	b.redone()
	r.Warnings = append(r.Warnings, r.changes()...)
	if r.Status == Interrupted {
		r.Running = whole.Holder(filepath.Join(dir, lockFile))
	}
	if r.Running > 0 { // the launch that is measured now has not failed
		r.Attempts = slices.DeleteFunc(r.Attempts, func(a *Attempt) bool { return !a.ended })
	}
	r.readPieces(filepath.Join(dir, piecesFile))
	return r, nil
}

// newRun reads what is known before the first line.
func newRun(dir string) (*Run, error) {
	r := &Run{Dir: dir, Status: Interrupted, Predictions: map[int]Prediction{}, Risks: map[int]Risk{},
		Stops: map[int]Stop{}}
	err := readJSON(filepath.Join(dir, MetaFile), &r.Meta)
	if err == nil {
		err = r.checkSchema(filepath.Join(dir, MetaFile))
	}
	if err == nil {
		err = readJSON(filepath.Join(dir, envFile), &r.Environment)
	}
	if err != nil {
		return nil, notARun(err, dir)
	}
	return r, nil
}

// notARun returns an error that has a class as it is, and that of a missing file as one of a folder that is not a run.
func notARun(err error, dir string) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if missing, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, os.ErrNotExist) {
		return fault.New(fault.BadRecord, "name a run folder, such as results/latest",
			"%s is not a run folder: it has no %s", dir, filepath.Base(missing.Path))
	}
	return fault.Wrap(fault.BadRecord, err, "", "can't read %s", dir)
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err == nil {
		if err := json.Unmarshal(text, into); err != nil {
			return fault.Wrap(fault.BadRecord, err, "copy the run folder again, or repeat the run", "%s is damaged",
				path)
		}
	}
	return err
}

// ReadMeta reads a run's run.json alone.
func ReadMeta(dir string) (m Meta, err error) {
	return m, readJSON(filepath.Join(dir, MetaFile), &m)
}

func (r *Run) warnCut(cut bool, file string) {
	if cut {
		r.Warnings = append(r.Warnings, Warnf("cut", "%s: incomplete last line ignored (the run was interrupted "+
			"while writing it)", file))
	}
}

// missing warns if tokens of requests are missing.
func (b *builder) missing() {
	for _, a := range b.run.Attempts {
		for _, q := range a.Requests {
			if q.tokens != len(q.Tokens) {
				a.Warnings = append(a.Warnings, Warnf("tokens-missing",
					"request %d generated %d tokens; the record has %d", q.ID, q.tokens, len(q.Tokens)))
			}
		}
	}
}

// wholeScores drops incomplete or invalid scores of finished attempts and warns.
func (b *builder) wholeScores() {
	for _, a := range b.run.Scorings {
		if a.Status != OK {
			a.Scores = nil
			continue
		}
		if err := a.soundScores(); err != nil {
			a.Scores = nil
			warning := Warnf("scores-missing", "scores of attempt %d ignored: %v", a.ID, err)
			b.run.Warnings = append(b.run.Warnings, warning)
		}
	}
}

func (a *Attempt) soundScores() error {
	if want := a.Scoring.Tokens; len(a.Scores) != want {
		return fmt.Errorf("%d positions were scored, but the record has %d", want, len(a.Scores))
	}
	for i, s := range a.Scores {
		if s.Position != i {
			return fmt.Errorf("position %d in place of %d", s.Position, i)
		}
		if s.Forced == NoID {
			return fmt.Errorf("position %d: no forced token", i)
		}
		if err := s.Sound(); err != nil {
			return err
		}
	}
	return nil
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

// attemptKey identifies what an attempt is for.
type attemptKey struct {
	cell, repetition int
	warmup, scoring  bool
	window           int
	check, anchor    bool
}

func (a *Attempt) key() attemptKey {
	return attemptKey{a.Cell, a.Repetition, a.Warmup, a.Scoring != nil, a.Scoring.At().Number,
		a.Scoring.Checks(), a.Scoring.Anchored()}
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

// parseSchema reads "llmparity.run/MAJOR" or "llmparity.run/MAJOR.MINOR". Another major version can't be read; the
// additions of a minor version can be ignored.
func parseSchema(text string) (major, minor int, ok bool) {
	n, _ := fmt.Sscanf(text+".0", "llmparity.run/%d.%d", &major, &minor)
	return major, minor, n == 2
}

// checkSchema refuses schemas that can't be read. It warns of a newer one: the folder may hold more than is read.
func (r *Run) checkSchema(path string) error {
	ourMajor, ourMinor, _ := parseSchema(Schema)
	major, minor, ok := parseSchema(r.Meta.Schema)
	switch {
	case !ok:
		return fault.New(fault.BadRecord, "read it with the version that wrote it",
			"%s: unknown schema %q (this version reads %q)", path, r.Meta.Schema, Schema)
	case major != ourMajor:
		do := "read it with llmparity " + writer(r.Meta.Tool)
		if major > ourMajor {
			do += " or newer"
		}
		return fault.New(fault.BadRecord, do, "%s: unsupported schema %q (this version reads %q)", path, r.Meta.Schema,
			Schema)
	case minor > ourMinor:
		r.newer = true
		r.Warnings = append(r.Warnings, Warnf("newer-schema", "written by a newer llmparity (%s, schema %s; this "+
			"version reads %s); unknown data is ignored", writer(r.Meta.Tool), r.Meta.Schema, Schema))
	}
	return nil
}

func writer(t Tool) string {
	if t.Version == "" {
		return "(unknown version)"
	}
	return t.Version
}

// readPieces reads the texts of tokens, if there are any.
func (r *Run) readPieces(path string) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err == nil {
		err = json.Unmarshal(text, &r.Pieces)
	}
	if err != nil {
		r.Pieces = nil
		r.Warnings = append(r.Warnings, Warnf("pieces", "can't read the texts of tokens (%s: %v); ids are shown instead",
			filepath.Base(path), err))
	}
}

// changes warns if the state of the machine changed between launches.
func (r *Run) changes() []Warning {
	var out []Warning
	if text := r.differed(func(m *MachineState) string { return m.Governor }); text != "" {
		out = append(out, Warnf("governor-changed", "CPU frequency governor changed during the run: %s", text))
	}
	frequency := func(m *MachineState) string {
		if m.MaxMHz == 0 {
			return ""
		}
		return fmt.Sprintf("%.0f MHz", m.MaxMHz)
	}
	if text := r.differed(frequency); text != "" {
		out = append(out, Warnf("frequency-limit-changed", "CPU frequency limit changed during the run: %s", text))
	}
	return append(out, r.throttled()...)
}

// differed lists the values that a setting had, each with the first attempt that had it; empty if it never changed.
func (r *Run) differed(of func(*MachineState) string) string {
	const most = 6
	var parts []string
	last, changes := "", 0
	for _, a := range r.Attempts {
		if a.Machine == nil || of(a.Machine) == "" || of(a.Machine) == last {
			continue
		}
		last = of(a.Machine)
		if changes++; changes <= most {
			parts = append(parts, fmt.Sprintf("%s from attempt %d", last, a.ID))
		}
	}
	if changes < 2 {
		return ""
	}
	if changes > most {
		parts = append(parts, fmt.Sprintf("and %d more changes", changes-most))
	}
	return strings.Join(parts, ", ")
}

// throttled warns of thermal throttling between the starts of attempts. A reboot resets the counter.
func (r *Run) throttled() []Warning {
	var before *Attempt
	times, stretches, first := int64(0), 0, ""
	for _, a := range r.Attempts {
		if a.Machine == nil || a.Machine.Throttled == nil {
			continue
		}
		if before != nil {
			if n := *a.Machine.Throttled - *before.Machine.Throttled; n > 0 {
				if times += n; stretches == 0 {
					first = fmt.Sprintf("first between attempts %d and %d", before.ID, a.ID)
				}
				stretches++
			}
		}
		before = a
	}
	if times == 0 {
		return nil
	}
	return []Warning{{Code: "throttled", Text: fmt.Sprintf("CPUs throttled because of heat (events: %d; intervals "+
		"between launches with events: %d, %s); speeds may be too low", times, stretches, first)}}
}
