// Package foreign reads histories that other tools wrote: Go's benchmark format, which benchstat reads, and the JSON of
// github-action-benchmark, of one run or of all (data.js). It guesses which way is better by the unit, as they do.
package foreign

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/history"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
)

// Options are what a file does not have.
type Options struct {
	Commit  history.Commit // of a file of one run
	Machine string
	Better  string // higher or lower; empty: by the unit
	Name    string // of the file
}

// Read reads a file of either kind.
func Read(text []byte, o Options) ([]*history.Run, error) {
	if o.Better != "" && o.Better != "higher" && o.Better != "lower" {
		return nil, fault.New(fault.Usage, "use higher or lower", "--better: unknown direction %q", o.Better)
	}
	trimmed := bytes.TrimSpace(text)
	if script, ok := bytes.CutPrefix(trimmed, []byte("window.BENCHMARK_DATA")); ok {
		trimmed = bytes.TrimRight(bytes.TrimLeft(script, " =\n"), "; \n")
	}
	if len(trimmed) == 0 {
		return nil, fault.New(fault.BadRecord, "", "%s is empty", o.Name)
	}
	switch trimmed[0] {
	case '[':
		return one(trimmed, o)
	case '{':
		return all(trimmed, o)
	}
	return goBench(text, o)
}

// Import adds what a file of another tool has, or the files of another store, and says what was new.
func Import(ctx context.Context, w io.Writer, to *history.Store, from string, o Options) error {
	if history.IsStore(from) {
		added, there, err := to.Merge(ctx, history.Open(from))
		if err == nil {
			_, err = fmt.Fprintf(w, "Added %s; %d were already there\n", words.Count(added, "file"), there)
		}
		return err
	}
	text, err := os.ReadFile(from)
	if info, wrong := os.Stat(from); wrong == nil && o.Commit.Time.IsZero() {
		o.Commit.Time = info.ModTime().UTC().Truncate(time.Second) // the same file is the same run
	}
	if err != nil {
		return fault.Wrap(fault.Usage, err, "", "can't read %s", from)
	}
	o.Name = filepath.Base(from)
	all, err := Read(text, o)
	if err != nil {
		return err
	}
	return to.Put(ctx, w, all...)
}

// bench is an entry of github-action-benchmark.
type bench struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
}

// one reads the results of one run.
func one(text []byte, o Options) ([]*history.Run, error) {
	var list []bench
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, unread(o, err)
	}
	if err := named(o); err != nil {
		return nil, err
	}
	b := newBuilder(o.Commit, o, "")
	for _, e := range list {
		b.add(e.Name, e.Unit, e.Value)
	}
	return b.runs(), nil
}

// named requires the commit of a file that has none.
func named(o Options) error {
	if o.Commit.SHA == "" {
		return fault.New(fault.Usage, "use --commit SHA", "%s does not say which commit it is of", o.Name)
	}
	return nil
}

func unread(o Options, err error) error {
	return fault.Wrap(fault.BadRecord, err, "", "%s is neither Go's benchmark format nor JSON of github-action-benchmark",
		o.Name)
}

// all reads data.js: the runs of all suites.
func all(text []byte, o Options) ([]*history.Run, error) {
	var data struct {
		Entries map[string][]struct {
			Commit struct {
				ID        string    `json:"id"`
				Message   string    `json:"message"`
				Timestamp time.Time `json:"timestamp"`
				Author    struct {
					Name     string `json:"name"`
					Username string `json:"username"`
				} `json:"author"`
			} `json:"commit"`
			Date    int64   `json:"date"` // milliseconds
			Tool    string  `json:"tool"`
			Benches []bench `json:"benches"`
		} `json:"entries"`
	}
	if err := json.Unmarshal(text, &data); err != nil {
		return nil, unread(o, err)
	}
	var out []*history.Run
	for suite, runs := range data.Entries {
		for _, r := range runs {
			subject, _, _ := strings.Cut(r.Commit.Message, "\n")
			c := history.Commit{SHA: r.Commit.ID, Time: r.Commit.Timestamp.UTC(), Subject: subject,
				Author: cmp.Or(r.Commit.Author.Name, r.Commit.Author.Username)}
			own := o
			switch r.Tool {
			case "customBiggerIsBetter":
				own.Better = cmp.Or(o.Better, "higher")
			case "customSmallerIsBetter":
				own.Better = cmp.Or(o.Better, "lower")
			}
			b := newBuilder(c, own, suite)
			b.run.Started = time.UnixMilli(r.Date).UTC()
			if c.Time.IsZero() {
				b.run.Commit.Time = b.run.Started
			}
			for _, e := range r.Benches {
				b.add(e.Name, e.Unit, e.Value)
			}
			out = append(out, b.runs()...)
		}
	}
	if len(out) == 0 {
		return nil, fault.New(fault.BadRecord, "", "%s has no run", o.Name)
	}
	return out, nil
}

