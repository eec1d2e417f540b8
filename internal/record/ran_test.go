package record

import (
	"llmparity/internal/record/ran"
	"maps"
	"slices"
	"testing"
)

// The last report of each thing counts, behind the device.
func TestRan(t *testing.T) {
	d := Device{Class: SoftwareAdapter, Name: "SwiftShader", Asked: "gpu",
		Detail: map[string]string{DetailBackend: "vulkan", DetailType: "CPU"}}
	a := Attempt{Events: []Event{
		{Ran: []ran.Row{ran.With(ran.Threads, 4, 0, "no log"), ran.As(ran.KV, "f16", "f16", "a log")}},
		{Device: &d}, {Ran: []ran.Row{ran.With(ran.Threads, 4, 2, "a log")}}}}
	want := []string{"device: asked for gpu; got software-adapter SwiftShader (the adapter's backend vulkan, type CPU)",
		"threads: asked for 4; got 2 (a log)", "KV cache dtype: f16, as asked for (a log)"}
	var got []string
	for _, r := range a.Ran() {
		got = append(got, r.What+": "+r.Text())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestMissed(t *testing.T) {
	for _, c := range []struct {
		ran.Row
		missed bool
		text   string
	}{
		{ran.With("threads", 4, 8, "log"), false, "asked for 4; 8 (log)"},
		{ran.With("threads", 0, 1, "log"), false, "1 (log)"},
		{ran.With("threads", 4, 0, "log"), false, "asked for 4; unknown (log)"},
		{ran.As("dtype", "f16", "f32", "log"), true, "asked for f16; got f32 (log)"},
		{ran.As("dtype", "", "f32", "log"), false, "f32 (log)"},
		{Device{Class: "odd", Name: "x", Asked: "gpu"}.Ran(), false, "asked for gpu; unknown (reported by the engine)"},
		{Device{Class: CPU, Name: "x", Origin: DeviceStated}.Ran(), false, "cpu x (stated)"},
	} {
		if c.Missed != c.missed || c.Text() != c.text {
			t.Errorf("%+v: %s", c.Row, c.Text())
		}
	}
}

func TestTriedWays(t *testing.T) {
	d := Device{Detail: map[string]string{"vendor": "x"}}
	d.SetTried([]string{"a: b", "c: d"})
	if !slices.Equal(d.Tried(), []string{"a: b", "c: d"}) ||
		!maps.Equal(d.Detail, map[string]string{"vendor": "x", "tried_1": "a: b", "tried_2": "c: d"}) {
		t.Errorf("%+v", d)
	}
}
