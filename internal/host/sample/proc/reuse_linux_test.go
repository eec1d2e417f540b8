package proc

import (
	"os/exec"
	"testing"

	"llmparity/internal/host/sample/proc/proctest"
	"llmparity/internal/kit/check"
)

// A member whose pid was reused does not hide the new process.
func TestReusedPIDIsAnotherProcess(t *testing.T) {
	first, second := exec.Command("cat"), exec.Command("cat")
	proctest.Start(t, first)
	proctest.Start(t, second)
	f := NewFamily()
	defer f.Close()
	old, err := f.Add(first.Process.Pid)
	check.Err(t, err)
	check.Err(t, first.Process.Kill())
	_ = first.Wait() // killed, as it should be
	if old.Alive() {
		t.Fatal("alive")
	}
	// As if the second had got the number of the first.
	delete(f.members, old.PID)
	f.members[second.Process.Pid] = old
	f.Joins = func(p Process) bool { return p.PID == second.Process.Pid }
	f.everybody = true
	found := f.Look()
	if len(found) != 1 || found[0] == old || !found[0].Alive() {
		t.Errorf("found %v", found)
	}
	old.PID = second.Process.Pid
	f.Drop(old)
	if f.members[second.Process.Pid] == nil {
		t.Error("dropping the old process lost the new one")
	}
}