var (
	line = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.+)$`)
	pair = regexp.MustCompile(`(\S+)\s+(\S+)`)
)

// goBench reads Go's benchmark format. Lines of one name are launches.
func goBench(text []byte, o Options) ([]*history.Run, error) {
	if err := named(o); err != nil {
		return nil, err
	}
	b := newBuilder(o.Commit, o, "")
	facts := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := line.FindStringSubmatch(lines.Text()); m != nil {
			for _, p := range pair.FindAllStringSubmatch(m[2], -1) {
				v, err := strconv.ParseFloat(p[1], 64)
				if err != nil {
					return nil, unread(o, err)
				}
				b.add(m[1], p[2], v)
			}
		} else if key, value, ok := strings.Cut(lines.Text(), ": "); ok && !strings.Contains(key, " ") {
			facts[key] = strings.TrimSpace(value)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, unread(o, err)
	}
	if len(b.run.Launches) == 0 {
		return nil, fault.New(fault.BadRecord, "", "%s has no benchmark", o.Name)
	}
	if o.Machine == "" && facts["cpu"] != "" {
		b.run.Machine = facts["cpu"]
	}
	for _, k := range []string{"goos", "goarch", "cpu"} {
		if facts[k] != "" {
			b.run.Environment[k] = facts[k]
		}
	}
	return b.runs(), nil
}

// builder makes a run of single values.
type builder struct {
	run    *history.Run
	better string
	at     map[[2]int]int // how many values a cell has of a figure
}

func newBuilder(c history.Commit, o Options, suite string) *builder {
	return &builder{run: &history.Run{Head: history.Head{Name: cmp.Or(suite, o.Name), Started: c.Time, Commit: c,
		Machine: cmp.Or(o.Machine, "unknown"), Environment: map[string]string{}}}, better: o.Better,
		at: map[[2]int]int{}}
}

// add adds a value: the next launch of its cell that has none of this figure.
func (b *builder) add(name, unit string, v float64) {
	r := b.run
	cell := slices.IndexFunc(r.Cells, func(c history.Cell) bool { return c.Label == name })
	if cell < 0 {
		cell = len(r.Cells)
		r.Cells = append(r.Cells, history.Cell{Key: r.Name + ": " + name, Label: name, Engine: r.Name})
	}
	figure := slices.IndexFunc(r.Figures, func(f history.Figure) bool { return f.Name == unit })
	if figure < 0 {
		figure = len(r.Figures)
		r.Figures = append(r.Figures, history.Figure{Name: unit, Title: unit, Unit: unit, Tested: true,
			Better: cmp.Or(b.better, direction(unit))})
	}
	b.at[[2]int{cell, figure}]++
	number := b.at[[2]int{cell, figure}]
	at := slices.IndexFunc(r.Launches, func(l history.Launch) bool { return l.Cell == cell && l.Number == number })
	if at < 0 {
		at = len(r.Launches)
		r.Launches = append(r.Launches, history.Launch{Cell: cell, Number: number})
	}
	l := &r.Launches[at]
	for len(l.Values) <= figure {
		l.Values = append(l.Values, math.NaN())
	}
	l.Values[figure] = v
}

// runs is the finished run.
func (b *builder) runs() []*history.Run {
	for i := range b.run.Launches {
		l := &b.run.Launches[i]
		for len(l.Values) < len(b.run.Figures) {
			l.Values = append(l.Values, math.NaN())
		}
	}
	return []*history.Run{b.run}
}

// direction is which way a unit is better: rates are higher, all else is lower.
func direction(unit string) string {
	if strings.HasSuffix(unit, "/s") || strings.HasSuffix(unit, "/sec") || strings.HasSuffix(unit, "ps") {
		return "higher"
	}
	return "lower"
}
