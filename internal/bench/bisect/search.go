// Package bisect finds the version that changed a figure, with as few launches as the noise allows.
//
// Launches of the first and the last version alternate until they differ. Each round then adds a launch of a version
// between them, which is compared with both of its own round, so that a slow hour of the machine is no change. What is
// known of each version becomes the probability of each place of the change; the version that halves it is next. The
// change is named when one place has nearly all of it, and the versions on its two sides have an interval of their own.
//
// It assumes one change. If the versions on its sides explain only a part of the difference, the answer says so.
package bisect

import (
	"math"
	"slices"

	"llmparity/internal/kit/fault"
	"llmparity/internal/stats"
)

// Launch is the figure's value in one launch.
type Launch struct {
	Version int // its place, from the good one
	Round   int
	Value   float64 // above 0
}

// Rules say what counts as a change, and when to end.
type Rules struct {
	MinEffect float64 // a smaller change, as a share, is none
	Sure      float64 // probability at which a place is named
	Most      int     // launches
}

// Defaults are the rules without flags.
func Defaults() Rules { return Rules{MinEffect: 0.05, Sure: 0.99, Most: 240} }

// Check refuses rules by which nothing can be found.
func (r Rules) Check() error {
	const least, most = 0.5, 0.995 // no place gets more, by how much launches may say
	switch {
	case !(r.MinEffect > 0 && r.MinEffect < 1):
		return fault.New(fault.Usage, "use e.g. 5%", "--min-effect: must be between 0%% and 100%%")
	case !(r.Sure >= least && r.Sure <= most):
		return fault.New(fault.Usage, "use e.g. 99%", "--sure: must be between 50%% and 99.5%%")
	case r.Most < 2*looks[0]:
		return fault.New(fault.Usage, "", "--max-launches: must be at least %d", 2*looks[0])
	}
	return nil
}

// Known is what is known so far.
type Known struct {
	Versions int
	Skipped  map[int]bool // versions that can't be measured
	Launches []Launch
}

// Step is what to do next: measure versions, in one round, or conclude.
type Step struct {
	Measure []int
	End     *Conclusion
}

// Outcome is how a search ended.
type Outcome string

// Outcomes.
const (
	Found     Outcome = "found"
	None      Outcome = "none"      // good and bad do not differ
	Undecided Outcome = "undecided" // noise forbids an answer
)

// Conclusion is the answer.
type Conclusion struct {
	Outcome Outcome `json:"outcome"`
	// The change came after Good, with Bad: neighbours, unless versions between them were skipped or are undecided.
	Good int `json:"good"`
	Bad  int `json:"bad"`
	// Change is that from Good to Bad, Whole that from the first to the last version.
	Change Change  `json:"change"`
	Whole  Change  `json:"whole"`
	Sure   float64 `json:"sure"`   // probability of this place
	Partly bool    `json:"partly"` // Change is only a part of Whole
	// Needs is how many rounds of good and bad would show a change of the least effect, if they were too few.
	Needs int `json:"needs,omitempty"`
}

// Change is a ratio of medians in percent, with its interval; nil: too few launches.
type Change struct {
	Percent  float64         `json:"percent"`
	Interval *stats.Interval `json:"interval,omitempty"`
	Launches int             `json:"launches"` // of the side with fewer
}

const (
	level      = 0.05
	confidence = 0.95
	// enough launches of each side of a change have an interval.
	enough = 6
	// One launch can't say more of a version than oneSays, and all launches not more than mostSays: both are natural
	// logarithms of odds. A hiccup of the machine then never decides alone.
	oneSays, mostSays = 3.0, 7.0
)

// looks are the numbers of rounds after which good and bad are tested. Each look has its share of the level.
var looks = []int{6, 10, 16, 24}

// Next says what to do next. Equal knowledge gives an equal step, so a search can be continued.
func (r Rules) Next(k Known) Step {
	rounds := k.rounds()
	first, last := 0, k.Versions-1
	good, bad := valuesOf(rounds, first), valuesOf(rounds, last)
	end := Conclusion{Good: first, Bad: last, Whole: changeOf(good, bad)}
	end.Change = end.Whole
	switch differs, same := r.differ(good, bad); {
	case same:
		end.Outcome = None
		return Step{End: &end}
	case !differs && len(rounds) >= looks[len(looks)-1]:
		end.Outcome, end.Needs = Undecided, r.needs(rounds, last)
		return Step{End: &end}
	case !differs:
		return Step{Measure: []int{first, last}}
	}
	return r.locate(k, rounds, end)
}

// differ tests good and bad at each look so far. Later values can't take a difference back.
func (r Rules) differ(good, bad []float64) (differs, same bool) {
	for _, n := range looks {
		if len(good) < n {
			return false, false
		}
		seen := changeOf(good[:n], bad[:n])
		p := stats.NewSides(good[:n], bad[:n]).Chance().P
		large := math.Abs(seen.Percent) >= 100*r.MinEffect
		if p <= level/float64(len(looks)) && large {
			return true, false
		}
		if i := seen.Interval; i != nil && max(math.Abs(i.Lo), math.Abs(i.Hi)) < 100*r.MinEffect {
			return false, true
		}
	}
	return false, false
}

