package recount

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Gated is what a gate holds against what: its rules, and what was worked out again of the run and of the baseline.
type Gated struct {
	run, base *Work // the baseline is nil where there is none
	rules     gateRules
	now, was  *gateFolder
	different bool // the machine is another one
	pairs     []gatePair
	gone      []*gateCell
}

type gatePair struct {
	base, now       *gateCell // base is nil where the cell is new
	was, is         *Cell
	incommensurable bool // they can't be set against each other
}

// NewGate takes a gate's rules as JSON, in the words of a plan's section gate, with figures by their names in results.
func NewGate(t testing.TB, rules string, now, base *Work) *Gated {
	t.Helper()
	g := &Gated{run: now, base: base}
	err := g.rules.read([]byte(rules))
	if err == nil {
		g.now, err = readGate(now.evidence[0].folder)
	}
	if err == nil && base != nil {
		g.was, err = readGate(base.evidence[0].folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.match()
	return g
}

type gateRules struct {
	Level, Failed, Gone, Inconclusive string
	NoBaseline                        string `json:"no_baseline"`
	Detect                            string
	Changes                           map[string]json.RawMessage `json:"vs_baseline"`
	Parity                            *gateWords
	limits                            map[string][]gateBound
	changes                           map[string][]gateChange
}

// gateScope is which cells a rule is about, and how much it weighs.
type gateScope struct{ Engine, Model, Prompt, Level string }

type gateBound struct {
	gateScope
	Min, Max *float64
}

type gateChange struct {
	gateScope
	Change  string
	Detect  string
	percent float64
	detect  float64 // in percent, with the sign of what is worse
}

type gateWords struct {
	gateScope
	With  string
	Least string `json:"min_agreement"`
	First int    `json:"first_divergence"`
}

func (r *gateRules) read(text []byte) error {
	if err := json.Unmarshal(text, r); err != nil {
		return err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for _, name := range []string{"level", "failed", "gone", "inconclusive", "no_baseline", "detect", "vs_baseline",
		"parity"} {
		delete(all, name)
	}
	for name, raw := range r.Changes {
		if strings.HasPrefix(string(raw), `"`) {
			r.Changes[name] = fmt.Appendf(nil, `{"change": %s}`, raw)
		}
	}
	var err error
	if r.limits, err = oneOrMore[gateBound](all); err != nil {
		return err
	}
	if r.changes, err = oneOrMore[gateChange](r.Changes); err != nil {
		return err
	}
	percent := func(text string) (v float64) {
		if text != "" && err == nil {
			v, err = strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		}
		return v
	}
	for name, list := range r.changes {
		usual := 15.0
		if strings.Contains(name, "pss") || strings.HasPrefix(name, "memory") {
			usual = 5
		}
		for i := range list {
			c := &list[i]
			c.percent = percent(c.Change)
			c.detect = max(math.Abs(c.percent), cmp.Or(percent(c.Detect), percent(r.Detect), usual))
			if strings.HasSuffix(name, "_tps") {
				c.detect *= -1
			}
		}
	}
	if err != nil {
		return err
	}
	r.Level, r.Failed, r.Gone, r.Inconclusive = cmp.Or(r.Level, "error"), cmp.Or(r.Failed, "error"), cmp.Or(r.Gone,
		"error"), cmp.Or(r.Inconclusive, "error")
	return nil
}

// oneOrMore are the rules of each figure.
func oneOrMore[T any](all map[string]json.RawMessage) (map[string][]T, error) {
	out := map[string][]T{}
	for name, raw := range all {
		if !strings.HasPrefix(string(raw), "[") {
			raw = fmt.Appendf(nil, "[%s]", raw)
		}
		var list []T
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = list
	}
	return out, nil
}

// holds tells whether a rule is about a cell.
func (s gateScope) holds(c *gateCell) bool {
	return (s.Engine == "" || s.Engine == c.Engine) && (s.Model == "" || s.Model == c.Model.Name) &&
		(s.Prompt == "" || s.Prompt == c.Prompt || s.Prompt == strconv.Itoa(c.Number))
}

// gateFolder is what of a run tells whether it can be set against another, and how its launches ended.
type gateFolder struct {
	machine map[string]any
	whole   bool // it came to its end
	cells   []*gateCell
}

type gateCell struct {
	ID          int
	Engine      string
	Model       struct{ Name, Format, SHA256, DType string }
	Prompt      string
	Number      int `json:"prompt_id"`
	MaxTokens   int `json:"max_tokens"`
	Repetitions int
	Traffic     json.RawMessage
	request     string // all that was asked for
	measured    string // of that, how it is measured
	refused     bool
	failed      int
	device      string // its class and name
	version     string
	mixed       bool // its launches did not all run the same
}

// task is the least by which a cell is the same one as another.
func (c *gateCell) task() string {
	return fmt.Sprintf("%q %q %d %s", c.Engine, c.Prompt, c.MaxTokens, c.Traffic)
}

func (f *gateFolder) cell(id int) *gateCell {
	return f.cells[slices.IndexFunc(f.cells, func(c *gateCell) bool { return c.ID == id })]
}

func readGate(of *folder) (*gateFolder, error) {
	f := &gateFolder{}
	text, err := os.ReadFile(filepath.Join(of.dir, "environment.json"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &f.machine); err != nil {
		return nil, err
	}
	if err := f.lines(filepath.Join(of.dir, "journal.jsonl")); err != nil {
		return nil, err
	}
	return f, f.steady(of)
}

func (f *gateFolder) lines(path string) error {
	of := map[int]*gateCell{} // by attempt
	return eachLine(path, func(line []byte) error {
		var l struct {
			Attempt int
			Cell    json.RawMessage
			Risk    *struct {
				Cell    int
				Refused bool
			}
			Begin *struct {
				Cell    int
				Scoring json.RawMessage
			}
			Event *struct {
				Engine *struct{ Version string }
				Device *struct{ Class, Name string }
			}
			End, Done *struct{ Status string }
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		c := of[l.Attempt]
		switch {
		case l.Cell != nil:
			return f.add(l.Cell)
		case l.Done != nil:
			f.whole = l.Done.Status == "ok"
		case l.Risk != nil:
			f.cell(l.Risk.Cell).refused = l.Risk.Refused
		case l.Begin != nil && l.Begin.Scoring == nil:
			of[l.Attempt] = f.cell(l.Begin.Cell)
		case c == nil:
		case l.Event != nil && l.Event.Device != nil:
			c.device = l.Event.Device.Class + " " + l.Event.Device.Name
		case l.Event != nil && l.Event.Engine != nil:
			c.version = l.Event.Engine.Version
		case l.End != nil && l.End.Status == "failed":
			c.failed++
		}
		return nil
	})
}

func (f *gateFolder) add(spec []byte) error {
	c := &gateCell{}
	if err := json.Unmarshal(spec, c); err != nil {
		return err
	}
	rest := map[string]any{}
	if err := json.Unmarshal(spec, &rest); err != nil {
		return err
	}
	for _, name := range []string{"id", "prompt_id", "repetitions", "setup", "per_generation"} {
		delete(rest, name)
	}
	c.request = fmt.Sprint(rest) // a map is printed in order
	c.measured = fmt.Sprint(rest["temperature"], rest["isolation"], rest["reused"], rest["shared"], rest["start"])
	f.cells = append(f.cells, c)
	return nil
}

// match finds each cell of the baseline: what was asked for in all alike, of the same version before the same place;
// then what does the same task.
func (g *Gated) match() {
	if g.base == nil {
		return
	}
	for _, name := range []string{"arch", "cpu", "cores", "governor", "virtual_machine"} {
		a, b := g.was.machine[name], g.now.machine[name]
		g.different = g.different || a != nil && b != nil && a != b
	}
	inner := func(of, name string) (a, b any, told bool) {
		x, one := g.was.machine[of].(map[string]any)
		y, other := g.now.machine[of].(map[string]any)
		return x[name], y[name], one && other
	}
	if a, b, told := inner("limits", "cpu_quota_cores"); told && a != b { // absent: none
		g.different = true
	}
	if a, b, _ := inner("processor", "turbo"); a != nil && b != nil && a != b {
		g.different = true
	}
	a, _ := g.was.machine["memory_bytes"].(float64)
	b, _ := g.now.machine["memory_bytes"].(float64)
	g.different = g.different || a > 0 && b > 0 && max(a-b, b-a) > 0.05*a
	taken := map[*gateCell]bool{}
	var left []*gateCell
	for _, c := range g.was.cells {
		alike := func(o *gateCell) bool { return o.request == c.request }
		before, after := sieve(g.was.cells, alike), sieve(g.now.cells, alike)
		place := slices.Index(before, c)
		at := slices.IndexFunc(after, func(n *gateCell) bool { return !taken[n] && n.version == c.version })
		if at < 0 && len(before) == len(after) && !taken[after[place]] {
			at = place
		}
		if at < 0 {
			left = append(left, c)
			continue
		}
		taken[after[at]] = true
		g.pair(c, after[at], false)
	}
	for _, c := range left {
		at := slices.IndexFunc(g.now.cells, func(n *gateCell) bool { return !taken[n] && n.task() == c.task() })
		if at < 0 {
			g.gone = append(g.gone, c)
			continue
		}
		taken[g.now.cells[at]] = true
		g.pair(c, g.now.cells[at], true)
	}
	for _, n := range g.now.cells {
		if !taken[n] {
			g.pairs = append(g.pairs, gatePair{now: n})
		}
	}
}

func sieve(all []*gateCell, keep func(*gateCell) bool) []*gateCell {
	return slices.DeleteFunc(slices.Clone(all), func(c *gateCell) bool { return !keep(c) })
}

// pair sets two cells against each other. Where nothing is said of what is under test only the model, the machine and
// the way to measure must be the same.
func (g *Gated) pair(base, now *gateCell, other bool) {
	model := base.Model.Name != now.Model.Name || base.Model.SHA256 != now.Model.SHA256 ||
		base.Model.DType != now.Model.DType
	another := other && (model || base.measured != now.measured ||
		base.request == now.request) // of the last nobody knows which is which
	g.pairs = append(g.pairs, gatePair{base, now, g.base.worked(base.ID), g.run.worked(now.ID),
		another || g.different || !base.known() || !now.known() || base.device != now.device})
}

// worked is what was worked out again of a run's cell.
func (w *Work) worked(id int) *Cell {
	all := w.runs[0].Cells
	return &all[slices.IndexFunc(all, func(c Cell) bool { return c.ID == id })]
}
