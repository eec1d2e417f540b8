package compare_test

import (
	"slices"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// A server's device is unknown, and then there is no ratio. One that the plan states, or that was derived, allows
// ratios, and is marked.
func TestDeviceOfServers(t *testing.T) {
	for _, c := range []struct {
		device  record.Device
		ratios  bool
		remarks []string
	}{
		{record.Device{Class: "unknown", Name: "unknown device of h:1"}, false, nil},
		{record.Device{Class: record.CPU, Name: "Example CPU 3.0 GHz", Origin: record.DeviceDerived}, true,
			[]string{"the device of openai (cpu) is derived from the GPU memory of its processes"}},
		{record.Device{Class: record.CPU, Name: "CPU of h:1", Origin: record.DeviceStated}, true,
			[]string{"the device of openai (cpu) is stated by the plan",
				"device differs: Example CPU 3.0 GHz and CPU of h:1"}},
		{record.Device{Class: record.GPU, Name: "GPU of h:1", Origin: record.DeviceStated}, true,
			[]string{"the device of openai (gpu) is stated by the plan"}},
	} {
		server := comparetest.Native(6)
		server.Cell.ID, server.Cell.Engine, server.Info.Name, server.Device = 3, "openai", "openai", c.device
		o := compare.Defaults()
		o.AllowDifferent = true
		got := compare.With(o, comparetest.Run(t, "servers", comparetest.Native(6), server)).Comparisons
		if len(got) != 1 || (len(got[0].Ratios) > 0) != c.ratios || (got[0].Refused == "") != c.ratios {
			t.Errorf("%+v: %+v", c.device, got)
			continue
		}
		for _, remark := range c.remarks {
			if !slices.Contains(got[0].Caveats, remark) {
				t.Errorf("%+v: %q lacks %q", c.device, got[0].Caveats, remark)
			}
		}
	}
}
