package bisect

import (
	"math"
	"math/rand/v2"
	"testing"

	"llmparity/internal/kit/check"
)

// oracle simulates versions: a change by a factor at a place, between launches a noise, and swings of the machine that
// last for ten launches.
type oracle struct {
	random     *rand.Rand
	at         int // the first bad version; 0: no change
	change     float64
	noise      float64
	tail       bool // long tails: a twentieth of the launches takes up to half as long again
	swing, now float64
	launches   int
}

func (o *oracle) value(version int) float64 {
	if o.launches%10 == 0 {
		o.now = math.Exp(o.swing * o.random.NormFloat64())
	}
	o.launches++
	v := 100 * o.now * math.Exp(o.noise*o.random.NormFloat64())
	if o.tail && o.random.IntN(20) == 0 {
		v /= 1 + o.random.Float64()/2
	}
	if o.at > 0 && version >= o.at {
		v *= 1 + o.change
	}
	return v
}

// search plays a whole search, and returns its conclusion.
func search(rules Rules, versions int, skipped map[int]bool, o *oracle) Conclusion {
	k := Known{Versions: versions, Skipped: skipped}
	for round := 0; ; round++ {
		step := rules.Next(k)
		if step.End != nil {
			return *step.End
		}
		for _, v := range Order(step.Measure, round) {
			k.Launches = append(k.Launches, Launch{v, round, o.value(v)})
		}
	}
}

// seeds is how many histories are simulated: a thorough test plays all.
func seeds(all int) int {
	if check.Slow {
		return all
	}
	return all / 10
}

// A planted change is found at each place of ten versions, and its size is in the interval.
func TestSearchFindsTheChange(t *testing.T) {
	for _, c := range []struct {
		name string
		oracle
	}{
		{"quiet", oracle{change: -0.1, noise: 0.01}},
		{"noise", oracle{change: -0.1, noise: 0.05}},
		{"long tails", oracle{change: -0.1, noise: 0.04, tail: true}},
		{"swings", oracle{change: -0.1, noise: 0.03, swing: 0.05}},
		{"faster", oracle{change: 0.25, noise: 0.08}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrong, undecided, outside, launches, all := 0, 0, 0, 0, 0
			for seed := range uint64(seeds(40)) {
				for at := 1; at < 10; at++ {
					o := c.oracle
					o.at, o.random = at, rand.New(rand.NewPCG(seed, uint64(at)))
					got := search(Defaults(), 10, nil, &o)
					all++
					launches += o.launches
					switch {
					case got.Outcome != Found:
						undecided++
					case got.Good != at-1 || got.Bad != at:
						wrong++
					case got.Change.Interval.Lo > 100*c.change || got.Change.Interval.Hi < 100*c.change:
						outside++
					}
				}
			}
			t.Logf("of %d searches %d are wrong, %d undecided, %d intervals miss the change; %d launches each", all, wrong,
				undecided, outside, launches/all)
			if wrong > all/100 || undecided > all/20 || outside > all/8 {
				t.Error("too many")
			}
		})
	}
}

// Without a change, one is hardly ever found: the level is 5%.
func TestSearchFindsNoChange(t *testing.T) {
	all := seeds(400)
	for _, o := range []oracle{{noise: 0.02}, {noise: 0.05, tail: true}, {noise: 0.03, swing: 0.05}} {
		count := map[Outcome]int{}
		for seed := range uint64(all) {
			one := o
			one.random = rand.New(rand.NewPCG(seed, 99))
			count[search(Defaults(), 10, nil, &one).Outcome]++
		}
		t.Logf("noise %g, swings %g: %v", o.noise, o.swing, count)
		if count[Found] > all*5/100 || o.noise == 0.02 && count[None] < all*99/100 {
			t.Error("too many changes are found, or too few ruled out")
		}
	}
}

// Noise that hides the change forbids an answer, and says what would decide.
func TestSearchIsUndecided(t *testing.T) {
	o := &oracle{random: rand.New(rand.NewPCG(1, 2)), at: 5, change: -0.03, noise: 0.3}
	got := search(Defaults(), 10, nil, o)
	if got.Outcome != Undecided || got.Needs < 100 || got.Whole.Interval == nil {
		t.Errorf("%+v", got)
	}
	few := Defaults()
	few.Most = 30
	o = &oracle{random: rand.New(rand.NewPCG(1, 2)), at: 5, change: -0.15, noise: 0.05}
	got = search(few, 100, nil, o)
	if got.Outcome != Undecided || got.Good > 4 || got.Bad < 5 || got.Bad-got.Good > 70 || got.Sure < 0.95 {
		t.Errorf("after 30 launches: %+v", got)
	}
}

// Versions that can't be measured are passed over, and two changes are not one.
func TestSearchSkipsAndSeesParts(t *testing.T) {
	o := &oracle{random: rand.New(rand.NewPCG(3, 4)), at: 5, change: -0.2, noise: 0.03}
	got := search(Defaults(), 10, map[int]bool{4: true, 5: true}, o)
	if got.Outcome != Found || got.Good != 3 || got.Bad != 6 {
		t.Errorf("%+v", got)
	}
	two := &twice{oracle{random: rand.New(rand.NewPCG(3, 4)), at: 3, change: -0.15, noise: 0.02}}
	k, rules := Known{Versions: 10}, Defaults()
	for round := 0; ; round++ {
		step := rules.Next(k)
		if step.End != nil {
			if e := step.End; e.Outcome != Found || !e.Partly || e.Bad != 3 {
				t.Errorf("%+v", *e)
			}
			break
		}
		for _, v := range step.Measure {
			k.Launches = append(k.Launches, Launch{v, round, two.value(v)})
		}
	}
}

// twice has a second, smaller change.
type twice struct{ oracle }

func (o *twice) value(version int) float64 {
	v := o.oracle.value(version)
	if version >= 7 {
		v *= 0.95
	}
	return v
}
