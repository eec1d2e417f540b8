// Package recount works out again, from a run folder's CSV and journal alone, what a report says, for tests: by other
// code than the report's, which it shares nothing with but the files and what words in them mean. Where both agree a
// figure is what the files say; where a definition itself is wrong both are.
//
// It doesn't work out again: lines of readings that are drawn; the largest tensor of models whose numbers are packed,
// which no CSV tells.
package recount

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
)

type span struct {
	Request int    `json:"request"`
	Name    string `json:"name"`
	Begin   int64  `json:"begin_ns"`
	End     int64  `json:"end_ns"`
}

type request struct {
	ID        int    `json:"id"`
	Phase     string `json:"phase"`
	Sent      int64  `json:"sent_ns"`
	Returned  int64  `json:"returned_ns"`
	PromptIDs []int  `json:"prompt_ids"`
	Prompted  int    `json:"prompt_tokens"`
	Generated int    `json:"generated"`
	Cached    *int   `json:"cached_tokens"`
	Text      string `json:"text"`
	Finish    string `json:"finish"`
	Due       int64  `json:"due_ns"`
	Kind      string `json:"kind"`
	Client    int    `json:"client"`
	Turn      int    `json:"turn"`
	Reported  map[string]float64
	spans     []span
	ids       []int
	times     []int64
}

// style is what of a cell figures of requests hang on.
type style struct {
	cache, isolation string
	perGeneration    bool // a process each, which loads the model
}

type attempt struct {
	id, cell, opener int
	counted          bool
	phases           []span
	stages           []span // of the load
	requests         []*request
	begin, end       int64
	load             float64  // the machine's average just before
	stolen           *float64 // seconds of processors' time; nil where nobody told
	totals           []total
}

type total struct {
	method        string
	at            int64
	rss, pss, uss float64 // MiB; NaN where there is none
	processes     int64
}

// folder is a run folder as it was read.
type folder struct {
	dir      string
	files    map[string][]row
	cells    []int
	engines  map[int]string
	traffic  map[int]*traffic // of cells that have one
	stops    map[int]*stop
	styles   map[int]style
	attempts []*attempt
	by       map[int]*attempt
	machine  machine
}

func read(dir string) (*folder, error) {
	f := &folder{dir: dir, files: map[string][]row{}, engines: map[int]string{}, traffic: map[int]*traffic{},
		stops: map[int]*stop{}, styles: map[int]style{}, by: map[int]*attempt{}}
	if err := f.journal(filepath.Join(dir, "journal.jsonl")); err != nil {
		return nil, err
	}
	if err := f.machine.read(filepath.Join(dir, "environment.json")); err != nil {
		return nil, err
	}
	if err := f.rows("totals.csv", f.total); err != nil {
		return nil, err
	}
	if err := f.rows("tokens.csv", f.token); err != nil {
		return nil, err
	}
	return f, nil
}

// eachLine goes through a journal. Some lines are long.
func eachLine(path string, each func([]byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if err := each(lines.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return lines.Err()
}

func (f *folder) journal(path string) error {
	err := eachLine(path, func(line []byte) error {
		var l struct {
			NS      int64 `json:"t_ns"`
			Attempt int
			Cell    *struct {
				ID      int
				Engine  string
				Traffic *traffic
				Cache   string `json:"prompt_cache"`
				Of      string `json:"isolation"`
				Each    bool   `json:"per_generation"`
			}
			Begin *struct {
				Cell     int
				Warmup   bool
				OpenedBy int     `json:"opened_by"`
				Load     float64 `json:"load1"`
				Scoring  json.RawMessage
			}
			Phase, Span *span
			Request     *request
			Stop        *stop
			End         *struct {
				Status string
				Stolen *float64 `json:"stolen_seconds"`
			}
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		a := f.by[l.Attempt]
		switch {
		case l.Cell != nil:
			f.cells, f.engines[l.Cell.ID] = append(f.cells, l.Cell.ID), l.Cell.Engine
			f.styles[l.Cell.ID] = style{l.Cell.Cache, l.Cell.Of, l.Cell.Each}
			if l.Cell.Traffic != nil {
				f.traffic[l.Cell.ID] = l.Cell.Traffic
			}
		case l.Stop != nil:
			f.stops[l.Stop.Cell] = l.Stop
		case l.Begin != nil:
			a = &attempt{id: l.Attempt, cell: l.Begin.Cell, opener: l.Begin.OpenedBy, counted: !l.Begin.Warmup,
				begin: l.NS, load: l.Begin.Load}
			if a.opener == 0 {
				a.opener = a.id
			}
			f.by[a.id] = a
			if l.Begin.Scoring == nil {
				f.attempts = append(f.attempts, a)
			}
		case a == nil: // of the run
		case l.Phase != nil:
			a.phases = append(a.phases, *l.Phase)
		case l.Request != nil:
			if l.Request.Finish == "failed" { // what it took is no answer's time
				l.Request.Phase = "failed"
			}
			a.requests = append(a.requests, l.Request)
		case l.Span != nil && l.Span.Request > 0:
			a.requests[l.Span.Request-1].spans = append(a.requests[l.Span.Request-1].spans, *l.Span)
		case l.Span != nil:
			a.stages = append(a.stages, *l.Span)
		case l.End != nil:
			a.counted = a.counted && l.End.Status == "ok"
			a.end, a.stolen = l.NS, l.End.Stolen
		}
		return nil
	})
	for _, a := range f.attempts {
		a.counted = a.counted && a.end > 0 // one that has no end was cut
	}
	return err
}

// row is one of a CSV file.
type row struct {
	at     map[string]int // of columns
	fields []string
}

// text is a field; empty where the file has no such column.
func (r row) text(name string) string {
	if at, ok := r.at[name]; ok {
		return r.fields[at]
	}
	return ""
}

// rows gives a CSV file's rows, which are read once.
func (f *folder) rows(name string, each func(row) error) error {
	if f.files[name] == nil {
		path := filepath.Join(f.dir, name)
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		records, err := csv.NewReader(file).ReadAll()
		if err != nil || len(records) == 0 {
			return fmt.Errorf("%s: %d rows, %w", path, len(records), err)
		}
		at := map[string]int{}
		for i, column := range records[0] {
			at[column] = i
		}
		f.files[name] = []row{}
		for _, fields := range records[1:] {
			f.files[name] = append(f.files[name], row{at, fields})
		}
	}
	for _, r := range f.files[name] {
		if err := each(r); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(f.dir, name), err)
		}
	}
	return nil
}

func whole(r row, name string) int64 {
	n, err := strconv.ParseInt(r.text(name), 10, 64)
	if err != nil {
		return math.MinInt64
	}
	return n
}

func size(r row, name string) float64 {
	v, err := strconv.ParseFloat(r.text(name), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

func (f *folder) total(r row) error {
	a := f.by[int(whole(r, "attempt"))]
	if a == nil {
		return fmt.Errorf("a total of no attempt: %v", r.fields)
	}
	a.totals = append(a.totals, total{r.text("method"), whole(r, "t_ns"), size(r, "rss_sum_mb"), size(r, "pss_mb"),
		size(r, "uss_mb"), whole(r, "processes")})
	return nil
}

func (f *folder) token(r row) error {
	a := f.by[int(whole(r, "attempt"))]
	if a == nil {
		return fmt.Errorf("a token of no attempt: %v", r.fields)
	}
	for _, q := range a.requests {
		if int64(q.ID) == whole(r, "request") {
			q.ids, q.times = append(q.ids, int(whole(r, "id"))), append(q.times, whole(r, "t_ns"))
		}
	}
	return nil
}
