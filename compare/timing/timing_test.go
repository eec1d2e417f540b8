package timing

import (
	"math"
	"slices"
	"strings"
	"testing"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
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

func TestServerFigures(t *testing.T) {
	rows := func(source int, name string, values ...float64) []record.MetricRow {
		var out []record.MetricRow
		for i, v := range values {
			out = append(out, record.MetricRow{Source: source, NS: int64(i), Name: name, Value: v})
		}
		return out
	}
	of := func(id int, rows ...[]record.MetricRow) *record.Attempt {
		a := &record.Attempt{ID: id, Sources: map[int]record.Source{
			1: {Role: "server", Method: "server_metrics", Sees: "its own word", Blind: "what it does not say"},
			2: {Role: "page", Method: "heap_usage"}}}
		for _, r := range rows {
			a.Metrics = append(a.Metrics, r...)
		}
		return a
	}
	const kv, running, preempted, tokens = "kv_cache_usage_ratio", "requests_running_count", "preemptions_count",
		"generated_tokens_count"
	figures := evidence.Summarised(Server([]*record.Attempt{
		of(1, rows(1, kv, 0, 0.25, 0.1), rows(1, running, 0, 1, 0), rows(1, preempted, 7, 7, 9), rows(1, tokens, 500),
			rows(2, "used_bytes", 1, 2)),
		of(2, rows(1, kv, 0, 0.5), rows(1, running, 0, 0), rows(1, preempted, 9, 0, 12), rows(1, tokens, 500)),
	}))
	want := map[string]struct {
		n      int
		median float64
		title  string
	}{kv: {2, 0.375, "kv cache usage, peak"}, running: {2, 0.5, "requests running, peak"},
		preempted: {1, 2, "preemptions, increase"}, tokens: {}}
	if len(figures) != len(want) {
		t.Fatalf("%d figures: %+v", len(figures), figures)
	}
	for _, f := range figures {
		w := want[f.Name]
		if f.N != w.n || f.Known() && (f.Center() != w.median || f.Title != w.title) || f.Known() != (w.n > 0) {
			t.Errorf("%s: %+v, want %+v", f.Name, f, w)
		}
		if !f.Reported || f.Method != "server_metrics" || !strings.HasPrefix(f.How, "its own word") ||
			!strings.HasPrefix(f.Blind, "what it does not say") {
			t.Errorf("%s does not say whose word it is: %+v", f.Name, f)
		}
	}
	if f := Server([]*record.Attempt{of(1, rows(2, "used_bytes", 1))}); f != nil {
		t.Errorf("where no server says anything: %+v", f)
	}
}

// at makes a request whose tokens came at these times, in ms.
func at(generated int, times ...int64) *record.Request {
	r := &record.Request{Phase: record.Measure, Generated: generated, Spans: []record.NamedSpan{{Name: record.Decode}}}
	for i, t := range times {
		r.Tokens = append(r.Tokens, record.TokenRow{Index: i, ID: record.NoID, NS: t * 1e6})
	}
	return r
}

func TestGapsBetweenTokens(t *testing.T) {
	for name, c := range map[string]struct {
		request *record.Request
		want    []float64
	}{
		"one by one":                {at(0, 5, 7, 10), []float64{2, 3}},
		"the first chunk's":         {at(0, 5, 5, 5, 9), []float64{4}},
		"chunks of several":         {at(0, 5, 5, 9, 9, 9, 9, 12), []float64{1, 1, 1, 1, 3}},
		"all at once":               {at(0, 5, 5, 5), nil},
		"one":                       {at(0, 5), nil},
		"none":                      {at(0), nil},
		"held up on their way here": {&record.Request{Tokens: at(0, 5, 7, 9).Tokens}, nil},
	} {
		if got := figure.Gaps(c.request); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestUntimedSaysWhy(t *testing.T) {
	for want, r := range map[string]*record.Request{
		"":                           at(0, 5, 7, 10),
		"8 tokens arrived in 3 piec": at(8, 5, 7, 10),
		"the 3 tokens arrived at on": at(0, 5, 5, 5),
		"the times of the 3 tokens ": {Tokens: at(0, 5, 7, 9).Tokens},
	} {
		if got := figure.Untimed(r); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A server that makes 100 tokens a second and sends eight of them at a time: those of the first piece were made before
// it came.
func TestDecodeOfPiecesOfSeveralTokens(t *testing.T) {
	of := func(pieces, counted, generated int) *record.Request {
		r := &record.Request{Generated: generated, Spans: []record.NamedSpan{{Name: record.Decode}}}
		for p := range pieces {
			for range counted {
				r.Tokens = append(r.Tokens, record.TokenRow{Index: len(r.Tokens), ID: record.NoID, NS: int64(p) * 80e6})
			}
		}
		return r
	}
	for name, c := range map[string]struct {
		request *record.Request
		want    float64
	}{
		"counted with each piece": {of(4, 8, 32), 100},
		"one piece":               {of(1, 8, 8), math.NaN()},
		"one by one":              {of(9, 1, 9), 12.5},
		"nearly one by one":       {of(10, 1, 11), 13.75},
		"not counted":             {of(4, 1, 32), math.NaN()},
	} {
		if got := figure.DecodeRate(c.request); math.Abs(got-c.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%s: %g tokens/s, want %g", name, got, c.want)
		}
	}
}
