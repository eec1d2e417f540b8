package compare_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/compare/gate"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/reports/tables"
)

// set is a cell whose plan varied fields of the engine's section.
func set(e comparetest.Engine, id int, fields map[string]string) comparetest.Engine {
	e.Cell.ID, e.Cell.Settings = id, maps.Clone(fields)
	return e
}

// power has two cells of one engine that differ in a field that no code names, and another engine's.
func power(t *testing.T, values ...string) *record.Run {
	engines := []comparetest.Engine{comparetest.Native(6)}
	for i, v := range values {
		engines = append(engines, set(comparetest.Browser(6), 10+i, map[string]string{"power_preference": v}))
	}
	return comparetest.Run(t, "power", engines...)
}

func labels(r *compare.Result) (out []string) {
	for _, c := range r.Cells {
		out = append(out, c.Label)
	}
	return out
}

// A new axis needs no code: labels, pairs, groups, the title and the table of cells have it.
func TestNewAxisInOneRun(t *testing.T) {
	run := power(t, "low", "high")
	r := compare.With(compare.Rules{By: []string{"power_preference"}}, run)
	want := []string{"llamacpp", "webllm, low power preference", "webllm, high power preference"}
	if got := labels(r); !slices.Equal(got, want) {
		t.Errorf("labels %q, want %q", got, want)
	}
	if n := len(r.Comparisons); n != 3 || !slices.Equal(r.Comparisons[2].Axes, []string{"power_preference"}) {
		t.Errorf("%d pairs: each value is compared with the other engine, and the second with the first", n)
	}
	var groups []string
	for _, g := range r.Groups {
		groups = append(groups, g.Name)
	}
	want = []string{"power_preference none", "power_preference low", "power_preference high"}
	if !slices.Equal(groups, want) {
		t.Errorf("groups %q, want %q", groups, want)
	}
	for by, want := range map[string]string{"device": "device cpu", "run": "run power"} {
		if g := compare.With(compare.Rules{By: []string{by}}, run).Groups; g[0].Name != want {
			t.Errorf("group %q, want %q", g[0].Name, want)
		}
	}
	check.Err(t, compare.Rules{By: []string{"power_preference"}}.Check(run))
	asPlanned := compare.Rules{By: []string{"webllm.power_preference", "output_length"}} // as a plan names them
	check.Err(t, asPlanned.Check(run))
	if g := compare.With(asPlanned, run).Groups; len(g) != 3 {
		t.Errorf("%d groups by the names of a plan, want 3", len(g))
	}
	if err := (compare.Rules{By: []string{"power_preference"}}).Check(); err == nil {
		t.Error("no run has the field, and it is accepted")
	}
	if got := answer.Of(r).Facts[0]; !strings.HasSuffix(got, ", 2 values of power_preference") {
		t.Error(got)
	}
	summary := tables.Of(r)[0]
	at := slices.IndexFunc(summary.Columns, func(c tables.Column) bool { return c.Name == "power_preference" })
	var column []string
	check.Err(t, summary.Rows(func(row []tables.Value) error {
		column = append(column, row[at].Text)
		return nil
	}))
	if want := []string{"", "low", "high"}; !slices.Equal(column, want) {
		t.Errorf("column %q, want %q", column, want)
	}
}

// Cells of a later run whose value the first run lacks are said to differ in the axis.
func TestNewAxisBetweenRuns(t *testing.T) {
	r := compare.Runs(power(t, "low"), power(t, "low", "high"))
	if said := strings.Join(r.Comparability, "\n"); !strings.Contains(said, "values of power_preference differ") {
		t.Error(said)
	}
}

