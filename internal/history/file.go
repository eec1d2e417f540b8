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
	name = fmt.Sprintf("%s-%s-%s%s", r.When().UTC().Format("20060102T150405Z"), safe(r.Commit.Short()),
		hex.EncodeToString(sum[:4]), suffix)
	return name, b.Bytes(), nil
}

// safe is a text as a part of a file's name.
func safe(text string) string {
	return string(bytes.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, []byte(text)))
}

var errCut = errors.New("it was cut: its last line is missing")

// Decode reads a file.
func Decode(text []byte) (*Run, error) {
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	r := &Run{}
	if err := json.Unmarshal(line, &r.Head); err != nil {
		return nil, fmt.Errorf("its first line is not that of a run: %w", err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("its schema is %q, and this version reads %q", r.Schema, Schema)
	}
	all := make([]float64, 0, bytes.Count(rest, []byte{'\n'})*len(r.Figures))
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if len(line) > 0 && line[0] == '{' {
			return r, r.ends(line, rest)
		}
		from := len(all)
		var l Launch
		var err error
		if l.Cell, l.Number, all, err = numbers(line, all); err != nil {
			return nil, err
		}
		if l.Values = all[from:]; len(l.Values) != len(r.Figures) || l.Cell < 0 || l.Cell >= len(r.Cells) {
			return nil, fmt.Errorf("launch %d does not fit its first line", len(r.Launches)+1)
		}
		r.Launches = append(r.Launches, l)
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
		var field []byte
		field, line, _ = bytes.Cut(line, []byte(","))
		v := math.NaN()
		if string(field) != "null" {
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
