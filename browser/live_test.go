package browser

import (
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// keeping keeps what sources tell by themselves.
type keeping struct {
	*enginetest.Probe
	reported map[string][]record.Sample // by method and role
}

func (k *keeping) Attach(s sample.Source) func() {
	d := s.Describe()
	if p, ok := s.(sample.Pusher); ok {
		p.Pushes(func(r record.Sample) { k.reported[d.Method+" "+d.Role] = append(k.reported[d.Method+" "+d.Role], r) })
	}
	return k.Probe.Attach(s)
}

// A load tells what WebGPU had live on the way.
func TestALoadTellsWhatWasLive(t *testing.T) {
	c, m := tinyModel(t)
	probe := &keeping{&enginetest.Probe{}, map[string][]record.Sample{}}
	s, err := New(c).Open(watched(t), probe)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Load(watched(t), m); err != nil {
		t.Fatal(err)
	}
	live := figures(t, probe, MethodLedger, "page")["live_bytes"]
	history := probe.reported[MethodLedger+" page"]
	if len(history) < 3 || history[0].Values[0].Value != 0 || history[len(history)-1].Values[0].Value != live {
		t.Fatalf("%d moments, from %v to %v; live is %v", len(history), history[0].Values,
			history[len(history)-1].Values, live)
	}
	for i, h := range history[1:] {
		if h.End.Before(history[i].End) {
			t.Errorf("moment %d is at %v, behind one at %v", i+1, h.End, history[i].End)
		}
	}
}
