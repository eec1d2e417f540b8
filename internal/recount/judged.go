package recount

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// judged is a check of a gate as it must be.
type judged struct {
	gateSaid
	x, y  []float64 // by launches
	worse float64   // by which sign it is worse
	pair  gatePair
	asked bool // it is one of the questions that are corrected for each other
	// Tests against the baseline moved by what is let pass, and as it is.
	moved, plain chanceOf
	says         []told   // numbers that the reason begins with
	but          []saying // what else decides it
	hides        bool     // a regression, else it makes one
}

// told is a number of a reason, and how far off it may stand there beyond what four digits leave out.
type told struct{ v, slack float64 }

type chanceOf struct {
	p, best float64
	same    string
}

// gateSaid is of a gate's JSON a check.
type gateSaid struct {
	Name, Kind, Cell, Level, Status, Why string
	Figure, Column, Unit                 string
	Measured, Min, Max, Baseline, P      *float64
	Interval                             *struct{ Lo, Hi, Confidence float64 }
	Launches                             int
	Before                               int      `json:"baseline_launches"`
	Percent                              *float64 `json:"delta_percent"`
	PercentInterval                      *ends    `json:"delta_percent_interval"`
	Allowed                              *float64 `json:"allowed_percent"`
	Corrected                            *float64 `json:"p_holm"`
	Detect                               *float64 `json:"detect_percent"`
	DetectInterval                       *ends    `json:"detect_interval"`
	Found                                *float64 `json:"found_percent"`
	Needed                               int      `json:"launches_needed"`
}

type gateOutcome struct {
	Status, Verdict string
	Advice          string
	Tests           int
	Alpha           float64
	Checks          []gateSaid
	Counts          []struct {
		Status string
		Checks int
	}
}

// key is what checks are told apart by.
func (s gateSaid) key() string {
	words := []string{s.Kind, s.Cell, s.Figure, s.Level}
	for _, v := range []*float64{s.Min, s.Max, s.Allowed} {
		if v == nil {
			words = append(words, "-")
		} else {
			words = append(words, strconv.FormatFloat(*v, 'g', 9, 64))
		}
	}
	return strings.Join(words, " | ")
}

// gateColumns are names and units in summary.csv of the figures that are judged here.
func gateColumns() map[string][2]string {
	return map[string][2]string{"peak_pss": {"peak_pss_mb", "MiB"}, "memory_increase": {"memory_increase_mb", "MiB"},
		"baseline_pss": {"baseline_pss_mb", ""},
		"peak_uss":     {"peak_uss_mb", "MiB"}, "peak_rss_sum": {"peak_rss_sum_mb", "MiB"},
		"load_time": {"load_time_ms", "ms"}, "ttft": {"ttft_ms", "ms"},
		"latency": {"latency_ms", "ms"}, "prefill_tps": {"prefill_tokens_per_s", "tokens/s"},
		"decode_tps": {"decode_tokens_per_s", "tokens/s"}}
}

