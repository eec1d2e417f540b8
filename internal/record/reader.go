package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/fault"
)

// Open reads a run folder, also one that is still written to or whose run was killed: a last line that was cut is left out,
// and an attempt without an end is Interrupted. A line that is wrong elsewhere is an error that names it.
func Open(dir string) (*Run, error) {
	r := &Run{Dir: dir, Status: Interrupted, Predictions: map[int]Prediction{}, Risks: map[int]Risk{}}
	if err := readJSON(filepath.Join(dir, metaFile), &r.Meta); err != nil {
		return nil, notARun(err, dir)
	}
	newer, err := r.checkSchema(filepath.Join(dir, metaFile))
	if err != nil {
		return nil, err
	}
	if err := readJSON(filepath.Join(dir, envFile), &r.Environment); err != nil {
		return nil, notARun(err, dir)
	}
	b := &builder{run: r, attempts: map[int]*Attempt{}, tokens: map[*Request]int{}, newer: newer}
	if err := eachLine(filepath.Join(dir, journalFile), r, b.journal); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name string
		add  func(row) error
	}{{tokensFile, b.token}, {samplesFile, b.sample}, {totalsFile, b.total}, {metricsFile, b.metric}, {scoresFile, b.score}} {
		path := filepath.Join(dir, f.name)
		if _, err := os.Stat(path); (f.name == metricsFile || f.name == scoresFile) && errors.Is(err, os.ErrNotExist) {
			continue // older runs have none
		}
		if err := eachRow(path, r, f.add); err != nil {
			return nil, err
		}
	}
	b.missing()
	b.wholeScores()
	return r, nil
}

func notARun(err error, dir string) error {
	var missing *fs.PathError
	if errors.Is(err, os.ErrNotExist) && errors.As(err, &missing) {
		return fault.New(fault.BadRecord, "name a folder that `llmparity run` wrote, such as results/latest",
			"%s is not a run folder: it has no %s", dir, filepath.Base(missing.Path))
	}
	return fault.Wrap(fault.BadRecord, err, "", "%s can't be read", dir)
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// eachLine calls f for every whole line of a file.
func eachLine(path string, r *Run, f func(line []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return notARun(err, filepath.Dir(path))
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 256<<10)
	var line []byte
	for n := 1; ; n++ {
		line, err = readLine(in, line[:0])
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				r.Warnings = append(r.Warnings, Warning{Code: "cut",
					Text: fmt.Sprintf("the last line of %s was cut by the run's end and is left out", filepath.Base(path))})
			}
			return nil
		}
		if err == nil {
			err = f(line)
		}
		if err != nil {
			return fault.Wrap(fault.BadRecord, err, "", "%s line %d", path, n)
		}
	}
}

func readLine(in *bufio.Reader, line []byte) ([]byte, error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte("\n")), err
		}
	}
}

// row is a CSV row with its columns' names.
type row struct {
	column map[string]int
	fields []string
}

// eachRow reads a CSV file whose rows are single lines: no field that we write holds a newline.
func eachRow(path string, r *Run, f func(row) error) error {
	var columns map[string]int
	return eachLine(path, r, func(line []byte) error {
		fields, err := splitCSV(string(line))
		if err != nil {
			return err
		}
		if columns == nil {
			columns = map[string]int{}
			for i, name := range fields {
				columns[name] = i
			}
			return nil
		}
		if len(fields) != len(columns) {
			return fmt.Errorf("%d fields, the header has %d", len(fields), len(columns))
		}
		return f(row{columns, fields})
	})
}

func splitCSV(line string) ([]string, error) {
	if !strings.Contains(line, `"`) {
		return strings.Split(line, ","), nil
	}
	var fields []string
	for {
		if !strings.HasPrefix(line, `"`) {
			field, rest, more := strings.Cut(line, ",")
			fields = append(fields, field)
			if !more {
				return fields, nil
			}
			line = rest
			continue
		}
		var field strings.Builder
		line = line[1:]
		for {
			part, rest, closed := strings.Cut(line, `"`)
			if !closed {
				return nil, errors.New("a quoted field is not closed")
			}
			field.WriteString(part)
			line = rest
			if !strings.HasPrefix(line, `"`) {
				break
			}
			field.WriteByte('"')
			line = line[1:]
		}
		fields = append(fields, field.String())
		if line == "" {
			return fields, nil
		}
		if line[0] != ',' {
			return nil, errors.New("text after a quoted field")
		}
		line = line[1:]
	}
}

func (r row) text(column string) (string, error) {
	i, ok := r.column[column]
	if !ok {
		return "", fmt.Errorf("there is no column %q", column)
	}
	return r.fields[i], nil
}

// edge is the phase that a reading ends; older runs don't say.
func (r row) edge() Phase {
	if i, ok := r.column["edge"]; ok {
		return Phase(r.fields[i])
	}
	return ""
}

