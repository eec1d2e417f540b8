package byhand

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"llmparity/assets/charts"
	"llmparity/browser/byhand/visitor"
	"llmparity/browser/gate"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/machine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/record"
)

// Run is a run of this server's, as the table shows it.
type Run struct {
	ID     int                 `json:"id"`
	Who    string              `json:"who"`              // browser and device
	Engine string              `json:"engine,omitempty"` // title of the one that was chosen; empty: a plan has it
	Asked  string              `json:"asked,omitempty"`  // what else was chosen
	Error  string              `json:"error,omitempty"`  // a line
	Saved  string              `json:"saved,omitempty"`  // folder; empty: it goes with the server
	Cells  []map[string]string `json:"cells"`            // columns of summary.csv

	dir string
}

// shown are the runs for the page. The caller holds the lock.
func (s *Server) shown() (out []Run) {
	for _, r := range s.runs {
		out = append(out, *r)
	}
	return out
}

// read reads what became of a run.
func (r *Run) read(failed error) {
	if failed != nil {
		r.Error = fault.OneLine(failed.Error())
	}
	f, err := os.Open(filepath.Join(r.dir, "summary.csv"))
	if err != nil {
		return // it ended before there was one
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) == 0 {
		return
	}
	for _, row := range rows[1:] {
		cell := map[string]string{}
		for i, name := range rows[0] {
			if columns.MatchString(name) && row[i] != "" {
				cell[name] = row[i]
			}
		}
		r.Cells = append(r.Cells, cell)
	}
}

// columns matches those that the table has, with their intervals.
var columns = regexp.MustCompile(`^(engine|engine_version|model|device|device_class|launches_counted|launches_failed|failures|warnings|` +
	`refused|(decode_tokens_per_s|ttft_ms|load_time_ms|peak_pss_mb|memory_increase_mb|model_weights_mb|kv_cache_mb|longest_block_ms|` +
	`tokens_generated|cpu_per_token_ms)(_lo|_hi|_n)?)$`)

// events passes on a run's lines of JSON, without the paths of this machine.
type events struct {
	visit *visit
	run   *Run
}

func (e *events) line(text string) {
	var event map[string]any
	if json.Unmarshal([]byte(text), &event) != nil {
		return
	}
	if dir, ok := event["record"].(string); ok {
		e.run.dir = dir
	}
	for _, key := range []string{"record", "report", "schema"} {
		delete(event, key)
	}
	if event["kind"] == "launched" || event["phase"] == string(record.Measure) && event["kind"] == "phase" {
		e.visit.mu.Lock()
		e.visit.generated = nil
		e.visit.mu.Unlock()
	}
	e.visit.Send(&toPage{Event: event})
}

// run finds a run by its number in a request.
func (s *Server) run(r *http.Request) *Run {
	n := atoi(r.PathValue("n"))
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.runs, func(r *Run) bool { return r.ID == n }); i >= 0 {
		return s.runs[i]
	}
	return nil
}

// export sends a run as a file.
func (s *Server) export(w http.ResponseWriter, r *http.Request) {
	run, format := s.run(r), r.PathValue("format")
	if run == nil || !slices.Contains([]string{"csv", "json", "html"}, format) {
		http.NotFound(w, r)
		return
	}
	name := filepath.Base(run.dir) + "." + format
	w.Header().Set("Content-Disposition", "attachment; filename="+strconv.Quote(name))
	w.Header().Set("Content-Type", "application/octet-stream")
	var err error
	if format == "html" {
		http.ServeFile(w, r, filepath.Join(run.dir, "report.html"))
	} else if err = s.Export(w, run.dir, format); err != nil {
		http.Error(w, fault.OneLine(err.Error()), http.StatusInternalServerError)
	}
}

