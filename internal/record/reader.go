package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/lines"
	"llmparity/internal/kit/whole"
)

// Open reads a run folder, even while the run goes on or after it was killed: it ignores an incomplete last line, and
// attempts without an end are Interrupted. Any other invalid line is an error that names it.
func Open(dir string) (*Run, error) {
	r, err := newRun(dir)
	if err != nil {
		return nil, err
	}
	b := newBuilder(r)
	cut, err := lines.Each(filepath.Join(dir, journalFile), b.journal)
	if err != nil {
		return nil, notARun(err, dir)
	}
	r.warnCut(cut, journalFile)
	if err := b.readRows(dir); err != nil {
		return nil, notARun(err, dir)
	}
	b.missing()
	b.wholeScores()
	b.redone()
	r.Warnings = append(r.Warnings, r.changes()...)
	if r.Status == Interrupted {
		r.Running = running(dir)
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
	err := readJSON(filepath.Join(dir, metaFile), &r.Meta)
	if err == nil {
		err = r.checkSchema(filepath.Join(dir, metaFile))
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

func (r *Run) warnCut(cut bool, file string) {
	if cut {
		r.Warnings = append(r.Warnings, Warnf("cut", "%s: incomplete last line ignored (the run was interrupted "+
			"while writing it)", file))
	}
}

// builder assembles a Run from lines.
type builder struct {
	run      *Run
	attempts map[int]*Attempt
	cells    map[int]int // announced cells: their index in the run
	requests map[requestKey]*Request
	// the attempts that the last rows of samples.csv, totals.csv and metrics.csv belong to
	lastSample, lastTotal, lastMetric *Attempt
	last                              highest
}

// highest has the highest numbers ever used, committed or not, and the latest time.
type highest struct {
	NS              int64
	Attempt, Source int
}

func newBuilder(r *Run) *builder {
	return &builder{run: r, attempts: map[int]*Attempt{}, cells: map[int]int{}, requests: map[requestKey]*Request{}}
}

// requestKey identifies a request.
type requestKey struct{ attempt, request int }

func (b *builder) journal(line []byte) error {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	b.last.NS, b.last.Attempt = max(b.last.NS, e.T), max(b.last.Attempt, e.Attempt)
	if e.Source != nil {
		b.last.Source = max(b.last.Source, e.Source.ID)
	}
	return b.entry(e)
}

func (b *builder) entry(e entry) error {
	r := b.run
	switch {
	case r.newer && e == entry{T: e.T, Time: e.Time, Attempt: e.Attempt}: // of a kind that this version does not know
	case e.Cell != nil:
		at, again := b.cells[e.Cell.ID]
		if !again {
			at = len(r.Cells)
			b.cells[e.Cell.ID], r.Cells = at, append(r.Cells, Cell{})
		}
		r.Cells[at] = *e.Cell // a later line about it knows more
	case e.Done != nil:
		r.Status = e.Done.Status
	case e.Stop != nil:
		r.Stops[e.Stop.Cell] = *e.Stop
	case e.Resumed != nil:
		r.Resumes = append(r.Resumes, ResumedAt{e.T, *e.Resumed})
		r.Status = Interrupted // until its end is read
	case e.Warning != nil && e.Attempt == 0:
		if !slices.Contains(r.Warnings, *e.Warning) { // a resumed run repeats its warnings
			r.Warnings = append(r.Warnings, *e.Warning)
		}
	case e.Prediction != nil:
		r.Predictions[e.Prediction.Cell] = *e.Prediction
	case e.Risk != nil:
		r.Risks[e.Risk.Cell] = *e.Risk
	case e.Begin != nil:
		return b.begin(e)
	default:
		return b.add(e)
	}
	return nil
}

func (b *builder) begin(e entry) error {
	if _, twice := b.attempts[e.Attempt]; twice || e.Attempt < 1 {
		return fmt.Errorf("attempt %d begins twice or has no number", e.Attempt)
	}
	if _, announced := b.cells[e.Begin.Cell]; !announced {
		return fmt.Errorf("attempt %d: cell %d is not announced", e.Attempt, e.Begin.Cell)
	}
	a := &Attempt{ID: e.Attempt, Beginning: *e.Begin, opener: b.attempts[e.Begin.OpenedBy], BeginNS: e.T, EndNS: e.T,
		Status: Interrupted, Sources: map[int]Source{}}
	b.attempts[a.ID] = a
	if a.Scoring != nil {
		b.run.Scorings = append(b.run.Scorings, a)
		return nil
	}
	b.run.Attempts = append(b.run.Attempts, a)
	return nil
}

// add adds a line about an attempt.
func (b *builder) add(e entry) error {
	a := b.attempts[e.Attempt]
	if a == nil {
		return fmt.Errorf("attempt %d has no beginning", e.Attempt)
	}
	a.EndNS = e.T
	switch {
	case e.Source != nil:
		a.Sources[e.Source.ID] = e.Source.Source
	case e.Phase != nil:
		a.Phases = append(a.Phases, *e.Phase)
	case e.Span != nil:
		span := e.Span.NamedSpan
		if e.Span.Request == 0 {
			a.Stages = append(a.Stages, span)
			return nil
		}
		r := b.requests[requestKey{a.ID, e.Span.Request}]
		if r == nil {
			return fmt.Errorf("span %q belongs to request %d, which is missing", span.Name, e.Span.Request)
		}
		r.Spans = append(r.Spans, span)
	case e.Request != nil:
		q := e.Request.request()
		a.Requests = append(a.Requests, q)
		// of two requests with the same number, the first has the spans and tokens
		if key := (requestKey{a.ID, q.ID}); b.requests[key] == nil {
			b.requests[key] = q
		}
	case e.Event != nil:
		a.Events = append(a.Events, *e.Event)
	case e.Warning != nil:
		a.Warnings = append(a.Warnings, *e.Warning)
	case e.End != nil:
		a.ended = true
		a.Status, a.Class, a.Error, a.Cost, a.StolenS = e.End.Status, e.End.Class, e.End.Error, e.End.Cost, e.End.Stolen
		a.Fault = e.End.Fault
	default:
		return errors.New("unknown kind of line")
	}
	return nil
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

// piecesFile maps token ids to their texts. It is optional: outputs are compared by ids.
const piecesFile = "pieces.json"

// Pieces adds texts of tokens, by id.
func (w *Writer) Pieces(texts map[int]string) {
	if len(texts) == 0 || w.Err() != nil {
		return
	}
	path := filepath.Join(w.dir, piecesFile)
	all := map[int]string{}
	if readJSON(path, &all) != nil { // a resumed run has some
		all = map[int]string{}
	}
	maps.Copy(all, texts)
	err := whole.JSON(path, all)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(err)
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

// IsRun reports whether dir is a run folder, complete or not.
func IsRun(dir string) bool {
	for _, name := range []string{metaFile, journalFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Folders returns every run folder below root, or root itself, ordered by name. It doesn't follow links, so that
// latest is not counted twice.
func Folders(root string) ([]string, error) {
	const do = "name a folder that `llmparity run` wrote, or its parent"
	var out []string
	at, err := filepath.EvalSymlinks(root)
	if err == nil {
		err = filepath.WalkDir(at, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case path == at && err == nil && !entry.IsDir():
				return errors.New("not a folder")
			case path == at && err != nil:
				return err
			case err != nil || !entry.IsDir():
				return nil // no permission, or a file
			case path != at && strings.HasPrefix(entry.Name(), "."):
				return fs.SkipDir // unfinished
			case IsRun(path):
				out = append(out, path)
				return fs.SkipDir
			}
			return nil
		})
	}
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return nil, fault.Wrap(fault.BadRecord, err, do, "can't read %s", root)
	}
	if len(out) == 0 {
		return nil, fault.New(fault.BadRecord, do, "no run folder in %s", root)
	}
	return out, nil
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
