package traffic

import (
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/record"
)

func goexit() { runtime.Goexit() }

func schedule(t *testing.T, traffic record.Traffic) Schedule {
	t.Helper()
	s, err := New(traffic)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Gaps of a Poisson process are exponential by Kolmogorov's test, and neighbours are independent.
func TestPoissonArrivals(t *testing.T) {
	const rate, n = 20.0, 20_000
	s := schedule(t, record.Traffic{Loop: record.OpenLoop, Arrivals: record.Poisson, Rate: rate, Requests: n, Seed: 11})
	var gaps []float64
	last := time.Duration(0)
	for _, p := range s.planned {
		gaps = append(gaps, (p.after - last).Seconds())
		last = p.after
	}
	along, mean := 0.0, 1/rate
	for i := range n - 1 {
		along += (gaps[i] - mean) * (gaps[i+1] - mean) / (mean * mean) / n
	}
	if math.Abs(along) > 4/math.Sqrt(n) {
		t.Errorf("neighbouring gaps correlate: %.4f", along)
	}
	slices.Sort(gaps)
	worst := 0.0
	for i, g := range gaps {
		f := 1 - math.Exp(-g*rate)
		worst = max(worst, math.Abs(f-float64(i)/n), math.Abs(f-float64(i+1)/n))
	}
	if limit := 1.63 / math.Sqrt(n); worst > limit { // exceeded by 1 % of seeds, not by this one
		t.Errorf("the gaps' distribution differs by %.4f from an exponential one, more than %.4f", worst, limit)
	}
	if took := last.Seconds(); math.Abs(took*rate/n-1) > 4/math.Sqrt(n) {
		t.Errorf("%d requests at %g/s take %.1f s", n, rate, took)
	}
}

func TestSeedDecides(t *testing.T) {
	traffic := record.Traffic{Loop: record.OpenLoop, Arrivals: record.Poisson, Rate: 5, Requests: 100, Seed: 1,
		Mix: []record.Kind{{Name: "short", Share: 3}, {Name: "long", Share: 1}}}
	same, other := schedule(t, traffic), traffic
	other.Seed = 2
	if !reflect.DeepEqual(same, schedule(t, traffic)) {
		t.Error("one seed gave two schedules")
	}
	for i, p := range schedule(t, other).planned {
		if p.after == same.planned[i].after {
			t.Errorf("request %d is due at the same time with another seed", i)
		}
	}
	if slices.EqualFunc(same.planned, schedule(t, other).planned, func(a, b planned) bool { return a.Kind == b.Kind }) {
		t.Error("another seed gives the same kinds")
	}
	other = traffic
	other.Mix = nil
	for i, p := range schedule(t, other).planned {
		if p.after != same.planned[i].after {
			t.Fatal("without a mix requests have other times")
		}
	}
}

// Kinds match their shares to one request; every batch has a similar mix.
func TestSharesOfAMix(t *testing.T) {
	mix := []record.Kind{{Name: "short", Share: .7}, {Name: "middle", Share: .2}, {Name: "long", Share: .1}}
	for _, c := range []struct {
		traffic record.Traffic
		part    int // each part of so many requests must have the mix
	}{
		{record.Traffic{Loop: record.ClosedLoop, Concurrency: 4, Requests: 1000}, 1000},
		{record.Traffic{Loop: record.OpenLoop, Arrivals: record.Constant, Rate: 1, Requests: 333}, 333},
		{record.Traffic{Loop: record.Batch, Concurrency: 10, Requests: 500}, 10},
		{record.Traffic{Loop: record.ClosedLoop, Concurrency: 1, Requests: 7}, 7},
		{record.Traffic{Loop: record.ClosedLoop, Concurrency: 2, Requests: 300, Turns: 3}, 300},
	} {
		c.traffic.Mix, c.traffic.Seed = mix, 5
		s := schedule(t, c.traffic)
		for part := range slices.Chunk(s.Requests(), c.part) {
			count := make([]int, len(mix))
			kinds := map[int]int{}
			for _, r := range part {
				count[r.Kind]++
				if before, ok := kinds[r.Conversation]; ok && before != r.Kind {
					t.Errorf("a conversation's kind changes: %+v", r)
				}
				kinds[r.Conversation] = r.Kind
				if s.KindName(r) != mix[r.Kind].Name {
					t.Errorf("%+v is called %s", r, s.KindName(r))
				}
			}
			turns := float64(max(1, c.traffic.Turns))
			for k, n := range count {
				if want := mix[k].Share * float64(len(part)); math.Abs(float64(n)-want) > turns {
					t.Errorf("%+v: %d of %d are %s, want %.1f", c.traffic, n, len(part), mix[k].Name, want)
				}
			}
		}
	}
	if s := schedule(t, record.Traffic{Loop: record.Batch, Concurrency: 1, Requests: 1}); s.KindName(
		s.Requests()[0]) != "" {
		t.Error("requests without a mix have a kind")
	}
}

func TestInvalidTraffic(t *testing.T) {
	good := record.Traffic{Loop: record.OpenLoop, Arrivals: record.Poisson, Rate: 1, Requests: 4, Concurrency: 2}
	for want, change := range map[string]func(*record.Traffic){
		`unknown loop ""; use closed, open or batch`:         func(c *record.Traffic) { c.Loop = "" },
		`unknown arrivals "poison"; use constant or poisson`: func(c *record.Traffic) { c.Arrivals = "poison" },
		"an open loop needs a rate":                          func(c *record.Traffic) { c.Rate = 0 },
		"rate NaN is not a number from 0 to a million":       func(c *record.Traffic) { c.Rate = math.NaN() },
		"rate +Inf is not":                                   func(c *record.Traffic) { c.Rate = math.Inf(1) },
		"ramp -1 is not":                                     func(c *record.Traffic) { c.Ramp = -1 },
		"start_delay 1e+07 is not":                           func(c *record.Traffic) { c.StartDelay = 1e7 },
		"requests 0 is not from 1 to 1000000":                func(c *record.Traffic) { c.Requests = 0 },
		"requests 1000001 is not":                            func(c *record.Traffic) { c.Requests = Most + 1 },
		"4 requests cannot be conversations of 3":            func(c *record.Traffic) { c.Turns = 3 },
		"4 requests cannot be conversations of -1":           func(c *record.Traffic) { c.Turns = -1 },
		"concurrency 0 is less than 1":                       func(c *record.Traffic) { c.Loop, c.Concurrency = record.ClosedLoop, 0 },
		"concurrency -1 is less":                             func(c *record.Traffic) { c.Concurrency = -1 },
		`share of kind "long" is 0 instead of`: func(c *record.Traffic) {
			c.Mix = []record.Kind{{Name: "long"}}
		},
		`share of kind "(unnamed)" is NaN`: func(c *record.Traffic) { c.Mix = []record.Kind{{Share: math.NaN()}} },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	traced := record.Traffic{Loop: record.OpenLoop, Arrivals: record.TraceArrivals, Requests: 2,
		Trace: []record.Arrival{{At: 0}, {At: .25}}}
	if p := schedule(t, traced).planned; p[1].after != 250*time.Millisecond {
		t.Errorf("the second request of a trace is due after %v", p[1].after)
	}
	for want, trace := range map[string][]record.Arrival{"the trace has 1 requests instead of 2": {{}},
		"request 2 of the trace is at 1 s, but the previous one at 2 s": {{At: 2}, {At: 1}},
		"request 1 of the trace is at NaN s":                            {{At: math.NaN()}, {}}} {
		traced.Trace = trace
		if _, err := New(traced); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
