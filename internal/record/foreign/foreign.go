// Package foreign reads memory figures that other programs wrote: CSV with the columns timestamp, label, pid, rss_mb,
// vms_mb and heap_used_mb, in any order and among others. `llmparity watch` writes them, too, and the module that
// `llmparity profiler` writes adds gpu_mb and gpu_peak_mb. A file becomes a run: a label is a cell with one launch, a
// pid is a source.
//
// Model, prompt, device, load times and the method of reading are unknown, and the run says so. Sizes are read as MiB,
// times without a zone as UTC. The whole file is in memory.
package foreign

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
	"llmparity/internal/record"
)

// Columns. A file needs the first and one of the sizes.
const (
	timeColumn  = "timestamp"
	labelColumn = "label"
	pidColumn   = "pid"
	rssColumn   = "rss_mb"
	vmsColumn   = "vms_mb"
	heapColumn  = "heap_used_mb"
	gpuColumn   = "gpu_mb"      // allocated by WebGPU
	peakColumn  = "gpu_peak_mb" // the most of it since the row before
	// Also written by watch, because pids are reused.
	startColumn = "start"
	nameColumn  = "name"
)

// mostLabels limits the damage of a column that is not a label.
const mostLabels = 200

const shape = "write rows with the columns timestamp, label, pid, rss_mb, vms_mb, as `llmparity watch` does"

// Open reads a file. Errors name the line and the column; oddities become warnings of the run.
func Open(path string) (*record.Run, error) {
	text, err := regular.Read(path, 1<<40)
	if err != nil {
		return nil, fault.Wrap(fault.BadRecord, err, "name a run folder or a CSV file", "can't read %s", path)
	}
	return Read(path, text)
}

// Read parses a file's text; path is its name.
func Read(path string, text []byte) (*record.Run, error) {
	f := &file{path: path, noted: map[string]bool{}}
	rows, err := f.rows(text)
	if err != nil {
		return nil, err
	}
	return f.run(rows, fmt.Sprintf("%x", sha256.Sum256(text))), nil
}

// file is the state of reading a file.
type file struct {
	path    string
	column  map[string]int
	header  []string
	layout  string // of the timestamps
	times   string // the same in words
	notices []record.Warning
	noted   map[string]bool
}

// row is a line of the file; sizes in MiB, or NaN.
type row struct {
	line           int
	ns             int64 // since 1970
	label          string
	who            who
	rss, vms, heap float64
	gpu, peak      float64
}

// who identifies a process.
type who struct {
	pid   int
	start uint64
	name  string
}

func (f *file) fault(line int, column, do, format string, args ...any) error {
	where := fmt.Sprintf("%s line %d", f.path, line)
	if column != "" {
		where += ", column " + column
	}
	return fault.New(fault.BadRecord, do, "%s: %s", where, fmt.Sprintf(format, args...))
}

// rows parses every complete line.
func (f *file) rows(text []byte) ([]row, error) {
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return nil, fault.New(fault.BadRecord, shape, "%s is empty", f.path)
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}), bytes.HasPrefix(text, []byte{0xfe, 0xff}),
		bytes.IndexByte(text, 0) >= 0:
		return nil, fault.New(fault.BadRecord, "write it in UTF-8", "%s is not UTF-8 text", f.path)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	// numbers and times are ASCII in any encoding, so only letters of names are lost
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\ufffd"))
		f.note("not-utf-8", filepath.Base(f.path)+": invalid UTF-8 in labels and names is replaced by \ufffd", 0)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	if rest := bytes.TrimSpace(text[whole:]); len(rest) > 0 {
		f.note("cut", filepath.Base(f.path)+": incomplete last line ignored", 0)
	}
	in := csv.NewReader(bytes.NewReader(text[:whole]))
	in.FieldsPerRecord, in.ReuseRecord = -1, true
	var out []row
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if at, ok := errors.AsType[*csv.ParseError](err); ok {
				return nil, f.fault(at.Line, "", "fix or remove the line", "%v", at.Err)
			}
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		line, _ := in.FieldPos(0)
		if f.header == nil {
			if err := f.begin(line, fields); err != nil {
				return nil, err
			}
			continue
		}
		r, err := f.row(line, fields)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	switch {
	case f.header == nil:
		return nil, fault.New(fault.BadRecord, shape, "%s has no complete line", f.path)
	case len(out) == 0:
		return nil, fault.New(fault.BadRecord, "name a file with rows", "%s has a header, but no complete row",
			f.path)
	}
	return out, nil
}

// begin finds the columns by name.
func (f *file) begin(line int, fields []string) error {
	f.column = map[string]int{}
	for i, name := range fields {
		f.header = append(f.header, name)
		if _, twice := f.column[name]; twice {
			return f.fault(line, "", "give each column its own name", "duplicate column %q", name)
		}
		f.column[name] = i
	}
	has := func(name string) bool { _, ok := f.column[name]; return ok }
	switch {
	case has(timeColumn) && (has(rssColumn) || has(heapColumn)):
	case len(fields) == 1 && strings.ContainsAny(fields[0], ";\t|"):
		return f.fault(line, "", "use commas between columns, and points in numbers",
			"columns are not separated by commas")
	case has(timeColumn):
		return f.fault(line, "", shape, "no column %s or %s", rssColumn, heapColumn)
	default:
		return f.fault(line, "", shape, "no column %s", timeColumn)
	}
	if has("attempt") && has("source") {
		return fault.New(fault.BadRecord, "name the folder: "+filepath.Dir(f.path), "%s is part of a run folder",
			f.path)
	}
	return nil
}

// field returns the content of a column in a line.
func (f *file) field(fields []string, column string) (string, bool) {
	i, ok := f.column[column]
	if !ok {
		return "", false
	}
	return fields[i], true
}

func (f *file) row(line int, fields []string) (row, error) {
	r := row{line: line}
	if len(fields) != len(f.header) {
		do := "fix or remove the line"
		if len(fields) > len(f.header) {
			do = "write numbers with a point, and quote text that contains a comma"
		}
		return r, f.fault(line, "", do, "%d fields, but the header has %d", len(fields), len(f.header))
	}
	var err error
	if r.ns, err = f.time(line, fields); err != nil {
		return r, err
	}
	r.label, _ = f.field(fields, labelColumn)
	if r.label == "" {
		base := filepath.Base(f.path)
		r.label = strings.TrimSuffix(base, filepath.Ext(base))
	}
	r.label = strings.Clone(r.label)
	if r.who, err = f.who(line, fields); err != nil {
		return r, err
	}
	for _, size := range []struct {
		column string
		into   *float64
	}{{rssColumn, &r.rss}, {vmsColumn, &r.vms}, {heapColumn, &r.heap}, {gpuColumn, &r.gpu},
		{peakColumn, &r.peak}} { // a fixed order for warnings
		if *size.into, err = f.size(line, fields, size.column); err != nil {
			return r, err
		}
	}
	return r, nil
}

// note adds a warning, once; with a line, it is about the first line in which something happens, and text ends before
// its number.
func (f *file) note(code, text string, line int) {
	if f.noted[code+text] {
		return
	}
	f.noted[code+text] = true
	if line > 0 {
		text += fmt.Sprintf(" %d", line)
	}
	f.notices = append(f.notices, record.Warning{Code: code, Text: text})
}
