package proc_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"

	"llmparity/internal/host/sample/proc"
)

// withThread starts a thread that waits until it may end.
func withThread() (tid int, end func()) {
	started, ending := make(chan int), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- syscall.Gettid()
		<-ending
	}()
	return <-started, func() { close(ending) }
}

func TestProcessOfThread(t *testing.T) {
	tid, end := withThread()
	defer end()
	if got := proc.ProcessOf(tid); got != os.Getpid() {
		t.Errorf("thread %d is of process %d, want %d", tid, got, os.Getpid())
	}
	if got := proc.ProcessOf(os.Getpid()); got != os.Getpid() {
		t.Errorf("process %d is of %d", os.Getpid(), got)
	}
}

// An excepted process never belongs to a family, even if its parent does.
func TestExceptedProcessIsNoMember(t *testing.T) {
	sh := newShell(t)
	f := proc.NewFamily()
	defer f.Close()
	first := sh.start("sleep 607")
	f.Except = func(p proc.Process) bool { return p.PID == first }
	if _, err := f.Add(sh.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	second := sh.start("sleep 608")
	until(t, "the other is seen", func() bool { f.Look(); return len(f.Members()) == 2 })
	if got := f.Members()[1].PID; got != second {
		t.Errorf("member %d, want %d", got, second)
	}
}
