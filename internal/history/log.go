package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
)

// Log is a store as it was read: runs in order, and their figures by series.
type Log struct {
	Runs   []Head
	Series []*Series
	Acks   []Ack
	Broken []Broken // files that can't be read

	marked struct { // the last answer of Marks
		of    *Series
		marks []Mark
	}
}

// Series is one figure of one cell on one machine.
type Series struct {
	Key     string // short, for links and files
	Machine string
	Cell    Cell
	Figure  Figure
	Points  []Point
}

// Point is a run in a series.
type Point struct {
	Run       int32 // in the log
	N         int32 // launches
	Low, High float32
	Value     float64
	Middle    float64 // what is tested
	Control   float64 // the middle of the same figure of its control cell; NaN: none
}

// Name is a series in a line.
func (s *Series) Name() string { return s.Figure.Title + ", " + s.Cell.Label }

// hash is a short name of a text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:5])
}

// kept is a run as it is read: its head without what other heads share.
type kept struct {
	head      Head
	summaries []Summary
}

// Read reads a store. Of a million launches it keeps the summaries.
func (s *Store) Read(ctx context.Context) (*Log, error) {
	var lock sync.Mutex
	var all []kept
	share := sharing{}
	broken, err := s.Each(ctx, func(r *Run) {
		summaries := r.Summaries()
		lock.Lock()
		defer lock.Unlock()
		share.head(&r.Head)
		all = append(all, kept{r.Head, summaries})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b kept) int { return before(&a.head, &b.head) })
	l := &Log{Runs: make([]Head, len(all)), Broken: broken}
	tables := l.series(all)
	for i, one := range all {
		l.Runs[i] = one.head
		take(int32(i), &l.Runs[i], one.summaries, tables)
		all[i] = kept{}
	}
	slices.SortStableFunc(l.Series, inOrder)
	var wrong []Broken
	l.Acks, wrong, err = s.Acks(ctx)
	l.Broken = append(l.Broken, wrong...)
	return l, err
}

// inOrder puts what belongs together side by side.
func inOrder(a, b *Series) int {
	if c := strings.Compare(a.Machine, b.Machine); c != 0 {
		return c
	}
	return strings.Compare(a.Cell.Label, b.Cell.Label)
}

// identity tells series apart: machine, cell and figure.
type identity [3]string

// layout is what decides the series of all summaries of a run. Runs that were read together share equal lists.
type layout struct {
	machine string
	cells   *Cell
	figures *Figure
}

// table has the series of a layout, by cell and figure.
type table []*Series

func (h *Head) layout() layout { return layout{h.Machine, &h.Cells[0], &h.Figures[0]} }

func (h *Head) at(m Summary) int { return int(m.Cell)*len(h.Figures) + int(m.Name) }

// series makes all series, with room for their points: lists that grow take twice the memory.
func (l *Log) series(all []kept) map[layout]table {
	by, out := map[identity]*Series{}, map[layout]table{}
	points := map[*Series]int{}
	for i := range all {
		h := &all[i].head
		if len(all[i].summaries) == 0 {
			continue
		}
		t, known := out[h.layout()]
		if !known {
			t = make(table, len(h.Cells)*len(h.Figures))
			out[h.layout()] = t
		}
		for _, m := range all[i].summaries {
			if t[h.at(m)] == nil {
				id := identity{h.Machine, h.Cells[m.Cell].Key, h.Figures[m.Name].Name}
				if by[id] == nil {
					by[id] = &Series{Key: hash(strings.Join(id[:], "\x00")), Machine: h.Machine}
					l.Series = append(l.Series, by[id])
				}
				t[h.at(m)] = by[id]
			}
			points[t[h.at(m)]]++
		}
	}
	for s, n := range points {
		s.Points = make([]Point, 0, n)
	}
	return out
}

