package run_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// withRSS gives an engine a process with the given RSS over time.
func withRSS(rss func(since time.Duration) int64) func(engine.Probe) {
	return func(p engine.Probe) { p.Attach(&rssSource{begin: time.Now(), rss: rss}) }
}

func still(time.Duration) int64 { return 100 * record.MiB }

type rssSource struct {
	begin time.Time
	rss   func(time.Duration) int64
}

func (*rssSource) Describe() record.Source {
	return record.Source{Role: "server", Method: record.MethodStatm, Every: 100 * time.Millisecond}
}

func (s *rssSource) Read(_ context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	r.RSS = s.rss(r.Begin.Sub(s.begin))
	r.End = r.Begin
	return nil
}

func TestBaselineSettles(t *testing.T) {
	for _, x := range []struct {
		name    string
		rss     func(time.Duration) int64
		settled bool
		least   time.Duration
		most    time.Duration
		warned  bool
	}{
		{"still", still, true, 500 * time.Millisecond,
			600 * time.Millisecond, false},
		{"little noise", func(d time.Duration) int64 {
			return 100*record.MiB + int64(d/(100*time.Millisecond)%2)*record.MiB
		}, true, 500 * time.Millisecond, 600 * time.Millisecond, false},
		{"noise below 1%", func(d time.Duration) int64 {
			return 1000*record.MiB + int64(d/(100*time.Millisecond)%2)*9*record.MiB
		}, true, 500 * time.Millisecond, 600 * time.Millisecond, false},
		{"growing for 2 s", func(d time.Duration) int64 {
			return int64(min(d, 2*time.Second)/time.Millisecond) * record.MiB
		}, true, 2300 * time.Millisecond, 2700 * time.Millisecond, false},
		{"growing", func(d time.Duration) int64 { return int64(d/time.Millisecond) * record.MiB }, false,
			5 * time.Second, 5100 * time.Millisecond, true},
		{"nothing to read", nil, false, 500 * time.Millisecond, 1100 * time.Millisecond, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &scripted{name: "a"}
				if x.rss != nil {
					e.opened = withRSS(x.rss)
				}
				o := options(t, e)
				o.Plan.Repetitions, o.Plan.Warmup.Launches = 1, 0
				r := whole(t, o)
				a := r.Attempts[0]
				at := slices.IndexFunc(a.Events, func(e record.Event) bool { return e.Settling != nil })
				if at < 0 {
					t.Fatal("no settling event")
				}
				s := a.Events[at].Settling
				if s.Settled != x.settled || s.Waited < x.least || s.Waited > x.most || s.Settled &&
					s.Spread > s.Tolerance {
					t.Errorf("%+v, want settled %v within %v to %v", *s, x.settled, x.least, x.most)
				}
				if (x.rss == nil) != (s.Spread == record.Absent) {
					t.Errorf("spread %d", s.Spread)
				}
				if phase, _ := a.Phase(record.Baseline); phase.Duration() < s.Waited {
					t.Errorf("the baseline took %v, less than settling (%v)", phase.Duration(), s.Waited)
				}
				if (warned(r, 0, "baseline-not-settled") > 0) != x.warned {
					t.Errorf("warnings: %+v", a.Warnings)
				}
			})
		})
	}
}
