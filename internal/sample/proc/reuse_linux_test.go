package proc

import (
	"os/exec"
	"testing"
	"time"

	"llmparity/internal/sample/proc/proctest"
)

// A number that was given out again is another process: an entry of the one before does not stand in its way.
func TestReusedPIDIsAnotherProcess(t *testing.T) {
	first, second := exec.Command("cat"), exec.Command("cat")
	proctest.Start(t, first)
	proctest.Start(t, second)
	f := NewFamily()
	defer f.Close()
	old, err := f.Add(first.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
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
		t.Error("letting go of the old one has lost the new one")
	}
}

// Where the kernel does not tell the last pid, such as in a sandbox, everybody is listed.
func TestWithoutTheLastPidEverybodyIsListed(t *testing.T) {
	f := NewFamily()
	defer f.Close()
	f.births.close()
	f.Look()
	cmd := exec.Command("cat")
	proctest.Start(t, cmd)
	f.Joins = func(p Process) bool { return p.PID == cmd.Process.Pid }
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if found := f.Look(); len(found) == 1 && found[0].PID == cmd.Process.Pid {
			return
		}
		if time.Now().After(end) {
			t.Fatal("never found")
		}
	}
}
