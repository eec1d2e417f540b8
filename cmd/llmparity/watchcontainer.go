package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"llmparity/internal/bench/watch"
	"llmparity/internal/host/container"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
)

// watched is a container whose processes are watched; nil: none.
type watched struct {
	*container.Container
	kills int // by the kernel on this machine, before
}

// inContainer finds the container of the flags, and lets its processes be watched.
func (f *watchFlags) inContainer(ctx context.Context) (*watched, error) {
	if f.container == "" {
		return nil, nil
	}
	c, err := container.Find(ctx, f.container)
	if err != nil {
		return nil, err
	}
	f.PIDs = []int{c.PID}
	f.Joins = func(p proc.Process) bool { return c.Has(p.PID) }
	return &watched{c, machine.MemoryKills()}, nil
}

// summarize says what the container may use, beside what it used.
func (w *watched) summarize(to io.Writer, sum watch.Summary) {
	if w == nil {
		return
	}
	line := fmt.Sprintf("container %s (%s, image %s): ", w.Name, w.Program, w.Image)
	switch {
	case w.Memory > 0 && sum.PeakPSS > 0:
		line += fmt.Sprintf("the peak PSS is %.0f%% of its memory limit of %s", 100*float64(sum.PeakPSS)/float64(w.Memory),
			words.Size(w.Memory))
	case w.Memory > 0:
		line += "memory limit " + words.Size(w.Memory)
	default:
		line += "no memory limit"
	}
	if w.CPUs > 0 {
		line += fmt.Sprintf(", at most %g cores", w.CPUs)
	}
	fmt.Fprintln(to, line)
}

// ended returns an error if the kernel ended a process of the container at its memory limit.
func (w *watched) ended() error {
	if w == nil {
		return nil
	}
	// The container's program learns of the end a moment later.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	now := w.Again(ctx)
	for ; now != nil && now.PID == w.PID && !alive(w.PID) && ctx.Err() == nil; now = w.Again(ctx) {
		time.Sleep(100 * time.Millisecond)
	}
	if now == nil {
		return nil
	}
	// Not every version of Podman reports what the kernel did; then the exit code and the kernel's count tell.
	counted := now.ExitCode == sigkilled && now.Memory > 0 && machine.MemoryKills() > w.kills
	if !now.OOMKilled && !counted {
		return nil
	}
	return fault.New(fault.Run, "give the container more memory",
		"container %s: the kernel ended a process at the memory limit of %s (oom)", w.Name, words.Size(w.Memory))
}

// sigkilled is the exit code of a container whose first process was killed.
const sigkilled = 128 + 9

func alive(pid int) bool {
	_, err := proc.Look(pid)
	return err == nil
}