// save keeps a run.
func (s *Server) save(w http.ResponseWriter, r *http.Request) {
	run := s.run(r)
	if run == nil {
		http.NotFound(w, r)
		return
	}
	dir, err := s.keep(run)
	if err != nil {
		http.Error(w, fault.OneLine(err.Error()), http.StatusInternalServerError)
		return
	}
	answer(w, map[string]string{"saved": dir})
}

// Bounds of a file that is sent: its size, and the time for which nothing may come.
const (
	mostFile = 1 << 40
	fileTime = 30 * time.Second
)

// upload takes a model's file. What is no GGUF is refused when its first bytes are here.
func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	title := visitor.Limited(fault.OneLine(filepath.Base(r.PathValue("name"))), 100)
	path, err := s.receive(r, title, http.NewResponseController(w))
	if err != nil {
		w.Header().Set("Connection", "close")
		http.Error(w, fault.OneLine(err.Error()), http.StatusUnprocessableEntity)
		return
	}
	s.mu.Lock()
	s.uploads[title] = path
	s.mu.Unlock()
	answer(w, map[string]string{"model": title})
}

// fits refuses a file that this machine has no memory for, before it is read. What else takes memory is predicted.
func fits(ctx context.Context, title string, size int64) error {
	if free, _, ok := machine.Room(ctx); ok && size > free {
		return fault.New(fault.NotSupported, "choose a smaller one", "%s has %s, and %s of memory are free", title,
			words.Size(size), words.Size(free))
	}
	return nil
}

// unsafe matches what a file's name here does not have.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func (s *Server) receive(r *http.Request, title string, control *http.ResponseController) (path string, err error) {
	switch {
	case r.ContentLength < 0:
		return "", errors.New("the size of the file is not known")
	case r.ContentLength > mostFile:
		return "", fmt.Errorf("%s has %s, which is too much", title, words.Size(r.ContentLength))
	}
	if _, theirs := gate.Ends(r.Context()); visitor.IsHere(theirs) {
		if err := fits(r.Context(), title, r.ContentLength); err != nil {
			return "", err
		}
	}
	if err := cache.Free(s.scratch, r.ContentLength, "set TMPDIR to a folder on another disk"); err != nil {
		return "", err
	}
	folder := filepath.Join(s.scratch, fmt.Sprintf("model-%d", s.number()))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(folder) // the scratch folder goes in the end
		}
	}()
	path = filepath.Join(folder, unsafe.ReplaceAllString(title, "-"))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if err = receive(f, r, control); err == nil {
		err = f.Close()
	} else {
		_ = f.Close() // the first error matters
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", title, err)
	}
	opened, err := gguf.OpenReadable(path)
	if err != nil {
		return "", fmt.Errorf("%s cannot be used: %s", title, fault.What(err))
	}
	return path, opened.Close()
}

const magic = "GGUF"

// receive copies a body that keeps coming.
func receive(to io.Writer, r *http.Request, control *http.ResponseController) error {
	part, first, total := make([]byte, 1<<20), true, int64(0)
	for {
		if err := control.SetReadDeadline(time.Now().Add(fileTime)); err != nil {
			return err
		}
		n, err := io.ReadAtLeast(r.Body, part, min(len(part), int(max(1, r.ContentLength-total))))
		total += int64(n)
		if first && (n < len(magic) || string(part[:len(magic)]) != magic) {
			return errors.New("it is not a GGUF file")
		}
		first = false
		if _, err := to.Write(part[:n]); err != nil {
			return fault.WriteError(err, os.TempDir(), "set TMPDIR to another folder")
		}
		if total >= r.ContentLength {
			return control.SetReadDeadline(time.Time{})
		}
		if err != nil {
			return fmt.Errorf("only %s of %s came: %w", words.Size(total), words.Size(r.ContentLength), err)
		}
	}
}

// named says what a model's file or folder is.
func named(path string) record.Model {
	m := record.Model{Format: models.GGUF}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		m.Format = models.WebLLM
	}
	return m
}

// library is what charts are drawn with.
func library() (string, error) {
	echarts, _, err := charts.Libraries()
	return echarts, err
}
