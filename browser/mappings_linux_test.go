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
	told map[string][]record.Sample // by method and role
}

func (k *keeping) Attach(s sample.Source) func() {
	d := s.Describe()
	if p, ok := s.(sample.Pusher); ok {
		p.Pushes(func(r record.Sample) { k.told[d.Method+" "+d.Role] = append(k.told[d.Method+" "+d.Role], r) })
	}
	return k.Probe.Attach(s)
}

// A load tells what the browser's processes held when they held the most, by kind, and what WebGPU had live on the way.
func TestALoadTellsWhatWasHeld(t *testing.T) {
	c, m := tinyModel(t)
	probe := &keeping{&enginetest.Probe{}, map[string][]record.Sample{}}
	s, err := New(c).Open(watched(t), probe)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := map[string]map[string]float64{}
	for _, role := range []string{"renderer", "gpu-process"} {
		before[role] = figures(t, probe, record.MethodSmaps, role)
	}
	if err := s.Load(watched(t), m); err != nil {
		t.Fatal(err)
	}
	for role, least := range map[string]float64{"renderer": 12 << 20, "gpu-process": 16 << 20} {
		told := probe.told[record.MethodSmaps+" "+role]
		if len(told) != 1 || !told[0].End.After(probe.Spans()[0].Begin) {
			t.Fatalf("the %s tells %+v", role, told)
		}
		for _, v := range told[0].Values {
			if v.Name == "anonymous_bytes" && v.Value < before[role][v.Name]+least {
				t.Errorf("the %s has grown from %.1f to %.1f MiB", role, before[role][v.Name]/record.MiB, v.Value/record.MiB)
			}
		}
	}
	live := figures(t, probe, MethodLedger, "page")["live_bytes"]
	history := probe.told[MethodLedger+" page"]
	if len(history) < 3 || history[0].Values[0].Value != 0 || history[len(history)-1].Values[0].Value != live {
		t.Fatalf("%d moments, from %v to %v; live is %v", len(history), history[0].Values, history[len(history)-1].Values, live)
	}
	for i, h := range history[1:] {
		if h.End.Before(history[i].End) {
			t.Errorf("moment %d is at %v, behind one at %v", i+1, h.End, history[i].End)
		}
	}
}
