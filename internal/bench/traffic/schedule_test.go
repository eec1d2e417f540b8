package traffic

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"llmparity/internal/record"
)

// Gaps of a Poisson process are exponential by Kolmogorov's test, and neighbours are independent.
func TestPoissonArrivals(t *testing.T) {
	const rate, n = 20.0, 20_000
	s := New(record.Traffic{Loop: record.OpenLoop, Arrivals: record.Poisson, Rate: rate, Requests: n, Seed: 11})
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
	same, other := New(traffic), traffic
	other.Seed = 2
	if !reflect.DeepEqual(same, New(traffic)) {
		t.Error("one seed gave two schedules")
	}
	for i, p := range New(other).planned {
		if p.after == same.planned[i].after {
			t.Errorf("request %d is due at the same time with another seed", i)
		}
	}
	if slices.EqualFunc(same.planned, New(other).planned, func(a, b planned) bool { return a.Kind == b.Kind }) {
		t.Error("another seed gives the same kinds")
	}
	other = traffic
	other.Mix = nil
	for i, p := range New(other).planned {
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
		s := New(c.traffic)
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
	if s := New(record.Traffic{Loop: record.Batch, Concurrency: 1, Requests: 1}); s.KindName(
		s.Requests()[0]) != "" {
		t.Error("requests without a mix have a kind")
	}
}

func TestTraceArrivals(t *testing.T) {
	traced := record.Traffic{Loop: record.OpenLoop, Arrivals: record.TraceArrivals, Requests: 2,
		Trace: []record.Arrival{{At: 0}, {At: .25}}}
	if p := New(traced).planned; p[1].after != 250*time.Millisecond {
		t.Errorf("the second request of a trace is due after %v", p[1].after)
	}
}
