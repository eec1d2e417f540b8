package deepen

import (
	"maps"
	"slices"
	"testing"
	"time"

	"llmparity/internal/depth"
)

// Threads that wait take no time; functions that only have such names do.
func TestRunning(t *testing.T) {
	s := depth.NewStacks(time.Second / hertz)
	want := []string{"main;mkl_blas_def_xsgemv (libtorch_cpu.so)", "main;read_all (x.py)"}
	for _, stack := range append(want, "main;read (libc.so.6)", "clock_nanosleep (libc.so.6)",
		"main;run;__futex_abstimed_wait_common (libc.so.6)", "main;pthread_cond_timedwait",
		"main;sched_yield (libc.so.6)") {
		s.Seen[stack]++
	}
	running(s)
	if got := slices.Sorted(maps.Keys(s.Seen)); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
