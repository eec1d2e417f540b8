package noise

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// paced is work that takes these times in turn, over and over.
func paced(name string, ms ...int) Work {
	n := 0
	return Work{Name: name, Least: 8, Do: func(context.Context) error {
		time.Sleep(time.Duration(ms[n%len(ms)]) * time.Millisecond)
		n++
		return nil
	}}
}

func TestSpreadIsThatOfTheTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := Measure(t.Context(), "mouse", []Work{
			paced("steady", 100), paced("uneven", 100, 110), paced("bursts", 100, 100, 100, 100, 100, 100, 200),
			{Name: "none", Do: func(context.Context) error { return errors.New("no browser") }},
		}, 3*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct{ low, high float64 }{{0, 0}, {0.02, 0.08}, {0.1, 0.4}} {
			if s := r.Scores[i].Spread; s < want.low || s > want.high {
				t.Errorf("%s: spread %.3f, want %v", r.Scores[i].Name, s, want)
			}
		}
		if r.Worst != "bursts" || r.Scores[3].Skipped != "no browser" {
			t.Errorf("noisiest %s, skipped %q", r.Worst, r.Scores[3].Skipped)
		}
		var b strings.Builder
		r.Print(&b)
		for _, want := range []string{"none: skipped: no browser", "Noisiest: bursts", "control cell"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
	})
}

func TestDriftIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := 100
		w := Work{Name: "hot", Least: 20, Do: func(context.Context) error {
			ms++
			time.Sleep(time.Duration(ms) * time.Millisecond)
			return nil
		}}
		r, err := Measure(t.Context(), "mouse", []Work{w, paced("steady", 50, 52, 51)}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Scores[0].Drift; d < 0.1 || d > 0.3 {
			t.Errorf("drift %.3f, want about 0.19", d)
		}
		if d := r.Scores[1].Drift; d != 0 {
			t.Errorf("drift %.3f of a steady one", d)
		}
	})
}