// Check holds a gate's outcome, which is in a report's JSON, on its page and in the gate's own JSON and JUnit, against
// what it must be.
func (g *Gated) Check(t testing.TB, report, own, junit []byte, page string) {
	t.Helper()
	var res struct {
		result
		Gate json.RawMessage
	}
	var said, alone gateOutcome
	for _, of := range []struct {
		text []byte
		into any
	}{{report, &res}, {own, &alone}} {
		if err := json.Unmarshal(of.text, of.into); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(res.Gate, &said); err != nil {
		t.Fatal(err)
	}
	c := &gateCheck{check: &check{TB: t, Work: g.run, res: res.result}, Gated: g, said: said, labels: map[int]string{}}
	if c.count(); fmt.Sprintf("%+v", plainly(said)) != fmt.Sprintf("%+v", plainly(alone)) {
		t.Errorf("the gate's own JSON is another than the report's:\n%+v\n%+v", plainly(alone), plainly(said))
	}
	for _, cell := range res.Cells {
		c.labels[cell.Spec.ID] = cell.Label
	}
	c.launches()
	c.limits()
	c.changes()
	c.parities()
	c.hold()
	c.whole()
	c.onPage(page)
	c.inJUnit(junit)
	t.Logf("%d numbers of %d checks worked out again", c.compared, len(c.all))
}

// plainly is an outcome as it reads, without addresses.
func plainly(o gateOutcome) string {
	text, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

type gateCheck struct {
	*check
	*Gated
	said   gateOutcome
	labels map[int]string
	all    []*judged
	tests  int
}

func (c *gateCheck) count() { c.compared++ }

// add keeps a check as it must be: what came of it has a level.
func (c *gateCheck) add(j judged, came string) {
	switch {
	case j.Level == "off":
		return
	case came == "inconclusive":
		j.Status = came
	case came == "broken" && j.Level == "error":
		j.Status = "fail"
	case came == "broken" || came == "unsure":
		j.Status = "warn"
	default:
		j.Status = "pass"
	}
	c.all = append(c.all, &j)
}

func (c *gateCheck) launches() {
	for _, cell := range c.now.cells {
		mine := c.worked(cell.ID)
		j := judged{gateSaid: gateSaid{Kind: "launches", Cell: c.labels[cell.ID], Level: c.rules.Failed,
			Launches: mine.Counted}}
		came := "holds"
		if cell.refused || cell.failed > 0 || mine.Counted == 0 || mine.Counted < cell.Repetitions && !c.now.whole {
			came = "broken"
		}
		c.add(j, came)
	}
	for _, cell := range c.gone {
		c.add(judged{gateSaid: gateSaid{Kind: "cell", Cell: cell.Engine, Level: c.rules.Gone}}, "broken")
	}
}

func (c *gateCheck) limits() {
	for _, name := range slices.Sorted(maps.Keys(c.rules.limits)) {
		for _, l := range c.rules.limits[name] {
			j := judged{gateSaid: gateSaid{Kind: "limit", Cell: "none", Level: cmp.Or(l.Level, c.rules.Level),
				Figure: name, Min: l.Min, Max: l.Max}}
			cells := sieve(c.now.cells, l.holds)
			for _, cell := range cells {
				j.Cell = c.labels[cell.ID]
				c.limit(j, c.worked(cell.ID).Figures[name])
			}
			if len(cells) == 0 {
				c.add(j, "inconclusive")
			}
		}
	}
}

// limit is broken where the interval lies wholly beyond, and without one where every launch does.
func (c *gateCheck) limit(j judged, f Figure) {
	if len(f.Values) == 0 {
		c.add(j, "inconclusive")
		return
	}
	j.Measured, j.Launches = &f.Median, len(f.Values)
	if j.says = []told{{v: f.Median}}; !math.IsNaN(f.Lo) {
		j.Interval = &struct{ Lo, Hi, Confidence float64 }{f.Lo, f.Hi, f.Holds}
		j.says = append(j.says, told{100 * f.Holds, 0.51}, told{v: f.Lo}, told{v: f.Hi})
	}
	broken, open := false, false
	for _, v := range []struct {
		limit *float64
		sign  float64
	}{{j.Max, 1}, {j.Min, -1}} {
		if v.limit == nil {
			continue
		}
		beyond := func(x float64) bool { return v.sign*x > v.sign**v.limit }
		open = open || beyond(f.Median)
		if j.Interval != nil {
			broken = broken || beyond(f.Lo) && beyond(f.Hi)
		} else {
			broken = broken || !slices.ContainsFunc(f.Values, func(x float64) bool { return !beyond(x) })
		}
	}
	busy := c.run.evidence[0].folder.others() != nil && timed(gateColumns()[j.Figure][1])
	switch {
	case broken && !busy:
		c.add(j, "broken")
	case open:
		c.add(j, "inconclusive")
	default:
		c.add(j, "holds")
	}
}

// changes are questions that are asked together.
func (c *gateCheck) changes() {
	var asked []judged
	for _, name := range slices.Sorted(maps.Keys(c.rules.changes)) {
		for _, r := range c.rules.changes[name] {
			j := judged{gateSaid: gateSaid{Kind: "vs_baseline", Cell: "none", Level: cmp.Or(r.Level, c.rules.Level),
				Figure: name, Allowed: &r.percent, Detect: &r.detect}, worse: 1}
			if j.Level == "off" {
				continue
			}
			if strings.HasSuffix(name, "_tps") {
				j.worse = -1
			}
			optional := c.rules.NoBaseline == "ok"
			if c.base == nil {
				if j.Cell = "all"; !optional {
					c.add(j, "inconclusive")
				}
				continue
			}
			found := false
			of := slices.DeleteFunc(slices.Clone(c.pairs), func(p gatePair) bool { return !r.holds(p.now) })
			for _, p := range of {
				found, j.Cell, j.pair = true, c.labels[p.now.ID], p
				switch {
				case p.base == nil && optional: // it is new
				case p.base == nil || p.incommensurable || c.unlike(name, p) || len(p.was.Figures[name].Values) == 0 ||
					len(p.is.Figures[name].Values) == 0:
					c.add(j, "inconclusive")
				default:
					asked = append(asked, c.ask(j))
				}
			}
			if !found {
				c.add(j, "inconclusive")
			}
		}
	}
	c.correct(asked)
}

// ask tests launches against the baseline's moved by what is let pass, and as they are.
func (c *gateCheck) ask(j judged) judged {
	was, is := j.pair.was.Figures[j.Figure], j.pair.is.Figures[j.Figure]
	j.asked, j.x, j.y = true, j.pair.was.perLaunch(j.Figure), j.pair.is.perLaunch(j.Figure)
	j.Measured, j.Baseline, j.Launches, j.Before = &is.Median, &was.Median, len(j.y), len(j.x)
	if !math.IsNaN(is.Lo) {
		j.Interval = &struct{ Lo, Hi, Confidence float64 }{is.Lo, is.Hi, is.Holds}
	}
	j.says = []told{{v: is.Median}, {v: was.Median}}
	if was.Median > 0 {
		percent := 100 * (is.Median/was.Median - 1)
		j.Percent = &percent
	}
	if min(len(j.x), len(j.y)) >= few && slices.Min(j.x) > 0 && slices.Min(j.y) > 0 {
		j.PercentInterval, j.DetectInterval = c.shifted(j.x, j.y, *j.Percent, 0.005), c.shifted(j.x, j.y,
			*j.Percent, 0.05)
	}
	best := 2 / choose(len(j.x)+len(j.y), len(j.x))
	test := func(by float64) chanceOf {
		moved := slices.Clone(j.x)
		for i := range moved {
			moved[i] *= by
		}
		key := fmt.Sprint("gate's p ", moved, j.y)
		return chanceOf{kept(c.Work, key, func() float64 { return chance(moved, j.y) }), best,
			fmt.Sprint(j.pair.base.ID, " ", order(moved, j.y))}
	}
	j.plain, j.moved = test(1), test(1+*j.Allowed/100)
	return j
}

// correct is Holm's correction for all questions: those of a cell that order its launches alike are one.
func (c *gateCheck) correct(asked []judged) {
	by := func(of func(judged) (string, float64)) map[string]float64 {
		out := map[string]float64{}
		for _, j := range asked {
			key, p := of(j)
			out[key] = p
		}
		return out
	}
	holm := func(of func(judged) (string, float64)) map[string]float64 {
		return byWeight(by(of), by(func(j judged) (string, float64) { key, _ := of(j); return key, 1 }))
	}
	moved := holm(func(j judged) (string, float64) { return j.moved.same, j.moved.p })
	plain := holm(func(j judged) (string, float64) { return j.plain.same, j.plain.p })
	best := holm(func(j judged) (string, float64) { return j.moved.same, j.moved.best })
	c.tests = len(moved)
	for _, j := range asked {
		p := moved[j.moved.same]
		j.P, j.Corrected = &j.moved.p, &p
		few := p > 0.05 && best[j.moved.same] > 0.05*(1+1e-9) || min(len(j.x), len(j.y)) < few
		c.add(j, c.answer(&j, p <= 0.05, plain[j.plain.same] <= 0.05, few))
	}
}

// shifted is the interval of a change in percent: as many of the lowest and of the highest ratios of a launch to one
// of the baseline are left out as leave a share of all orders of both beyond either end, and it reaches to the ratio
// of the medians.
func (c *gateCheck) shifted(x, y []float64, percent, share float64) *ends {
	var all []float64
	for _, a := range x {
		for _, b := range y {
			all = append(all, 100*(b/a-1))
		}
	}
	slices.Sort(all)
	out := kept(c.Work, fmt.Sprint("gate's rank ", len(x), len(y), share), func() int {
		sum, n := 0.0, 0
		for pairs := range all {
			if sum += ordered(len(x), len(y), pairs) / choose(len(x)+len(y), len(x)); sum > share*(1+1e-9) {
				break
			}
			n++
		}
		return n
	})
	if out == 0 {
		return nil
	}
	return &ends{min(percent, all[out-1]), max(percent, all[len(all)-out])}
}

// ordered is in how many orders of n and m values so many pairs have the one of the m first.
func ordered(n, m, pairs int) float64 {
	type key struct{ n, m, pairs int }
	known := map[key]float64{}
	var of func(n, m, pairs int) float64
	of = func(n, m, pairs int) float64 {
		switch {
		case pairs < 0 || pairs > n*m:
			return 0
		case n == 0 || m == 0:
			return 1
		}
		k := key{n, m, pairs}
		if v, ok := known[k]; ok {
			return v
		}
		known[k] = of(n-1, m, pairs-m) + of(n, m-1, pairs) // the last of all is one of the n, or of the m
		return known[k]
	}
	return of(n, m, pairs)
}

// answer is broken where the test and the wide interval have it worse than its tolerance, and holds where the narrow
// one excludes what must be detected.
func (c *gateCheck) answer(j *judged, beyond, changed, few bool) string {
	if few {
		j.Needed = c.suffice()
		j.says = append(j.says, told{v: float64(len(j.x))}, told{v: float64(len(j.y))}, told{v: float64(j.Needed)})
		return "inconclusive"
	}
	if j.PercentInterval == nil {
		return "inconclusive"
	}
	over := func(percent, bound float64) bool { return j.worse*(percent-bound) > 1e-9 }
	sides := func(e *ends) (near, far float64) {
		if j.worse < 0 {
			return e.Hi, e.Lo
		}
		return e.Lo, e.Hi
	}
	near, farther := sides(j.PercentInterval)
	_, far := sides(j.DetectInterval)
	log := func(percent float64) float64 { return math.Log(1 + percent/100) }
	deviation := math.Abs(log(farther)-log(near)) / (2 * 2.576)
	found := 100 * (math.Exp(log(*j.Allowed)+j.worse*3.858*deviation) - 1)
	j.Found = &found
	significant := beyond && over(near, *j.Allowed)
	shown := j.DetectInterval
	if significant {
		shown = j.PercentInterval
	}
	level := 90.0
	if significant {
		level = 99
	}
	percent := func(v float64) told { return told{v, 0.0051} }
	j.says = append(j.says, percent(*j.Percent), told{v: level}, percent(shown.Lo), percent(shown.Hi),
		percent(*j.Allowed), percent(*j.Detect),
		told{v: *j.Corrected}, percent(*j.Allowed), told{v: float64(len(j.x))}, told{v: float64(len(j.y))},
		percent(found))
	if significant {
		if c.outside(j) {
			return "inconclusive"
		}
		j.but = nil
		return "broken"
	}
	narrow := log(j.DetectInterval.Hi)-log(j.DetectInterval.Lo) < 2*math.Abs(log(*j.Detect))
	if over(*j.Detect, far) && (narrow || !over(far, 0)) {
		if j.hides = true; c.hidden(j) {
			return "inconclusive"
		}
		j.but = nil
		if changed && over(*j.Percent, *j.Allowed) {
			return "unsure"
		}
		return "holds"
	}
	pass := min(j.worse*(log(*j.Detect)-log(*j.Percent)), math.Abs(log(*j.Detect))) / 1.645
	fail := j.worse * (log(*j.Percent) - log(*j.Allowed)) / 2.576
	n := 2 / (1/float64(len(j.x)) + 1/float64(len(j.y)))
	if need := math.Ceil(n * math.Pow(deviation/max(pass, fail), 2)); need <= 1000 {
		j.Needed = max(int(need), len(j.x)+1, len(j.y)+1, c.suffice())
	}
	return "inconclusive"
}

// suffice is the fewest launches a side of which the most different would be called so among all questions.
func (c *gateCheck) suffice() int {
	n := few
	for 2/choose(2*n, n)*float64(max(c.tests, 1)) > 0.05 {
		n++
	}
	return n
}

// outside tells whether something else than the engine may have made a figure worse. Of times and rates: others who
// were busy before the run, and a hypervisor that gave more to other machines than it had while the baseline was
// made. Of sizes that programs outside move: that the sum of RSS grew by less than half of what they did.
func (c *gateCheck) outside(j *judged) bool {
	if timed(gateColumns()[j.Figure][1]) {
		if c.busy(j, c.run, "the run's machine was busy: ") {
			return true
		}
		t := moreStolen(j.pair.was.stolen, j.pair.is.stolen)
		j.but = t.said()
		return t.more
	}
	grown, of := c.grown(j)
	j.but = c.rss(j, "the sum of RSS did not grow with it (")
	return of && grown < (*j.Measured-*j.Baseline)/2
}

// hidden tells whether something else may have hidden that it is worse: the same, of the baseline; and that the sum
// of RSS grew by more than the size did, and by more than must be detected.
func (c *gateCheck) hidden(j *judged) bool {
	if timed(gateColumns()[j.Figure][1]) {
		if c.busy(j, c.base, "the baseline run's machine was busy: ") {
			return true
		}
		t := moreStolen(j.pair.is.stolen, j.pair.was.stolen)
		j.but = t.said()
		return t.more && t.is-t.was >= 0.25
	}
	grown, of := c.grown(j)
	j.but = c.rss(j, "the sum of RSS grew (")
	return of && grown > math.Abs(*j.Detect)/100**j.Baseline && grown > *j.Measured-*j.Baseline
}

func (c *gateCheck) busy(j *judged, of *Work, words string) bool {
	numbers := of.evidence[0].folder.others()
	if numbers != nil {
		j.but = slices.Clone(numbers)
		j.but[0].behind = words + numbers[0].behind
	}
	return numbers != nil
}

func (c *gateCheck) grown(j *judged) (float64, bool) {
	was, is := j.pair.was.Figures["peak_rss_sum"], j.pair.is.Figures["peak_rss_sum"]
	moves := strings.HasSuffix(j.Figure, "_pss") || j.Figure == "peak_uss" || j.Figure == "memory_increase"
	return is.Median - was.Median, moves && len(was.Values) > 0 && len(is.Values) > 0
}

func (c *gateCheck) rss(j *judged, words string) []saying {
	return []saying{{words, j.pair.is.Figures["peak_rss_sum"].Median}, {" MiB, baseline run ",
		j.pair.was.Figures["peak_rss_sum"].Median}}
}

// parities are of the first measured request on either side.
func (c *gateCheck) parities() {
	p := c.rules.Parity
	if p == nil {
		return
	}
	j := judged{gateSaid: gateSaid{Kind: "parity", Cell: "none", Level: cmp.Or(p.Level, c.rules.Level)}}
	found := false
	if p.With == "baseline" {
		if c.base == nil {
			if j.Cell = "all"; c.rules.NoBaseline == "ok" {
				return
			}
		}
		for _, pair := range c.pairs {
			if pair.base != nil && p.holds(pair.now) {
				found, j.Cell = true, c.labels[pair.now.ID]
				c.words(j, pair.was, pair.is)
			}
		}
	} else {
		for _, of := range c.res.Parity {
			a, b := c.res.Cells[of.A], c.res.Cells[of.B]
			if p.holds(c.now.cell(a.Spec.ID)) || p.holds(c.now.cell(b.Spec.ID)) {
				found, j.Cell = true, a.Label+" and "+b.Label
				c.words(j, c.worked(a.Spec.ID), c.worked(b.Spec.ID))
			}
		}
	}
	if !found {
		c.add(j, "inconclusive")
	}
}

func (c *gateCheck) words(j judged, a, b *Cell) {
	if len(a.ids) == 0 || len(b.ids) == 0 {
		c.add(j, "inconclusive")
		return
	}
	x, y, first := a.ids[0], b.ids[0], c.rules.Parity.First
	untold := slices.Contains(x, -1) || slices.Contains(y, -1)
	agreed, longer, same := 0, max(len(x), len(y)), slices.Equal(x, y)
	if untold {
		longer, same = max(len(a.texts[0]), len(b.texts[0])), a.texts[0] == b.texts[0]
		for agreed < longer && agreed < min(len(a.texts[0]), len(b.texts[0])) &&
			a.texts[0][agreed] == b.texts[0][agreed] {
			agreed++
		}
	} else {
		for agreed < min(len(x), len(y)) && x[agreed] == y[agreed] {
			agreed++
		}
	}
	share := 1.0
	if !same {
		share = float64(agreed) / float64(longer)
	}
	j.Measured = &share
	least, _ := strconv.ParseFloat(strings.TrimSuffix(cmp.Or(c.rules.Parity.Least, "0%"), "%"), 64)
	switch {
	case untold && first > 0 && !same:
		c.add(j, "inconclusive")
	case share < least/100 || !same && agreed+1 < first:
		c.add(j, "broken")
	default:
		c.add(j, "holds")
	}
}

// hold sets every check that was said against what it must be.
func (c *gateCheck) hold() {
	want := map[string][]*judged{}
	for _, j := range c.all {
		want[j.key()] = append(want[j.key()], j)
	}
	for _, said := range c.said.Checks {
		key := said.key()
		if len(want[key]) == 0 {
			c.Errorf("gate: the check %s is not among those worked out again", key)
			continue
		}
		j := want[key][0]
		want[key] = want[key][1:]
		c.one(key, said, j)
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		for range want[key] {
			c.Errorf("gate: the check %s is missing", key)
		}
	}
}

func (c *gateCheck) one(what string, said gateSaid, j *judged) {
	if c.count(); said.Status != j.Status {
		c.Errorf("gate: %s: its status is %s (%s), and %s worked out again", what, said.Status, said.Why, j.Status)
	}
	c.same(what+", launches", float64(said.Launches), float64(j.Launches))
	c.same(what+", launches of the baseline", float64(said.Before), float64(j.Before))
	for _, v := range []struct {
		name      string
		got, want *float64
		slack     float64
	}{{"measured", said.Measured, j.Measured, 1e-9}, {"baseline", said.Baseline, j.Baseline, 1e-9},
		{"change", said.Percent, j.Percent, last},
		{"p", said.P, j.P, 1e-8}, {"p corrected", said.Corrected, j.Corrected, 1e-8},
		{"what must be detected", said.Detect, j.Detect, 1e-9}, {"what would have been found", said.Found, j.Found,
			6e-5}} {
		if c.present(what+", "+v.name, v.got != nil, v.want != nil); v.got != nil && v.want != nil {
			c.about(what+", "+v.name, *v.got, *v.want, v.slack)
		}
	}
	if c.present(what+", interval", said.Interval != nil, j.Interval != nil); said.Interval != nil &&
		j.Interval != nil {
		c.same(what+", lower end", said.Interval.Lo, j.Interval.Lo)
		c.same(what+", upper end", said.Interval.Hi, j.Interval.Hi)
		c.rounded(what+", chance of the interval", said.Interval.Confidence, j.Interval.Confidence)
	}
	if said.Kind == "vs_baseline" {
		c.ends(what+", interval of the percentage", said.PercentInterval, j.PercentInterval)
		c.ends(what+", interval that must exclude what is detected", said.DetectInterval, j.DetectInterval)
		c.same(what+", launches that would settle it", float64(said.Needed), float64(j.Needed))
	}
	if said.Figure != "" {
		names := gateColumns()[said.Figure]
		if c.count(); said.Column != names[0] || said.Measured != nil && said.Unit != names[1] {
			c.Errorf("gate: %s: it is called %s in %s", what, said.Column, said.Unit)
		}
	}
	c.reason(what, said, j)
	c.named(what, said)
}

var number = regexp.MustCompile(`[-+]?[0-9]+(\.[0-9]+)?`)

func (c *gateCheck) ends(what string, got, want *ends) {
	if c.present(what, got != nil, want != nil); got != nil && want != nil {
		c.about(what+", lower end", got.Lo, want.Lo, last)
		c.about(what+", upper end", got.Hi, want.Hi, last)
	}
}

// reason begins with what was measured.
func (c *gateCheck) reason(what string, said gateSaid, j *judged) {
	if c.count(); said.Why == "" {
		c.Errorf("gate: %s: no reason", what)
	}
	found := number.FindAllString(said.Why, -1)
	for i, want := range j.says {
		if c.count(); i >= len(found) || !near(found[i], want.v, want.slack) {
			c.Errorf("gate: %s: its reason is %q, which should have %.4g in place %d", what, said.Why, want.v, i+1)
			return
		}
	}
	begins := "significantly worse, but "
	if j.hides {
		begins = "no regression seen, but "
	}
	_, but, told := strings.Cut(said.Why, begins)
	if c.compared += len(j.but); told != (j.but != nil) {
		c.Errorf("gate: %s: its reason is %q; that something else decides it, worked out again: %v", what, said.Why,
			j.but != nil)
	} else if wrong := tells(but, j.but); wrong != "" {
		c.Errorf("gate: %s: %s", what, wrong)
	}
}

// named holds the numbers of what a check is called.
func (c *gateCheck) named(what string, said gateSaid) {
	want := []*float64{said.Min, said.Max}
	if said.Allowed != nil && *said.Allowed != 0 {
		size := math.Abs(*said.Allowed)
		want = []*float64{&size}
	}
	found := number.FindAllString(strings.TrimPrefix(said.Name, said.Column), -1)
	for _, v := range want {
		if v == nil {
			continue
		}
		if c.count(); len(found) == 0 || !near(found[0], *v, 0) {
			c.Errorf("gate: %s: it is called %q, which should have %v", what, said.Name, *v)
			return
		}
		found = found[1:]
	}
}

// near tells whether a number is another in four digits.
func near(text string, v, slack float64) bool {
	got, err := strconv.ParseFloat(text, 64)
	return err == nil && math.Abs(got-v) <= 5.01e-4*math.Abs(v)+1e-9+slack
}

// whole holds what all checks together come to.
func (c *gateCheck) whole() {
	order, count := []string{"fail", "inconclusive", "warn", "pass"}, map[string]int{}
	open, at := 0, 0
	for _, j := range c.all {
		count[j.Status]++
		if j.Status == "inconclusive" && j.Level == "error" {
			open++
		}
	}
	for _, said := range c.said.Checks {
		if now := slices.Index(order, said.Status); now < at {
			c.Errorf("gate: a check of status %s comes after one of %s", said.Status, order[at])
		} else {
			at = now
		}
	}
	for i, status := range order {
		if c.count(); i >= len(c.said.Counts) || c.said.Counts[i].Status != status ||
			c.said.Counts[i].Checks != count[status] {
			c.Errorf("gate: the counts are %+v, and worked out again there are %d of status %s", c.said.Counts,
				count[status], status)
		}
	}
	status, total := "pass", len(c.all)
	numbers, verdict := []int{total}, c.said.Verdict
	switch level := c.rules.Inconclusive; {
	case count["fail"] > 0:
		status, numbers = "fail", []int{count["fail"], total}
	case open > 0 && level == "error":
		status, numbers = "inconclusive", []int{open, total}
		verdict = strings.TrimPrefix(strings.TrimPrefix(verdict, "The gate is inconclusive; "), c.said.Advice)
	case count["warn"] > 0 || count["inconclusive"] > 0 && level != "off":
		status, numbers = "warn", []int{total, count["pass"], count["warn"], count["inconclusive"]}
	}
	most, change := 0, false
	for _, j := range c.all {
		if j.Status == "inconclusive" && j.Level == "error" {
			most, change = max(most, j.Needed), change || j.Kind == "vs_baseline"
		}
	}
	if c.count(); most > 0 && !strings.HasSuffix(c.said.Advice, fmt.Sprint("--repetitions ", most)) ||
		(c.said.Advice != "") != change {
		c.Errorf("gate: its advice is %q, worked out again %d launches would settle it", c.said.Advice, most)
	}
	if c.count(); c.said.Status != status {
		c.Errorf("gate: it is called %s (%s), and %s worked out again", c.said.Status, c.said.Verdict, status)
	}
	found := number.FindAllString(verdict, -1)
	for i, want := range numbers {
		if c.count(); i >= len(found) || found[i] != strconv.Itoa(want) {
			c.Errorf("gate: its verdict is %q, which should have %d", c.said.Verdict, numbers)
			break
		}
	}
	c.same("gate: questions", float64(c.said.Tests), float64(c.tests))
	c.same("gate: alpha", c.said.Alpha, 0.05)
}

// onPage holds the rows on a report's page, those that fail first.
func (c *gateCheck) onPage(page string) {
	tables, err := Tables(page, "gate")
	if err != nil {
		c.Fatal(err)
	}
	var rows [][]string
	for _, t := range tables {
		if !slices.Equal(t.Head[:6], []string{"cell", "status", "what is wanted", "measured", "baseline run",
			"change"}) {
			c.Fatalf("the gate's columns are %q", t.Head)
		}
		rows = append(rows, t.Rows...)
	}
	if len(rows) != len(c.said.Checks) {
		c.Errorf("the page has %d checks of the gate's %d", len(rows), len(c.said.Checks))
		return
	}
	for i, said := range c.said.Checks {
		want := []string{said.Cell, said.Status, said.Name, "–", "–", "–"}
		if said.Measured != nil && said.Kind == "parity" {
			want[3] = Digits(100**said.Measured) + " %"
		} else if said.Measured != nil {
			want[3] = Digits(*said.Measured) + " " + said.Unit
		}
		if said.Baseline != nil {
			want[4] = Digits(*said.Baseline) + " " + said.Unit
		}
		if said.Percent != nil {
			want[5] = tenths(*said.Percent) + " %"
		}
		if c.count(); !slices.Equal(rows[i][:6], want) {
			c.Errorf("gate: the page says %q, and worked out again it is %q", rows[i][:6], want)
		}
	}
	if text, err := Text(page, "gate"); err != nil || !strings.Contains(text, c.said.Verdict) {
		c.Errorf("gate: the page says %q (%v), and not %q", text, err, c.said.Verdict)
	}
}

// inJUnit has a case a check, and one for all.
func (c *gateCheck) inJUnit(text []byte) {
	var doc struct {
		Suites []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Skipped  int `xml:"skipped,attr"`
			Cases    []struct {
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &doc); err != nil || len(doc.Suites) != 1 {
		c.Fatalf("%d suites (%v)", len(doc.Suites), err)
	}
	s := doc.Suites[0]
	failures, skipped := 0, 0
	for i, said := range c.said.Checks {
		if i >= len(s.Cases) {
			break
		}
		if of := s.Cases[i]; of.Name != said.Cell+": "+said.Name ||
			(of.Failure != nil) != (said.Status == "fail") || (of.Skipped != nil) != (said.Status == "inconclusive") {
			c.Errorf("gate: JUnit's case %d is %+v, of %+v", i+1, of, said)
		}
		if said.Status == "fail" {
			failures++
		}
		if said.Status == "inconclusive" {
			skipped++
		}
	}
	if c.said.Status == "inconclusive" {
		failures++ // the gate as a whole
	}
	if c.count(); len(s.Cases) != len(c.all)+1 || s.Tests != len(s.Cases) || s.Failures != failures ||
		s.Skipped != skipped {
		c.Errorf("gate: JUnit has %d cases and says %d tests, %d failures, %d skipped; worked out again: %d, %d, %d",
			len(s.Cases), s.Tests, s.Failures, s.Skipped,
			len(c.all)+1, failures, skipped)
	}
}

// tenths is a change in the page's words: nothing has no sign.
func tenths(v float64) string {
	if s := fmt.Sprintf("%+.1f", v); s != "+0.0" && s != "-0.0" {
		return s
	}
	return "0.0"
}