func (r row) integer(column string) (int64, error) {
	s, err := r.text(column)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("column %s: %q is not a whole number", column, s)
	}
	return n, nil
}

// mb reads a size; an empty field is NaN.
func (r row) mb(column string) (float64, error) {
	s, err := r.text(column)
	if err != nil {
		return 0, err
	}
	if s == "" {
		return math.NaN(), nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
		return 0, fmt.Errorf("column %s: %q is not a size in MiB", column, s)
	}
	return f, nil
}

// integers and sizes read several columns, stopping at the first that is wrong.
func (r row) integers(into map[string]*int64) error {
	for column, p := range into {
		n, err := r.integer(column)
		if err != nil {
			return err
		}
		*p = n
	}
	return nil
}

func (r row) sizes(into map[string]*float64) error {
	for column, p := range into {
		f, err := r.mb(column)
		if err != nil {
			return err
		}
		*p = f
	}
	return nil
}

// builder puts lines together into a Run.
type builder struct {
	run      *Run
	attempts map[int]*Attempt
	tokens   map[*Request]int // as many as the journal says
	newer    bool             // than this version
	left     bool             // lines of kinds that nobody here knows
}

func (b *builder) attempt(id int64) (*Attempt, error) {
	a, ok := b.attempts[int(id)]
	if !ok {
		return nil, fmt.Errorf("attempt %d was never begun", id)
	}
	return a, nil
}

// formerlyReused is what older runs have in place of the isolation where repetitions reused launches: that of the launch is not
// known.
const formerlyReused = "reused"

func (b *builder) journal(line []byte) error {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	switch {
	case b.unknown(&e):
		return nil
	case e.Cell != nil:
		if e.Cell.Isolation == formerlyReused {
			e.Cell.Isolation, e.Cell.Reused = "", true
		}
		b.run.Cells = append(b.run.Cells, *e.Cell)
		return nil
	case e.Done != nil:
		b.run.Status = e.Done.Status
		return nil
	case e.Warning != nil && e.Attempt == 0:
		b.run.Warnings = append(b.run.Warnings, *e.Warning)
		return nil
	case e.Begin != nil:
		return b.begin(e)
	case e.Prediction != nil:
		b.run.Predictions[e.Prediction.Cell] = *e.Prediction
		return b.announced(e.Prediction.Cell)
	case e.Risk != nil:
		b.run.Risks[e.Risk.Cell] = *e.Risk
		return b.announced(e.Risk.Cell)
	}
	a, err := b.attempt(int64(e.Attempt))
	if err != nil {
		return err
	}
	if err := a.add(e); err != nil {
		return err
	}
	if e.Request != nil {
		b.tokens[a.Requests[len(a.Requests)-1]] = e.Request.Tokens
	}
	return nil
}

func (b *builder) announced(cell int) error {
	if !slices.ContainsFunc(b.run.Cells, func(c Cell) bool { return c.ID == cell }) {
		return fmt.Errorf("cell %d was never announced", cell)
	}
	return nil
}

func (b *builder) begin(e entry) error {
	if _, twice := b.attempts[e.Attempt]; twice || e.Attempt < 1 {
		return fmt.Errorf("attempt %d is begun twice or has no number", e.Attempt)
	}
	if err := b.announced(e.Begin.Cell); err != nil {
		return fmt.Errorf("attempt %d: %w", e.Attempt, err)
	}
	if of := e.Begin.OpenedBy; of != 0 && (b.attempts[of] == nil || b.attempts[of].Cell != e.Begin.Cell) {
		return fmt.Errorf("attempt %d goes on in the session of attempt %d, which is none of its cell's", e.Attempt, of)
	}
	a := &Attempt{ID: e.Attempt, Cell: e.Begin.Cell, Repetition: e.Begin.Repetition, Warmup: e.Begin.Warmup, Load1: e.Begin.Load1,
		OpenedBy: e.Begin.OpenedBy, opener: b.attempts[e.Begin.OpenedBy], BeginNS: e.T, EndNS: e.T, Status: Interrupted,
		Sources: map[int]Source{}, Scoring: e.Begin.Scoring}
	b.attempts[a.ID] = a
	if a.Scoring != nil {
		b.run.Scorings = append(b.run.Scorings, a)
		return nil
	}
	b.run.Attempts = append(b.run.Attempts, a)
	return nil
}

