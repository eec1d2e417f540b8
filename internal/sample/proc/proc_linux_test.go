package proc_test

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/internal/check"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
	"llmparity/internal/sample/proc/proctest"
)

// allocate is what the child of the test takes, and touches.
const allocate = 64 * record.MiB

// asChild makes the test binary wait for a line, allocate, say so, and wait for another.
const asChild = "PROC_TEST_CHILD"

// spike makes it free at once what it allocated.
const spike = "PROC_TEST_SPIKE"

func TestMain(m *testing.M) {
	if os.Getenv(asListener) != "" {
		listenAsChild()
		return
	}
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	in.Scan()
	// Not from Go's heap: the race detector shadows that with twice its size.
	block, err := syscall.Mmap(-1, 0, allocate, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := range block {
		block[i] = byte(i)
	}
	if os.Getenv(spike) != "" {
		if err := syscall.Munmap(block); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		block = []byte{0}
	}
	fmt.Println("allocated")
	in.Scan()
	fmt.Println(block[len(block)-1])
}

func TestSourcesSeeAllocations(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"=1")
	in, out := proctest.Start(t, cmd)
	out.Scan()
	sources, err := proc.Sources(cmd.Process.Pid, "test", false)
	check.Err(t, err)
	before := read(t, sources)
	fmt.Fprintln(in)
	out.Scan()
	after := read(t, sources)

	for _, c := range []struct {
		name    string
		b, a    int64
		percent float64
	}{
		{"statm RSS", before[record.MethodStatm].RSS, after[record.MethodStatm].RSS, 3},
		{"PSS", before[record.MethodSmapsRollup].PSS, after[record.MethodSmapsRollup].PSS, 3},
		{"USS", before[record.MethodSmapsRollup].USS, after[record.MethodSmapsRollup].USS, 3},
		{"HWM", before[record.MethodSmapsRollup].HWM, after[record.MethodSmapsRollup].HWM, 3},
	} {
		if moved := float64(c.a - c.b); math.Abs(moved-allocate) > allocate*c.percent/100+2*record.MiB {
			t.Errorf("%s moved by %.1f MiB, want 64", c.name, moved/record.MiB)
		}
	}
	// The expensive source and the cheap one speak of the same process at nearly the same time.
	if s, r := after[record.MethodStatm],
		after[record.MethodSmapsRollup]; math.Abs(float64(s.RSS-r.RSS)) > 4*record.MiB || s.VMS != r.VMS {
		t.Errorf("statm and smaps_rollup differ: %+v and %+v", s, r)
	}

	fmt.Fprintln(in)
	check.Err(t, cmd.Wait())
	for _, src := range sources {
		r := record.NewSample()
		if err := src.Read(t.Context(), &r); !errors.Is(err, sample.ErrGone) {
			t.Errorf("%s of an ended process: %v", src.Describe().Method, err)
		}
	}
	if _, err := proc.Sources(cmd.Process.Pid, "test", false); !errors.Is(err, sample.ErrGone) {
		t.Errorf("sources of an ended process: %v", err)
	}
}

// Only processes that we started have a peak for each phase.
func TestPeakIsReset(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"=1", spike+"=1")
	in, out := proctest.Start(t, cmd)
	out.Scan()
	ours, err := proc.Sources(cmd.Process.Pid, "test", true)
	check.Err(t, err)
	fmt.Fprintln(in)
	out.Scan() // allocated, and freed again
	r := read(t, ours)[record.MethodSmapsRollup]
	if r.HWM-r.RSS < allocate*9/10 {
		t.Errorf("the peak is %d MiB above what is there, want 64", (r.HWM-r.RSS)/record.MiB)
	}
	for _, src := range ours {
		if p, ok := src.(sample.Peaker); ok {
			check.Also(t, p.ResetPeak(t.Context()))
		}
	}
	if r := read(t, ours)[record.MethodSmapsRollup]; r.HWM-r.RSS > record.MiB {
		t.Errorf("after the reset the peak is %d MiB above what is there", (r.HWM-r.RSS)/record.MiB)
	}
	others, err := proc.Sources(cmd.Process.Pid, "test", false)
	check.Err(t, err)
	for _, src := range others {
		if _, ok := src.(sample.Peaker); ok {
			t.Error("the peak of a process that is not ours would be reset")
		}
	}
	fmt.Fprintln(in)
	check.Err(t, cmd.Wait())
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
