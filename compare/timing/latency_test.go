package timing

import (
	"testing"

	"llmparity/compare/evidence"
	"llmparity/compare/stats"
	"llmparity/internal/record"
)

// launched has gaps between tokens of these many ms, after a first token at ttft ms.
func launched(id int, ttft int64, gaps ...int64) *record.Attempt {
	q := &record.Request{ID: id, Phase: record.Measure, Spans: []record.NamedSpan{{Name: record.Decode}},
		Tokens: []record.TokenRow{{NS: ttft * 1e6}}}
	for i, g := range gaps {
		q.Tokens = append(q.Tokens, record.TokenRow{Index: i + 1, NS: q.Tokens[i].NS + g*1e6})
	}
	q.ReturnedNS = q.Tokens[len(gaps)].NS
	return &record.Attempt{ID: id, Beginning: record.Beginning{Repetition: id}, Status: record.OK,
		Requests: []*record.Request{q}}
}

func upTo(n int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = (int64(i)*37)%n + 1 // 1 to n, not in order, when n has no 37 in it
	}
	return out
}

func distributionOf(t *testing.T, name string, attempts ...*record.Attempt) Distribution {
	t.Helper()
	for _, d := range Distributions(record.Cell{}, attempts) {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("no distribution %s", name)
	return Distribution{}
}

func TestQuantilesAreValuesThatOccurred(t *testing.T) {
	d := distributionOf(t, "inter_token_latency", launched(1, 5, upTo(1000)...))
	for i, want := range []float64{500, 900, 950, 990} {
		if q := d.Quantiles[i]; q.Value != want || q.ByLaunch == nil || q.ByLaunch.Center() != want ||
			q.ByLaunch.Note != evidence.TooFewRuns {
			t.Errorf("p%g: %+v, want %g", 100*q.Share, q, want)
		}
	}
	if d.N != 1000 || d.Launches != 1 {
		t.Errorf("%d values of %d launches", d.N, d.Launches)
	}
	steps := d.Steps
	if len(steps) > stats.StepsAtMost || steps[0] != (stats.Step{Value: 1, Share: 0.001}) ||
		steps[len(steps)-1] != (stats.Step{Value: 1000, Share: 1}) {
		t.Errorf("%d steps from %v to %v", len(steps), steps[0], steps[len(steps)-1])
	}
	for i, s := range steps {
		if s.Share != s.Value/1000 || i > 0 && s.Value <= steps[i-1].Value {
			t.Errorf("step %d: %v", i, s)
		}
	}
}

// A request whose first token came before it was sent took no time that is known.
func TestBackwardClockIsInNoDistribution(t *testing.T) {
	if d := distributionOf(t, "ttft", launched(1, 5, 1), launched(2, -5, 1)); d.N != 1 || d.Launches != 1 ||
		d.Quantiles[0].Value != 5 {
		t.Errorf("%+v", d)
	}
}

// A launch that is slow as a whole moves what is pooled; the interval is that over launches.
func TestIntervalsOfQuantilesGoByLaunches(t *testing.T) {
	var attempts []*record.Attempt
	for id := range 8 {
		g := make([]int64, 30)
		for i := range g {
			g[i] = int64(10 * (id + 1))
		}
		attempts = append(attempts, launched(id+1, int64(100+id), g...))
	}
	d := distributionOf(t, "inter_token_latency", attempts...)
	p50, p95, p99 := d.Quantiles[0], d.Quantiles[2], d.Quantiles[3]
	if d.N != 240 || p50.Value != 40 || p50.ByLaunch.N != 8 || p50.ByLaunch.Center() != 45 ||
		p50.ByLaunch.Interval.Lo > 20 || p50.ByLaunch.Interval.Hi < 70 {
		t.Errorf("p50 %+v by launch %+v, %+v", p50, p50.ByLaunch, p50.ByLaunch.Interval)
	}
	if p95.ByLaunch == nil || p99.ByLaunch != nil || p99.Value != 80 {
		t.Errorf("30 gaps a launch suffice for p95 and not for p99: %+v, %+v", p95, p99)
	}
	first := distributionOf(t, "ttft", attempts...)
	if first.N != 8 || first.Quantiles[0].ByLaunch.Center() != 103.5 || first.Quantiles[1].ByLaunch != nil ||
		first.Quantiles[3].Value != 107 {
		t.Errorf("one request a launch: %+v", first.Quantiles)
	}
}

func TestUnseenTimesAreNotSpread(t *testing.T) {
	a := launched(1, 5, 3, 3, 3)
	a.Requests[0].Spans = nil // they came at once
	for _, d := range Distributions(record.Cell{}, []*record.Attempt{a}) {
		if d.Name == "inter_token_latency" {
			t.Errorf("%+v", d)
		}
	}
	if all := Distributions(record.Cell{}, nil); len(all) != 0 {
		t.Errorf("of nothing: %+v", all)
	}
}
