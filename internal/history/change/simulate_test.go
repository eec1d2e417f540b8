package change

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/stats"
)

// parallel calls f for each of n seeds.
func parallel(n int, f func(seed uint64)) {
	var all sync.WaitGroup
	next := make(chan uint64)
	for range runtime.NumCPU() {
		all.Go(func() {
			for seed := range next {
				f(seed)
			}
		})
	}
	for seed := range n {
		next <- uint64(seed)
	}
	close(next)
	all.Wait()
}

// alarms counts the first alarms of series without a change, by the number of runs, if each look alarms below p.
func alarms(series, length int, p float64) (by []int) {
	by = make([]int, length+1)
	var lock sync.Mutex
	const each = 1000
	parallel(series/each, func(seed uint64) {
		r := rand.New(rand.NewPCG(seed, math.Float64bits(p)))
		values := make([]float64, length)
		for range each {
			for i := range values {
				values[i] = r.Float64()
			}
			sc := newScan(values)
			for i := range values {
				sc.add(i)
				if _, least := sc.best(Series{}, p); least <= p*Factor(p, i+1) {
					lock.Lock()
					by[i+1]++
					lock.Unlock()
					break
				}
			}
		}
	})
	return by
}

func BenchmarkFactor(b *testing.B) {
	for b.Loop() {
		for _, one := range []struct {
			p      float64
			series int
		}{{1e-3, 20_000}, {1e-4, 100_000}, {1e-5, 500_000}} {
			by := alarms(one.series, 120, one.p)
			left, text := one.series, ""
			for from := 0; from < 120; from += 20 {
				sum, looks := 0, 0
				for n := from + 1; n <= from+20; n++ {
					looks += left
					left -= by[n]
					sum += by[n]
				}
				text += fmt.Sprintf(" %d:%.2f(%d)", from+20, float64(sum)/float64(looks)/one.p, sum)
			}
			fmt.Printf("%g:%s\n", one.p, text)
		}
	}
}

// machine draws the runs of a dashboard.
type machine struct {
	r      *rand.Rand
	tail   bool    // launches and runs with long tails
	steps  float64 // of the last of a series, as a logarithm
	at     int     // where it begins
	shaken bool    // the machine is slower by 3% for ten runs; every run has a control cell
	cells  int     // how many share the control cell; at least five stand beside each other
	all    bool    // all of these have the step, and not only the first
}

// noise has a deviation of about 1. A long tail is Student's with three degrees of freedom.
func (m *machine) noise() float64 {
	z := m.r.NormFloat64()
	if m.tail {
		sum := 0.0
		for range 3 {
			n := m.r.NormFloat64()
			sum += n * n
		}
		z /= math.Sqrt(sum) // its deviation is that of Student's divided by sqrt 3
	}
	return z
}

// run is the value of a cell in one run: 2% between runs, 5% between launches, the middle of six.
func (m *machine) run() float64 {
	run := 0.02 * m.noise()
	launches := make([]float64, 6)
	for i := range launches {
		launches[i] = run + 0.05*m.noise()
	}
	slices.Sort(launches)
	return Middle(launches)
}

// series are the logarithms of a cell over so many runs.
func (m *machine) series(n int, step bool) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = m.run()
		if step && i >= m.at {
			out[i] += m.steps
		}
	}
	return out
}

// figure are the series of a figure: of one cell, or of all that share a control cell.
func (m *machine) figure(n int, shake []float64, budget []float64) (out []Series) {
	control := make([]float64, n)
	if m.shaken {
		control = m.series(n, false)
	}
	var logs [][]float64
	for i := range max(1, m.cells) {
		values := m.series(n, i == 0 || m.all)
		ratios := slices.Clone(values)
		for run := range values {
			if m.shaken {
				values[run] += shake[run]
			}
			ratios[run] -= control[run] // the machine's state is in both
		}
		logs = append(logs, values)
		out = append(out, Series{Values: ratios, Budget: budget, Log: true, Worse: -1})
	}
	if m.shaken {
		for i, beside := range Beside(logs) {
			out[i].Beside = beside
		}
	}
	return out
}

// unchanged counts the months of dashboards without a change that have an alarm, and the last nights with a suspicion.
func unchanged(dashboards, series, runs int, of machine) (months []int, nights int) {
	months = make([]int, runs/30)
	var lock sync.Mutex
	parallel(dashboards, func(seed uint64) {
		m := of
		m.at = runs
		m.r = rand.New(rand.NewPCG(seed, 1))
		shake := make([]float64, runs)
		for i := range 10 {
			shake[(int(seed)%(runs-10))+i] = -0.03
		}
		bad, suspicious := make([]bool, len(months)), false
		budget := constant(Budget(series, 30), runs)
		for tested := 0; tested < series; {
			for _, one := range m.figure(runs, shake, budget) {
				tested++
				for _, c := range Find(one) {
					if c.Suspected {
						suspicious = true
					} else {
						bad[c.Seen/30] = true
					}
				}
			}
		}
		lock.Lock()
		defer lock.Unlock()
		if suspicious {
			nights++
		}
		for i, b := range bad {
			if b {
				months[i]++
			}
		}
	})
	return months, nights
}

