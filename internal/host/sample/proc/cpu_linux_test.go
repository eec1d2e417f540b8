package proc_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/host/sample/proc/proctest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// A process's CPU time grows with its work by less than a hundredth of a second at a time, and not while it waits. That
// of a child that has ended counts as its parent's.
func TestCPUTimeOfAProcess(t *testing.T) {
	in, out := proctest.Start(t, exec.Command("sh", "-c", `while read -r n; do
		case $n in child) sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done';;
		*) i=0; while [ $i -lt $n ]; do i=$((i+1)); done;; esac; echo $$; done`))
	order := func(what any) (pid int) {
		fmt.Fprintln(in, what)
		if !out.Scan() {
			t.Fatal("the shell has ended")
		}
		_, err := fmt.Sscan(out.Text(), &pid)
		check.Err(t, err)
		return pid
	}
	pid := order(0)
	sources, err := proc.Sources(pid, "test", true)
	check.Err(t, err)
	all := proc.WithCPUTime(sources)
	of := all[len(all)-1]
	if d := of.Describe(); d.Method != record.MethodCPUTime || d.PID != pid || d.Role != "test" || d.Every != 0 {
		t.Fatalf("%+v", d)
	}
	took := func() (own, kids float64) {
		r := record.NewSample()
		check.Err(t, of.Read(t.Context(), &r))
		for _, v := range r.Values {
			switch v.Name {
			case record.CPUTime:
				own = v.Value
			case record.CPUTimeChildren:
				kids = v.Value
			}
		}
		return own, kids
	}
	before, _ := took()
	for now, tries := 0.0, 0; now != before; tries++ { // it may not wait yet
		if tries > 10_000 {
			t.Fatal("its CPU time grows while it waits")
		}
		now = before
		time.Sleep(time.Millisecond)
		before, _ = took()
	}
	order(2000) // some milliseconds
	worked, none := took()
	if worked <= before {
		t.Errorf("%v ms before, %v ms after some work", before, worked)
	}
	order("child")
	if own, kids := took(); kids <= none || kids <= own-worked {
		t.Errorf("a child worked: %v ms of its own, and %v ms of children", own-worked, kids)
	}
	if proc.WithCPUTime(nil) != nil {
		t.Error("a source of no process")
	}
	gone := &sample.Func{Source: record.Source{PID: pid, Start: of.Describe().Start + 1, Role: "other"}}
	reused := proc.WithCPUTime([]sample.Source{gone})[1]
	r := record.NewSample()
	if err := reused.Read(t.Context(), &r); err == nil {
		t.Errorf("the process %d of another start was read: %v", os.Getpid(), r.Values)
	}
}
