package history

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"llmparity/internal/history/change"
	"llmparity/internal/kit/workers"
	"llmparity/internal/stats"
)

// Verdict is what a change is.
type Verdict string

// Verdicts, the most urgent first. Regression alone is an alarm.
const (
	Regression   Verdict = "regression"
	Suspected    Verdict = "suspected"    // too few runs behind it
	Machine      Verdict = "machine"      // the control cell changed at the same time
	Environment  Verdict = "environment"  // the environment changed at the same time
	Recovered    Verdict = "recovered"    // later runs are as before
	Acknowledged Verdict = "acknowledged" // somebody said why
	Changed      Verdict = "changed"      // neither way is better
	Improvement  Verdict = "improvement"
)

var urgency = []Verdict{Regression, Suspected, Machine, Environment, Improvement, Changed, Recovered, Acknowledged}

// Finding is a change of a series.
type Finding struct {
	ID      string  `json:"id"` // for ack, and links
	Verdict Verdict `json:"verdict"`
	Worse   bool    `json:"worse"`
	Why     string  `json:"why,omitempty"` // for a verdict that is no alarm
	Machine string  `json:"machine"`
	Cell    string  `json:"cell"`
	Figure  string  `json:"figure"`
	Title   string  `json:"title"`
	Unit    string  `json:"unit"`
	// Percent is the change, with its 95% interval; of figures at or below zero it is in their unit.
	Percent  float64 `json:"change"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Absolute bool    `json:"absolute,omitempty"`
	Ratio    bool    `json:"ratio,omitempty"`  // of ratios to the control cell
	Beside   bool    `json:"beside,omitempty"` // of ratios to the cells beside it; those to the control agree
	Before   float64 `json:"before"`           // the median of runs before it
	After    float64 `json:"after"`
	Runs     int     `json:"runs"` // behind it
	// Chance is how likely a dashboard without changes shows one as clear within a month.
	Chance  float64  `json:"chance"`
	Since   Commit   `json:"since"`
	Last    Commit   `json:"last_before"`
	Run     string   `json:"run"`
	Confirm []string `json:"confirm,omitempty"` // commands that add launches

	series *Series
	change change.Change
}

// Series is the series that changed.
func (f *Finding) Series() *Series { return f.series }

// At is the number of the first point behind the change.
func (f *Finding) At() int { return f.change.At }

// ReportSchema identifies the form of a report as JSON.
const ReportSchema = "llmparity.history-check/1"

// Report is what a check finds.
type Report struct {
	Schema   string     `json:"schema"`
	Findings []*Finding `json:"findings"`
	Runs     int        `json:"runs"`
	Series   int        `json:"series"` // that were tested
	// Short are tested series with too few runs to show any change; with Needed runs they can.
	Short  int      `json:"short"`
	Needed int      `json:"needed,omitempty"`
	Bare   int      `json:"without_control_cell"` // tested series of times and rates without a control cell
	Broken []Broken `json:"unreadable,omitempty"`
	Month  float64  `json:"false_alarms_a_month"` // of all dashboards without a change, by design at most
}

// Alarms are the findings that fail a check.
func (r *Report) Alarms() (n int) {
	for _, f := range r.Findings {
		if f.Verdict == Regression {
			n++
		}
	}
	return n
}

// Check tests all series.
func (l *Log) Check(ctx context.Context) (*Report, error) {
	r := &Report{Schema: ReportSchema, Runs: len(l.Runs), Broken: l.Broken, Month: change.Monthly,
		Findings: []*Finding{}}
	tested := slices.Clone(l.Series)
	tested = slices.DeleteFunc(tested, func(s *Series) bool { return !s.Figure.Tested })
	alike := l.alike(tested)
	found := make([][]*Finding, len(tested))
	needed := make([]int, len(tested))
	groups := grouped(tested)
	err := workers.Each(ctx, runtime.NumCPU(), len(groups), func(_ context.Context, g int) error {
		beside := l.beside(tested, groups[g])
		for at, i := range groups[g] {
			var own []float64
			if beside != nil {
				own = beside[at]
			}
			found[i], needed[i] = l.find(tested[i], alike, own)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	moved := map[[2]string][]*Finding{} // changes of control cells, by machine and figure
	for i, s := range tested {
		if s.Cell.Fixed {
			key := [2]string{s.Machine, s.Figure.Name}
			moved[key] = append(moved[key], found[i]...)
			continue
		}
		r.Series++
		if s.Figure.Ratio && !s.ratio() {
			r.Bare++
		}
		if len(s.Points) < needed[i] {
			r.Short++
			r.Needed = max(r.Needed, needed[i])
		}
	}
	for i, s := range tested {
		if len(found[i]) == 0 {
			continue
		}
		marks := l.Marks(s)
		for _, f := range found[i] {
			l.judge(f, found[i], marks, moved[[2]string{s.Machine, s.Figure.Name}])
			if s.Cell.Fixed && f.Verdict == Suspected {
				continue // nobody has to confirm that a machine is busy
			}
			r.Findings = append(r.Findings, f)
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b *Finding) int {
		return cmp.Or(slices.Index(urgency, a.Verdict)-slices.Index(urgency, b.Verdict),
			-a.Since.Time.Compare(b.Since.Time), cmp.Compare(a.Chance, b.Chance))
	})
	return r, nil
}

// month is how far looks back for how often there are runs.
const month = 30 * 24 * time.Hour

// alike is, for each run, how many series a dashboard had then: those with a value within two months before. A rate of
// false alarms that was kept then must not depend on series that came later.
func (l *Log) alike(tested []*Series) []int {
	until := make([]int32, len(l.Runs)) // the first run that is two months behind each
	to := 0
	for i := range l.Runs {
		for to < len(l.Runs) && !l.Runs[to].When().After(l.Runs[i].When().Add(2*month)) {
			to++
		}
		until[i] = int32(to)
	}
	steps := make([]int, len(l.Runs)+1)
	for _, s := range tested {
		if s.Cell.Fixed {
			continue
		}
		from, end := int32(0), int32(0)
		for _, p := range s.Points {
			if p.Run > end || end == 0 {
				steps[from]++
				steps[end]--
				from = p.Run
			}
			end = until[p.Run]
		}
		steps[from]++
		steps[end]--
	}
	n := 0
	for i := range steps {
		n += steps[i]
		steps[i] = n
	}
	return steps
}

// ratio reports whether ratios are tested: in most of the last ten runs, the control cell has the figure, too. Runs in
// which it failed are left out then.
func (s *Series) ratio() bool {
	last, with := s.Points[max(0, len(s.Points)-10):], 0
	for _, p := range last {
		if !math.IsNaN(p.Control) {
			with++
		}
	}
	return s.Figure.Ratio && !s.Cell.Fixed && 2*with > len(last)
}

// tested are the points of a series that are compared, and what is compared of them.
func (l *Log) tested(s *Series, alike []int) (points []int, out change.Series) {
	ratio := s.ratio()
	out.Log = true
	switch s.Figure.Better {
	case "higher":
		out.Worse = -1
	case "lower":
		out.Worse = 1
	}
	for i, p := range s.Points {
		if !ratio || !math.IsNaN(p.Control) {
			points = append(points, i)
			out.Log = out.Log && p.Middle > 0 && !(ratio && p.Control <= 0)
		}
	}
	first := 0
	for at, i := range points {
		p := s.Points[i]
		v := p.Middle
		switch {
		case ratio && out.Log:
			v = math.Log(v / p.Control)
		case out.Log:
			v = math.Log(v)
		}
		when := l.Runs[p.Run].When()
		for l.Runs[s.Points[points[first]].Run].When().Before(when.Add(-month)) {
			first++
		}
		out.Values = append(out.Values, v)
		out.Budget = append(out.Budget, change.Budget(alike[p.Run], at-first+1))
	}
	return points, out
}

// find lists the changes of a series, and says how many runs it needs before it can have one. beside is what it has, by
// run, beside other cells; nil: nothing.
func (l *Log) find(s *Series, alike []int, beside []float64) (out []*Finding, needed int) {
	points, values := l.tested(s, alike)
	if beside != nil && values.Log {
		for _, i := range points {
			values.Beside = append(values.Beside, beside[s.Points[i].Run])
		}
	}
	for _, c := range change.Find(values) {
		out = append(out, l.finding(s, points, values, c))
	}
	return out, change.Needed(values.Budget[len(points)-1])
}

func (l *Log) finding(s *Series, points []int, values change.Series, c change.Change) *Finding {
	level := func(from, to int) float64 {
		var all []float64
		for _, i := range points[from:to] {
			all = append(all, s.Points[i].Value)
		}
		return stats.Median(all)
	}
	head, last := &l.Runs[s.Points[points[c.At]].Run], &l.Runs[s.Points[points[c.At-1]].Run]
	f := &Finding{Machine: s.Machine, Cell: s.Cell.Label, Figure: s.Figure.Name, Title: s.Figure.Title,
		Unit: s.Figure.Unit, Percent: c.Percent, Low: c.Lo, High: c.Hi, Absolute: !values.Log,
		Ratio: s.ratio(), Beside: c.Beside, Before: level(c.From, c.At), After: level(c.At, c.To),
		Runs: c.To - c.At, Chance: c.Chance, Since: head.Commit, Last: last.Commit, Run: head.ID, series: s}
	f.Worse = s.Figure.Better == "higher" && c.Percent < 0 || s.Figure.Better == "lower" && c.Percent > 0
	f.ID = hash(s.Key + f.Run)
	if c.Suspected {
		f.Confirm = l.confirm(head, c.More)
	}
	// From here on numbers are those of the series' points.
	if c.To < len(points) {
		c.To = points[c.To]
	} else {
		c.To = len(s.Points)
	}
	c.At, c.From, c.Seen = points[c.At], points[c.From], points[c.Seen]
	f.change = c
	return f
}

// confirm has the command that adds launches of the newest run's commit.
func (l *Log) confirm(h *Head, runs int) []string {
	from := cmp.Or(h.Folder, "RESULTS")
	one := fmt.Sprintf("llmparity run %s/plan.yaml && llmparity history add results/latest --commit %s", quoted(from),
		quoted(h.Commit.Short()))
	if runs == 1 {
		return []string{one}
	}
	return []string{fmt.Sprintf("for i in $(seq %d); do %s; done", runs, one)}
}

// quoted is a word for a shell. A folder's name may come from anyone.
func quoted(word string) string {
	plain := func(c rune) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.ContainsRune("/._-+:", c)
	}
	if strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 && !strings.HasPrefix(word, "-") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// judge says what a change is.
func (l *Log) judge(f *Finding, all []*Finding, marks []Mark, moved []*Finding) {
	if ack, known := l.acknowledged(f); known {
		f.Verdict, f.Why = Acknowledged, ack.Reason
		return
	}
	f.explain(marks, moved)
	switch {
	case f.change.Suspected:
		f.Verdict = Suspected
	case f.Verdict != "":
	case f.Low < 0 && f.High > 0:
		f.Verdict, f.Why = Recovered, "runs since then do not show it"
	case f.series.Figure.Better == "":
		f.Verdict = Changed
	case !f.Worse:
		f.Verdict = Improvement
	case recovered(f, all):
		f.Verdict = Recovered
	default:
		f.Verdict = Regression
	}
}

// explain looks for what changed at the same time.
func (f *Finding) explain(marks []Mark, moved []*Finding) {
	for _, m := range marks {
		if m.At >= f.change.At-1 && m.At <= f.change.At+1 {
			f.Verdict, f.Why = Environment, strings.Join(m.What, "; ")
			return
		}
	}
	if f.series.Cell.Fixed {
		f.Verdict, f.Why = Machine, "the control cell itself changed"
		return
	}
	for _, m := range moved {
		if near := m.run() - f.run(); near >= -2 && near <= 2 {
			f.Verdict = Machine
			f.Why = fmt.Sprintf("the control cell changed by %s at the same time", m.size(m.Percent))
			return
		}
	}
}

// run is the number of the first run behind a change.
func (f *Finding) run() int { return int(f.series.Points[f.change.At].Run) }

// recovered reports whether later runs took back most of a change.
func recovered(f *Finding, all []*Finding) bool {
	now := f.After
	for _, o := range all {
		if o.change.At > f.change.At && !o.change.Suspected {
			now = o.After
		}
	}
	return math.Abs(now-f.Before) < math.Abs(now-f.After) ||
		(now-f.Before)*(f.After-f.Before) < 0 // it is better than it was
}

// acknowledged finds the acknowledgement of a change. Later runs may move a change by a run or two.
func (l *Log) acknowledged(f *Finding) (Ack, bool) {
	for _, a := range l.Acks {
		if a.Better == f.Worse || a.Series != "" && a.Series != f.series.Key {
			continue
		}
		for at := max(0, f.change.At-2); at <= min(f.change.At+2, len(f.series.Points)-1); at++ {
			if l.Runs[f.series.Points[at].Run].ID == a.Run {
				return a, true
			}
		}
	}
	return Ack{}, false
}

// Ack makes the acknowledgement of changes: one by its name, or all whose first commit begins like it.
func (r *Report) Ack(name, reason, by string) (out []Ack) {
	for _, f := range r.Findings {
		if len(name) >= 4 && (strings.HasPrefix(f.ID, name) || strings.HasPrefix(f.Since.SHA, name)) &&
			f.Verdict != Acknowledged {
			out = append(out, Ack{Series: f.series.Key, Run: f.Run, Commit: f.Since.SHA, Better: !f.Worse,
				Reason: reason, By: by})
		}
	}
	return out
}
