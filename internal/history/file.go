package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
)

// suffix ends the names of files of runs.
const suffix = ".jsonl"

// end is the last line of a file. Without it, a file was cut.
type end struct {
	Launches *int `json:"launches"`
}

// Encode writes a run as its file has it, and names the file: the same run has the same file wherever it is added.
func (r *Run) Encode() (name string, text []byte, err error) {
	r.Schema = Schema
	head, err := json.Marshal(r.Head)
	if err != nil {
		return "", nil, err
	}
	var b bytes.Buffer
	b.Write(head)
	b.WriteByte('\n')
	for _, l := range r.Launches {
		if l.Cell < 0 || l.Cell >= len(r.Cells) || len(l.Values) != len(r.Figures) {
			return "", nil, fmt.Errorf("launch %d of cell %d has %d values for %d figures", l.Number, l.Cell, len(l.Values),
				len(r.Figures))
		}
		fmt.Fprintf(&b, "[%d,%d", l.Cell, l.Number)
		for _, v := range l.Values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				b.WriteString(",null")
				continue
			}
			b.WriteByte(',')
			b.Write(strconv.AppendFloat(nil, v, 'g', -1, 64))
		}
		b.WriteString("]\n")
	}
	fmt.Fprintf(&b, "{\"launches\":%d}\n", len(r.Launches))
	sum := sha256.Sum256(b.Bytes())
	// A folder in git that grows by a file a run stays readable: names are in the order of commits.
	name = fmt.Sprintf("%s-%s-%s%s", r.When().UTC().Format("20060102T150405Z"), inName(r.Commit.Short()),
		hex.EncodeToString(sum[:4]), suffix)
	return name, b.Bytes(), nil
}

// inName is a text as a part of a file's name.
func inName(text string) string {
	return string(bytes.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, []byte(text)))
}

var errCut = errors.New("it was cut: its last line is missing")

// Decode reads a file.
func Decode(text []byte) (*Run, error) { return new(reader).decode(text) }

// reader reads many files. Ten thousand heads name the same cells and figures: equal lists are read once, and shared.
type reader struct {
	lock    sync.Mutex
	cells   map[string][]Cell
	figures map[string][]Figure
}

// listed is a list that was read before, or reads it.
func listed[T any](r *reader, of *map[string][]T, text json.RawMessage) ([]T, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if out, known := (*of)[string(text)]; known || len(text) == 0 {
		return out, nil
	}
	var out []T
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	if *of == nil {
		*of = map[string][]T{}
	}
	(*of)[string(text)] = out
	return out, nil
}

// head reads a file's first line.
func (r *reader) head(line []byte) (h Head, err error) {
	var w struct {
		*Head
		Cells   json.RawMessage `json:"cells"`
		Figures json.RawMessage `json:"figures"`
	}
	w.Head = &h
	if err = json.Unmarshal(line, &w); err == nil {
		h.Cells, err = listed(r, &r.cells, w.Cells)
	}
	if err == nil {
		h.Figures, err = listed(r, &r.figures, w.Figures)
	}
	return h, err
}

func (r *reader) decode(text []byte) (*Run, error) {
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	head, err := r.head(line)
	if err != nil {
		return nil, fmt.Errorf("its first line is not that of a run: %w", err)
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("its schema is %q, and this version reads %q", head.Schema, Schema)
	}
	lines := bytes.Count(rest, []byte{'\n'})
	out := &Run{Head: head, Launches: make([]Launch, 0, lines)}
	all := make([]float64, 0, lines*len(head.Figures))
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if len(line) > 0 && line[0] == '{' {
			return out, out.ends(line, rest)
		}
		from := len(all)
		var l Launch
		if l.Cell, l.Number, all, err = numbers(line, all); err != nil {
			return nil, err
		}
		if l.Values = all[from:]; len(l.Values) != len(head.Figures) || l.Cell < 0 || l.Cell >= len(head.Cells) {
			return nil, fmt.Errorf("launch %d does not fit its first line", len(out.Launches)+1)
		}
		out.Launches = append(out.Launches, l)
	}
	return nil, errCut
}

// ends checks the last line.
func (r *Run) ends(line, rest []byte) error {
	var e end
	switch err := json.Unmarshal(line, &e); {
	case err != nil || e.Launches == nil:
		return errCut
	case *e.Launches != len(r.Launches) || len(rest) > 0:
		return fmt.Errorf("it has %d launches, and its last line says %d", len(r.Launches), *e.Launches)
	}
	for _, c := range r.Cells {
		if c.Control != nil && (*c.Control < 0 || *c.Control >= len(r.Cells)) {
			return fmt.Errorf("cell %s has control cell %d of %d", c.Key, *c.Control, len(r.Cells))
		}
	}
	return nil
}

// numbers reads a launch's line. A history has a million of them, which encoding/json would take seconds for.
func numbers(line []byte, to []float64) (cell, launch int, values []float64, err error) {
	if len(line) < 2 || line[0] != '[' || line[len(line)-1] != ']' {
		return 0, 0, nil, errCut
	}
	line = line[1 : len(line)-1]
	for i := 0; len(line) > 0; i++ {
		field := line
		if end := bytes.IndexByte(line, ','); end >= 0 {
			field, line = line[:end], line[end+1:]
		} else {
			line = nil
		}
		v, plain := decimal(field)
		if !plain && string(field) == "null" {
			v = math.NaN()
		} else if !plain {
			if v, err = strconv.ParseFloat(string(field), 64); err != nil {
				return 0, 0, nil, fmt.Errorf("a launch has a value that is no number: %q", field)
			}
		}
		switch i {
		case 0:
			cell = int(v)
		case 1:
			launch = int(v)
		default:
			to = append(to, v)
		}
	}
	return cell, launch, to, nil
}

// powers are those of ten that a float64 has exactly.
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// decimal reads a number of at most fifteen digits without an exponent: both parts of digits / power are exact then, so
// one division rounds as strconv does.
func decimal(field []byte) (v float64, ok bool) {
	digits, n, places := uint64(0), 0, -1
	for i, c := range field {
		switch {
		case c >= '0' && c <= '9':
			digits = digits*10 + uint64(c-'0')
			n++
			if places >= 0 {
				places++
			}
		case c == '.' && places < 0 && n > 0:
			places = 0
		case c == '-' && i == 0:
		default:
			return 0, false
		}
	}
	if n == 0 || n > 15 || places == 0 {
		return 0, false
	}
	v = float64(digits)
	if places > 0 {
		v /= powers[places]
	}
	if field[0] == '-' {
		v = -v
	}
	return v, true
}