// locate chooses the version that says most of the place of the change, or names the place.
func (r Rules) locate(k Known, rounds []round, end Conclusion) Step {
	first, last := 0, k.Versions-1
	there := []int{first}
	for v := first + 1; v < last; v++ {
		if !k.Skipped[v] {
			there = append(there, v)
		}
	}
	there = append(there, last)
	places := posterior(rounds, there)
	best := 0
	for i, p := range places {
		if p > places[best] {
			best = i
		}
	}
	before, after := there[best], there[best+1]
	end.Good, end.Bad, end.Sure = before, after, places[best]
	with := func(versions ...int) Step {
		all := append([]int{first, last}, versions...)
		slices.Sort(all)
		return Step{Measure: slices.Compact(all)}
	}
	if len(k.Launches) >= r.Most {
		end.Outcome = Undecided
		end.Good, end.Bad, end.Sure = credible(places, there)
		end.Change = end.Whole
		return Step{End: &end}
	}
	if places[best] < r.Sure {
		return with(halving(places, there))
	}
	a, b := valuesOf(rounds, before), valuesOf(rounds, after)
	if min(len(a), len(b)) < enough {
		return with(before, after)
	}
	end.Outcome, end.Change = Found, changeOf(a, b)
	if i, w := end.Change.Interval, end.Whole.Interval; i != nil && w != nil {
		end.Partly = i.Hi < w.Lo || i.Lo > w.Hi
	}
	return Step{End: &end}
}

// halving is the version before which the change lies with a probability next to a half.
func halving(places []float64, there []int) int {
	at, sum, nearest := 1, 0.0, math.Inf(1)
	for i := range len(places) - 1 {
		sum += places[i]
		if off := math.Abs(sum - 0.5); off < nearest {
			at, nearest = i+1, off
		}
	}
	return there[at]
}

// credible are the versions between which the change lies with 95%: places are left out at the ends while what is left
// has so much.
func credible(places []float64, there []int) (good, bad int, sure float64) {
	from, to, sum := 0, len(places), 1.0
	for to-from > 1 {
		least := min(places[from], places[to-1])
		if sum-least < confidence {
			break
		}
		if sum -= least; places[from] == least {
			from++
		} else {
			to--
		}
	}
	return there[from], there[to], sum
}

// posterior is the probability of each place of the change: place i is between there[i] and there[i+1].
func posterior(rounds []round, there []int) []float64 {
	says := make([]float64, len(there)) // for "bad", of each version
	for i := 1; i < len(there)-1; i++ {
		says[i] = odds(rounds, there[0], there[i], there[len(there)-1])
	}
	logs := make([]float64, len(there)-1)
	for place := range logs {
		for i := range says {
			if i > place {
				logs[place] += says[i] / 2
			} else {
				logs[place] -= says[i] / 2
			}
		}
	}
	most, sum := slices.Max(logs), 0.0
	for i, l := range logs {
		logs[i] = math.Exp(l - most)
		sum += logs[i]
	}
	for i := range logs {
		logs[i] /= sum
	}
	return logs
}

// odds is the logarithm of how much more likely a version is bad than good, by the rounds in which it was measured
// beside both. Values are taken as log-normal, with an outlier's distance limited to that of good and bad.
func odds(rounds []round, good, version, bad int) float64 {
	var apart []float64
	for _, r := range rounds {
		apart = append(apart, math.Log(r[bad])-math.Log(r[good]))
	}
	distance := stats.Median(apart)
	// The difference of two launches varies by twice as much as one; that of one and the mean of two by 1.5 times.
	vary, n := 0.0, float64(len(apart))
	for _, d := range apart {
		vary += (d - distance) * (d - distance) / (n - 1)
	}
	vary *= 0.75 * (n + 1) / (n - 1) // the second factor is for its own error
	sum, count := 0.0, 0
	for _, r := range rounds {
		value, measured := r[version]
		if !measured {
			continue
		}
		off := math.Log(value) - (math.Log(r[good])+math.Log(r[bad]))/2
		off = max(-math.Abs(distance), min(math.Abs(distance), off))
		one := oneSays
		if vary > 0 {
			one = min(oneSays, math.Abs(off*distance)/vary)
		}
		sum += math.Copysign(one, off*distance)
		count++
	}
	return max(-mostSays, min(mostSays, sum))
}

// needs is how many rounds would probably show a change of the least effect, by how much rounds vary.
func (r Rules) needs(rounds []round, last int) int {
	var apart []float64
	for _, r := range rounds {
		apart = append(apart, math.Log(r[last])-math.Log(r[0]))
	}
	_, _, deviation := stats.Moments(apart)
	const z = 2.5 + 1.3 // of the level of a look, and of 90% power
	return int(math.Ceil(math.Pow(z*deviation/math.Log1p(r.MinEffect), 2)))
}

// round has the values of one round, by version.
type round map[int]float64

// rounds are those in which both good and bad were measured, in order.
func (k Known) rounds() []round {
	by := map[int]round{}
	var order []int
	for _, l := range k.Launches {
		if by[l.Round] == nil {
			by[l.Round] = round{}
			order = append(order, l.Round)
		}
		by[l.Round][l.Version] = l.Value
	}
	slices.Sort(order)
	var out []round
	for _, n := range order {
		_, good := by[n][0]
		_, bad := by[n][k.Versions-1]
		if good && bad {
			out = append(out, by[n])
		}
	}
	return out
}

func valuesOf(rounds []round, version int) (out []float64) {
	for _, r := range rounds {
		if v, ok := r[version]; ok {
			out = append(out, v)
		}
	}
	return out
}

// changeOf is the change from a to b, with the interval that belongs to Mann and Whitney's test.
func changeOf(a, b []float64) Change {
	c := Change{Launches: min(len(a), len(b))}
	if c.Launches == 0 {
		return c
	}
	c.Percent = stats.Round(100*(stats.Median(b)/stats.Median(a)-1), 6)
	c.Interval = stats.NewSides(a, b).Shift(confidence, &c.Percent)
	return c
}

// Order is the order in which a round measures versions: every other round goes backwards, so that a machine that slows
// down favours none.
func Order(versions []int, round int) []int {
	out := slices.Clone(versions)
	if round%2 == 1 {
		slices.Reverse(out)
	}
	return out
}