// A gate finds the baseline run's cell with the same value, wherever it stands; another value must be under test.
func TestNewAxisInAGate(t *testing.T) {
	g := &gates.Gate{Changes: []gates.Change{{Figure: figure.Of(figure.PeakPSS), Change: 0.1, Level: gates.Error}}}
	low, high := compare.Runs(power(t, "low", "high")), compare.Runs(power(t, "high", "low"))
	for _, c := range gate.Evaluate(g, high, low).Checks {
		if c.Status == gates.Inconclusive {
			t.Errorf("%s: %s", c.Cell, c.Why)
		}
	}
	const says = "power_preference high, baseline run low"
	now, base := compare.Runs(power(t, "high")), compare.Runs(power(t, "low"))
	if notes := gate.Evaluate(g, now, base).Notes; !strings.Contains(strings.Join(notes, "\n"), "under test: "+says) {
		t.Errorf("%q\nwant %s", notes, says)
	}
	g.UnderTest = []string{gates.TestEngine}
	if why := fmt.Sprint(gate.Evaluate(g, now, base).Checks); !strings.Contains(why, "is not under test: "+says) {
		t.Errorf("%s\nwant %s", why, says)
	}
}

// Cells that differ in a number alone are a sweep, by the number.
func TestNewAxisOfNumbersIsASweep(t *testing.T) {
	var engines []comparetest.Engine
	for i, n := range []string{"512", "64", "128"} {
		engines = append(engines, set(comparetest.Native(2), 10+i, map[string]string{"ubatch": n}))
	}
	r := compare.Runs(comparetest.Run(t, "sweep", engines...))
	if len(r.Sweeps) != 1 {
		t.Fatalf("%d sweeps", len(r.Sweeps))
	}
	if s := r.Sweeps[0]; s.Axis != "ubatch" || !slices.Equal(s.At, []float64{64, 128, 512}) ||
		!slices.Equal(s.Cells, []int{1, 2, 0}) || s.Label != "llamacpp" {
		t.Errorf("%+v", s)
	}
}

// A row of the table is enough, too: temperatures are a sweep, groups, and in the title.
func TestTemperaturesInOneRun(t *testing.T) {
	var engines []comparetest.Engine
	for i, v := range []float64{0.7, 0, 1.5} {
		e := comparetest.Native(2)
		e.Cell.ID, e.Cell.Temperature = 10+i, v
		engines = append(engines, e)
	}
	r := compare.With(compare.Rules{By: []string{"temperature"}}, comparetest.Run(t, "temperatures", engines...))
	if len(r.Sweeps) != 1 || r.Sweeps[0].Axis != "temperature" ||
		!slices.Equal(r.Sweeps[0].At, []float64{0, 0.7, 1.5}) {
		t.Errorf("%+v", r.Sweeps)
	}
	if len(r.Groups) != 3 || r.Groups[0].Name != "temperature 0.7" {
		t.Errorf("%+v", r.Groups)
	}
	if title := answer.Of(r).Title; !strings.HasSuffix(title, ", 3 temperatures") {
		t.Error(title)
	}
}

// Outputs at other temperatures are not compared, nor are random ones.
func TestTemperaturesAreNotCompared(t *testing.T) {
	run := func(browser, native float64) *compare.Result {
		a, b := comparetest.Browser(6), comparetest.Native(6)
		a.Cell.Temperature, b.Cell.Temperature = browser, native
		return compare.Runs(comparetest.Run(t, "temperatures", a, b))
	}
	const refused = "not comparable here: temperature differs: 0.7 and 0"
	if r := run(0, 0.7); len(r.Parity) != 0 || r.Comparisons[0].Refused != refused ||
		!slices.Equal(labels(r), []string{"webllm, temperature 0", "llamacpp, temperature 0.7"}) {
		t.Errorf("%q: %q, %+v", labels(r), r.Comparisons[0].Refused, r.Parity)
	}
	r := run(0.7, 0.7)
	if p := r.Parity[0]; p.Compared || p.Verdict != "not compared: tokens are random at temperature 0.7" {
		t.Errorf("%+v", p)
	}
	for _, c := range r.Cells {
		if c.Self.Known || !strings.Contains(c.Self.Verdict, "temperature 0.7") {
			t.Errorf("%s: %+v", c.Label, c.Self)
		}
	}
	for _, w := range r.Warnings {
		if w.Code == "not-deterministic" {
			t.Errorf("%+v: nobody expects random tokens to repeat", w)
		}
	}
}
