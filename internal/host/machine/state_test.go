package machine

import (
	"fmt"
	"reflect"
	"testing"

	"llmparity/internal/record"
)

func TestState(t *testing.T) {
	m := map[string]string{}
	m["proc/meminfo"] = "MemTotal: 8000 kB\nMemFree: 3000 kB\nMemAvailable: 5000 kB\nSwapTotal: 1000 kB\nSwapFree: 400 kB"
	m["proc/pressure/cpu"] = "some avg10=12.50 avg60=1.00 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0"
	for n := range 2 {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/thermal_throttle/", n)
		m[dir+"core_throttle_count"], m[dir+"package_throttle_count"] = "3", "4"
		policy := fmt.Sprintf("sys/devices/system/cpu/cpufreq/policy%d/", n)
		m[policy+"scaling_governor"], m[policy+"scaling_cur_freq"], m[policy+"scaling_max_freq"] = "powersave",
			fmt.Sprint(800000+n*1000), "4600000"
	}
	m["sys/devices/system/cpu/cpufreq/policy1/scaling_governor"] = "performance"
	throttled, pressure := int64(14), 12.5
	want := record.MachineState{FreeB: 3000 << 10, AvailableB: 5000 << 10, SwapUsedB: 600 << 10,
		Governor: "performance, powersave", MHz: 801, MaxMHz: 4600,
		Throttled: &throttled, Pressure: &pressure}
	if got := tree(t, m).state(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := tree(t, nil).state(); !reflect.DeepEqual(got, record.MachineState{}) {
		t.Errorf("machine without figures: %+v", got)
	}
}

func TestStateOfThisMachine(t *testing.T) {
	s := State(t.Context())
	if e := Describe(t.Context(), 0); s.AvailableB <= 0 || s.AvailableB > e.MemoryB || s.FreeB > e.MemoryB ||
		s.Governor != e.Governor {
		t.Errorf("%+v of %+v", s, e)
	}
	if stolen := Stolen(); stolen == nil || *stolen < 0 {
		t.Errorf("stolen: %v", stolen)
	}
	if free, how, ok := Room(t.Context()); !ok || free <= 0 || how == "" {
		t.Errorf("room: %d by %q (%v)", free, how, ok)
	}
}