// take adds a run's summaries to their series.
func take(at int32, head *Head, summaries []Summary, of map[layout]table) {
	if len(summaries) == 0 {
		return
	}
	t := of[head.layout()]
	values := make([]float64, len(t)) // of control cells
	for i := range values {
		values[i] = math.NaN()
	}
	for _, m := range summaries {
		if head.Cells[m.Cell].Fixed {
			values[head.at(m)] = m.Middle
		}
	}
	for _, m := range summaries {
		s := t[head.at(m)]
		s.Cell, s.Figure = head.Cells[m.Cell], head.Figures[m.Name] // as the newest run names them
		p := Point{Run: at, N: m.N, Value: m.Value, Low: m.Low, High: m.High, Middle: m.Middle, Control: math.NaN()}
		if c := s.Cell.Control; c != nil && *c != int(m.Cell) && s.Figure.Ratio {
			p.Control = values[*c*len(head.Figures)+int(m.Name)]
		}
		s.Points = append(s.Points, p)
	}
}

// sharing makes equal texts and environments share their memory. Equal cells and figures do since they were read.
type sharing map[string]any

func (s sharing) head(h *Head) {
	h.Machine = s.text(h.Machine)
	h.Environment = s.facts(h.Environment)
}

func shared[T any](s sharing, key string, v T) T {
	if old, ok := s[key].(T); ok {
		return old
	}
	s[key] = v
	return v
}

func (s sharing) text(t string) string { return shared(s, "text\x00"+t, t) }

func (s sharing) facts(m map[string]string) map[string]string {
	return shared(s, "facts\x00"+told(m), m)
}

// told is an environment as one text.
func told(m map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b.WriteString(k + "\x01" + m[k] + "\x01")
	}
	return b.String()
}

// Mark is a change of the environment between two runs of a series.
type Mark struct {
	At   int      `json:"at"`   // the point behind it
	What []string `json:"what"` // "browser Chromium 155 → Chromium 156"

	facts []fact
}

// fact is what changed in an environment.
type fact struct{ name, words string }

// Marks are the changes of the environment of a series. What changes all the time, such as the version of a nightly
// build, is none: it would explain everything. It is for one caller at a time.
func (l *Log) Marks(s *Series) (out []Mark) {
	if last := l.marked; last.of != nil && last.of.Machine == s.Machine && last.of.Cell.Key == s.Cell.Key &&
		slices.EqualFunc(last.of.Points, s.Points, func(a, b Point) bool { return a.Run == b.Run }) {
		return last.marks // the figures of a cell have the same
	}
	defer func() { l.marked.of, l.marked.marks = s, out }()
	often := map[string]int{}
	for i := 1; i < len(s.Points); i++ {
		was, is := &l.Runs[s.Points[i-1].Run], &l.Runs[s.Points[i].Run]
		a, b := was.cell(s.Cell.Key), is.cell(s.Cell.Key)
		var facts []fact
		if !maps.Equal(was.Environment, is.Environment) {
			facts = differ(was.Environment, is.Environment)
		}
		if a != nil && b != nil && !maps.Equal(a.Environment, b.Environment) {
			facts = append(facts, differ(a.Environment, b.Environment)...)
		}
		for _, f := range facts {
			often[f.name]++
		}
		if len(facts) > 0 {
			out = append(out, Mark{At: i, facts: facts})
		}
	}
	most := max(3, len(s.Points)/8)
	for i := range out {
		for _, f := range out[i].facts {
			if often[f.name] <= most {
				out[i].What = append(out[i].What, f.words)
			}
		}
	}
	return slices.DeleteFunc(out, func(m Mark) bool { return len(m.What) == 0 })
}

func (h *Head) cell(key string) *Cell {
	for i := range h.Cells {
		if h.Cells[i].Key == key {
			return &h.Cells[i]
		}
	}
	return nil
}

// differ says what changed.
func differ(a, b map[string]string) (out []fact) {
	names := map[string]bool{}
	for _, m := range []map[string]string{a, b} {
		for k := range m {
			names[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(names)) {
		switch was, is := a[k], b[k]; {
		case was == is:
		case was == "":
			out = append(out, fact{k, k + " " + is + " (was unknown)"})
		case is == "":
			out = append(out, fact{k, k + " " + was + " → unknown"})
		default:
			out = append(out, fact{k, k + " " + was + " → " + is})
		}
	}
	return out
}

// Run finds a run by its name or its commit, of which the beginning suffices; the newest if several fit.
func (l *Log) Run(name string) *Head {
	for i := len(l.Runs) - 1; i >= 0; i-- {
		if h := &l.Runs[i]; h.ID == name || len(name) >= 4 && strings.HasPrefix(h.Commit.SHA, name) {
			return h
		}
	}
	return nil
}