func constant(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// planted counts how many steps are found within five runs, and how many of those are placed within one run.
func planted(histories, at int, of machine) (found, placed int) {
	var lock sync.Mutex
	parallel(histories, func(seed uint64) {
		m := of
		m.at, m.steps = at, math.Log(0.9)
		m.r = rand.New(rand.NewPCG(seed, 2))
		known, near := false, false
		for _, one := range m.figure(at+5, make([]float64, at+5), constant(Budget(160, 30), at+5)) {
			for _, c := range Find(one) {
				if c.Suspected || c.At < at-10 || c.Percent > 0 {
					continue
				}
				known = true
				near = near || c.At >= at-1 && c.At <= at+1
			}
			if !m.all {
				break
			}
		}
		lock.Lock()
		defer lock.Unlock()
		if known {
			found++
		}
		if near {
			placed++
		}
	})
	return found, placed
}

// kind is a noise that the rate must hold for.
type kind struct {
	name string
	of   machine
}

var kinds = []kind{{"normal", machine{}}, {"long-tailed", machine{tail: true}},
	{"a control cell for one cell", machine{shaken: true}},
	{"a control cell for 16 cells", machine{shaken: true, cells: 16}},
	{"a control cell for 16 long-tailed cells", machine{shaken: true, tail: true, cells: 16}},
	{"a step of all 16 cells", machine{shaken: true, cells: 16, all: true}}}

// long reports whether it is only for slow tests.
func (k kind) long() bool { return !check.Slow && k.of.tail && k.of.cells > 0 }

// TestFalseAlarms counts the months of unchanged dashboards with an alarm: 160 series, four months of a run a night.
// With -tags slow these are 1,000 dashboards of each kind, and at most 6.4% of them may have one in any month: 5%, and
// two standard deviations.
func TestFalseAlarms(t *testing.T) {
	for _, k := range kinds {
		if k.of.all || k.long() {
			continue // without a step, a step of all is none
		}
		t.Run(k.name, func(t *testing.T) {
			dashboards, most := 20, 8 // 4.7% are 3 in 60 months; without the factor there would be fifteen
			if check.Slow {
				dashboards, most = 1000, 64
			}
			months, nights := unchanged(dashboards, 160, 120, k.of)
			t.Logf("%d dashboards, with an alarm in each month: %v; with a suspicion in the last night: %d", dashboards, months,
				nights)
			if !check.Slow {
				months = []int{months[1] + months[2] + months[3]}
			}
			for i, n := range months {
				if n > most {
					t.Errorf("month %d: %d of %d have an alarm, at most %d may", i+1, n, dashboards, most)
				}
			}
		})
	}
}

// TestStepsAreFound plants a step of a tenth into one of 160 series.
func TestStepsAreFound(t *testing.T) {
	histories := 100
	if check.Slow {
		histories = 2000
	}
	for _, k := range kinds {
		if k.long() {
			continue
		}
		for _, step := range []struct{ at, least int }{{30, 0}, {45, 0}, {60, 75}, {90, 80}, {115, 80}} {
			found, placed := planted(histories, step.at, k.of)
			percent := 100 * found / histories
			t.Logf("%s, at run %d: found %d%%, placed within a run %d%% of those", k.name, step.at, percent,
				100*placed/max(found, 1))
			alone, astray := k.of.shaken && k.of.cells < fewest, placed*100 < 90*found && step.least > 0
			if !alone && (percent < step.least || astray) {
				t.Errorf("%s, at run %d: found %d%%, placed %d of %d", k.name, step.at, percent, placed, found)
			}
		}
	}
}

// TestCellsBesideThoseThatChange: if eleven of sixteen cells get slower, the other five seem to get faster beside them,
// and are no change; nor are they the other way round.
func TestCellsBesideThoseThatChange(t *testing.T) {
	for _, step := range []float64{math.Log(0.9), math.Log(1.1)} {
		found, wrong := 0, 0
		for seed := range uint64(40) {
			m := machine{r: rand.New(rand.NewPCG(seed, 5)), at: 60, steps: step}
			control := m.series(90, false)
			var logs, ratios [][]float64
			for i := range 16 {
				logs = append(logs, m.series(90, i < 11))
				ratios = append(ratios, make([]float64, 90))
				for run := range 90 {
					ratios[i][run] = logs[i][run] - control[run]
				}
			}
			for i, beside := range Beside(logs) {
				for _, c := range Find(Series{Values: ratios[i], Beside: beside, Budget: constant(Budget(160, 30), 90),
					Log: true, Worse: -1}) {
					switch {
					case c.Suspected:
					case i < 11:
						found++
					default:
						wrong++
					}
				}
			}
		}
		t.Logf("step %+.2f: found in %d of 440 cells, wrongly in %d of 200", step, found, wrong)
		if wrong > 2 || found < 300 {
			t.Errorf("found %d, %d of them wrongly", found, wrong)
		}
	}
}

// TestLimitOfOneCell says what no test can exceed with one cell and one control cell: that of a test which knows the
// deviation of runs and that they are normal, and that the step can only be where it is. Of the p that a look has, the
// looks and places cost it a part; it pays none.
func TestLimitOfOneCell(t *testing.T) {
	m := machine{r: rand.New(rand.NewPCG(3, 3))}
	runs := make([]float64, 20_000)
	for i := range runs {
		runs[i] = m.run() - m.run()
	}
	_, _, deviation := stats.Moments(runs)
	const before, all = 115, 100_000
	for _, share := range []float64{1, 1 / Factor(Budget(160, 30), before)} {
		z := math.Sqrt2 * math.Erfcinv(2*Budget(160, 30)*toWorse*share)
		found := 0
		for range all {
			sum, base := 0.0, m.r.NormFloat64()/math.Sqrt(before)
			for behind := 1.0; behind <= 5; behind++ {
				sum += m.r.NormFloat64() - math.Log(0.9)/deviation
				if behind >= After && (sum/behind-base)/math.Sqrt(1/behind+1.0/before) > z {
					found++
					break
				}
			}
		}
		t.Logf("runs vary by %.2f%%; z of %.2f: found %.0f%%", 100*deviation, z, 100*float64(found)/all)
		if found == 0 || found == all {
			t.Error("the limit is trivial")
		}
	}
}

// TestSpikesAreNoChange: single runs, however far off, are no change; nor are two.
func TestSpikesAreNoChange(t *testing.T) {
	m := machine{r: rand.New(rand.NewPCG(1, 1)), at: 1000}
	values := m.series(120, false)
	values[40], values[80], values[81] = -1, -1, -1
	if got := Find(Series{Values: values, Budget: constant(Budget(1, 30), 120), Log: true, Worse: -1}); len(got) > 0 {
		t.Errorf("found %+v", got)
	}
}

// TestEqualValues: a figure that never varies changes as soon as enough runs have another value.
func TestEqualValues(t *testing.T) {
	values := constant(7, 60)
	for i := 50; i < 60; i++ {
		values[i] = 8
	}
	got := Find(Series{Values: values, Budget: constant(Budget(160, 30), 60), Worse: 1})
	if len(got) != 1 || got[0].At != 50 || got[0].Percent != 1 || got[0].Lo != 1 || got[0].Suspected {
		t.Errorf("found %+v", got)
	}
	if got := Find(Series{Values: constant(7, 300), Budget: constant(1e-4, 300)}); len(got) > 0 {
		t.Errorf("found %+v in equal values", got)
	}
}

// TestSuspicion: a step at the newest end is suspected first, and then an alarm.
func TestSuspicion(t *testing.T) {
	m := machine{r: rand.New(rand.NewPCG(4, 1)), at: 60, steps: math.Log(0.7)}
	values := m.series(70, true)
	first, sure := 0, 0
	for n := 55; n <= 70; n++ {
		got := Find(Series{Values: values[:n], Budget: constant(Budget(160, 30), n), Log: true, Worse: -1})
		switch {
		case len(got) == 1 && got[0].Suspected:
			if first == 0 {
				first = n
			}
			if got[0].More < 1 || got[0].At != 60 {
				t.Errorf("after %d runs: %+v", n, got[0])
			}
		case len(got) == 1 && sure == 0:
			sure = n
		}
	}
	if first < 61 || first > 62 || sure < 63 || sure > 65 {
		t.Errorf("suspected with run %d, an alarm with run %d", first, sure)
	}
}

// TestLongSeriesForgetTheOldest compares what is kept run by run with a count of all pairs.
func TestLongSeriesForgetTheOldest(t *testing.T) {
	m := machine{r: rand.New(rand.NewPCG(9, 1)), at: 700, steps: math.Log(0.9)}
	values := m.series(800, true)
	sc := newScan(values)
	for i := range values {
		sc.add(i)
	}
	for k := 1; k < sc.runs(); k++ {
		want := 0
		for _, a := range values[sc.start : sc.start+k] {
			for _, b := range values[sc.start+k:] {
				want += int(order(a, b))
			}
		}
		if int(sc.counts[k]) != want {
			t.Fatalf("place %d: %d pairs, want %d", k, sc.counts[k], want)
		}
	}
	got := Find(Series{Values: values, Budget: constant(Budget(160, 30), 800), Log: true, Worse: -1})
	if len(got) != 1 || got[0].At < 699 || got[0].At > 701 || got[0].Percent > -8 || got[0].Percent < -12 ||
		got[0].Lo > -10 || got[0].Hi < -10 {
		t.Errorf("found %+v", got)
	}
}
