package proc_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/host/sample/proc/proctest"
	"llmparity/internal/host/sample/truth"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// asChild makes the test binary allocate memory by orders.
const asChild = "PROC_TEST_CHILD"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asListener) != "":
		listenAsChild()
	case os.Getenv(asChild) != "":
		if err := truth.Allocate(os.Stdin, os.Stdout); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

// Only processes that we started have a peak for each phase. Tests of package truth cover what the sources see.
func TestPeakIsReset(t *testing.T) {
	const allocate = 64 * record.MiB
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"=1")
	in, out := proctest.Start(t, cmd)
	order := func(what string) {
		fmt.Fprintln(in, what)
		if !out.Scan() || out.Text() != "done" {
			t.Fatalf("%s: %q", what, out.Text())
		}
	}
	order("give back") // it has started
	ours, err := proc.Sources(cmd.Process.Pid, "test", true)
	check.Err(t, err)
	order(fmt.Sprint("anonymous ", allocate))
	order("give back")
	r := read(t, ours)[record.MethodSmapsRollup]
	if r.HWM-r.RSS < allocate*9/10 {
		t.Errorf("the peak is %d MiB above what is there, want 64", (r.HWM-r.RSS)/record.MiB)
	}
	for _, src := range ours {
		if p, ok := src.(sample.Peaker); ok {
			check.Also(t, p.ResetPeak(t.Context()))
		}
	}
	after := read(t, ours)
	cheap, r := after[record.MethodStatm], after[record.MethodSmapsRollup]
	if r.HWM-r.RSS > record.MiB {
		t.Errorf("after the reset the peak is %d MiB above what is there", (r.HWM-r.RSS)/record.MiB)
	}
	if math.Abs(float64(cheap.RSS-r.RSS)) > 4*record.MiB || cheap.VMS != r.VMS {
		t.Errorf("statm and smaps_rollup differ: %+v and %+v", cheap, r)
	}
	others, err := proc.Sources(cmd.Process.Pid, "test", false)
	check.Err(t, err)
	for _, src := range others {
		if _, ok := src.(sample.Peaker); ok {
			t.Error("the peak of a process that is not ours would be reset")
		}
	}
	check.Err(t, in.Close())
	check.Err(t, cmd.Wait())
	for _, src := range ours {
		r := record.NewSample()
		if err := src.Read(t.Context(), &r); !errors.Is(err, sample.ErrGone) {
			t.Errorf("%s of an ended process: %v", src.Describe().Method, err)
		}
	}
	if _, err := proc.Sources(cmd.Process.Pid, "test", false); !errors.Is(err, sample.ErrGone) {
		t.Errorf("sources of an ended process: %v", err)
	}
}

func read(t *testing.T, sources []sample.Source) map[string]record.Sample {
	t.Helper()
	out := map[string]record.Sample{}
	for _, src := range sources {
		r := record.NewSample()
		check.Err(t, src.Read(t.Context(), &r))
		d := src.Describe()
		if r.End.Before(r.Begin) || time.Since(r.End) > time.Minute || d.PID == 0 || d.Start == 0 ||
			strings.TrimSpace(d.Blind) == "" {
			t.Errorf("%s: %+v %+v", d.Method, d, r)
		}
		out[d.Method] = r
	}
	return out
}