func (a *Attempt) add(e entry) error {
	a.EndNS = e.T
	switch {
	case e.Source != nil:
		a.Sources[e.Source.ID] = e.Source.Source
	case e.Phase != nil:
		a.Phases = append(a.Phases, PhaseSpan{e.Phase.Name, e.Phase.Begin, e.Phase.End})
	case e.Span != nil:
		span := NamedSpan{e.Span.Name, e.Span.Begin, e.Span.End, e.Span.How}
		if e.Span.Request == 0 {
			a.Stages = append(a.Stages, span)
			return nil
		}
		r := a.request(e.Span.Request)
		if r == nil {
			return fmt.Errorf("span %q belongs to request %d, which is not there", span.Name, e.Span.Request)
		}
		r.Spans = append(r.Spans, span)
	case e.Request != nil:
		q := e.Request
		a.Requests = append(a.Requests, &Request{ID: q.ID, Phase: q.Phase, SentNS: q.Sent, ReturnedNS: q.Returned,
			PromptIDs:    q.PromptIDs,
			PromptTokens: q.PromptTokens, Generated: q.Generated, CachedTokens: q.cached(), Text: q.Text, Finish: q.Finish,
			Reported: q.Reported})
	case e.Event != nil:
		a.Events = append(a.Events, EventAt{e.T, *e.Event})
	case e.Warning != nil:
		a.Warnings = append(a.Warnings, *e.Warning)
	case e.End != nil:
		a.Status, a.Class, a.Error, a.Cost = e.End.Status, e.End.Class, e.End.Error, e.End.Cost
	default:
		return errors.New("a line of no known kind")
	}
	return nil
}

func (a *Attempt) request(id int) *Request {
	for _, r := range a.Requests {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// token drops the tokens of a request that never reached the journal: rows are flushed before it.
func (b *builder) token(r row) error {
	var attempt, request, index, id, ns int64
	if err := r.integers(map[string]*int64{"attempt": &attempt, "request": &request, "index": &index, "id": &id,
		"t_ns": &ns}); err != nil {
		return err
	}
	a, ok := b.attempts[int(attempt)]
	if !ok {
		return nil
	}
	if q := a.request(int(request)); q != nil {
		q.Tokens = append(q.Tokens, TokenRow{int(index), int(id), ns})
	}
	return nil
}

// missing warns of requests whose tokens are not all here.
func (b *builder) missing() {
	for _, a := range b.run.Attempts {
		for _, q := range a.Requests {
			if want := b.tokens[q]; want != len(q.Tokens) {
				a.Warnings = append(a.Warnings, Warning{Code: "tokens-missing", Text: fmt.Sprintf(
					"request %d has %d tokens, and %d of them are in the record", q.ID, want, len(q.Tokens))})
			}
		}
	}
}

// sample drops rows of an attempt or source that never reached the journal: rows are flushed before it.
func (b *builder) sample(r row) error {
	var s SampleRow
	var attempt, source int64
	if err := r.integers(map[string]*int64{"attempt": &attempt, "source": &source, "t_ns": &s.NS,
		"read_ns": &s.ReadNS}); err != nil {
		return err
	}
	if err := r.sizes(map[string]*float64{"rss_mb": &s.RSS, "vms_mb": &s.VMS, "pss_mb": &s.PSS, "uss_mb": &s.USS,
		"swap_mb": &s.Swap, "hwm_mb": &s.HWM}); err != nil {
		return err
	}
	a, ok := b.attempts[int(attempt)]
	if !ok {
		return nil
	}
	if _, ok := a.Sources[int(source)]; ok {
		s.Source, s.Edge = int(source), r.edge()
		a.Samples = append(a.Samples, s)
	}
	return nil
}

// metric drops rows as sample does.
func (b *builder) metric(r row) error {
	var m MetricRow
	var attempt, source int64
	if err := r.integers(map[string]*int64{"attempt": &attempt, "source": &source, "t_ns": &m.NS,
		"read_ns": &m.ReadNS}); err != nil {
		return err
	}
	name, err := r.text("name")
	if err != nil {
		return err
	}
	value, err := r.text("value")
	if err != nil {
		return err
	}
	if m.Value, err = strconv.ParseFloat(value, 64); err != nil || math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
		return fmt.Errorf("column value: %q is not a number", value)
	}
	a, ok := b.attempts[int(attempt)]
	if !ok {
		return nil
	}
	if _, ok := a.Sources[int(source)]; ok {
		m.Source, m.Name, m.Edge = int(source), name, r.edge()
		a.Metrics = append(a.Metrics, m)
	}
	return nil
}

func (b *builder) total(r row) error {
	var t TotalRow
	var attempt, processes int64
	if err := r.integers(map[string]*int64{"attempt": &attempt, "processes": &processes, "t_ns": &t.NS,
		"read_ns": &t.ReadNS}); err != nil {
		return err
	}
	if err := r.sizes(map[string]*float64{"rss_sum_mb": &t.RSS, "vms_sum_mb": &t.VMS, "pss_mb": &t.PSS, "uss_mb": &t.USS,
		"swap_mb": &t.Swap}); err != nil {
		return err
	}
	method, err := r.text("method")
	if err != nil {
		return err
	}
	t.Method, t.Processes = method, int(processes)
	if a, ok := b.attempts[int(attempt)]; ok {
		a.Totals = append(a.Totals, t)
	}
	return nil
}
