package deepen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/depth"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// hertz is how often stacks are sampled: not a divisor of common periods.
const hertz = 99

// sampler is a running perf.
type sampler struct {
	cmd  *exec.Cmd
	said bytes.Buffer
	dir  string
}

// sampling starts perf on processes. Stacks are unwound from copies of the stack, because programs are built without
// frame pointers. perf is kept from copying each program into its own cache (-N).
func sampling(ctx context.Context, pids []int) (*sampler, error) {
	path, err := exec.LookPath("perf")
	if err != nil {
		return nil, fault.New(fault.Run, "install it (Debian: apt install linux-perf)",
			"stacks are sampled with perf, which is not here")
	}
	dir, err := child.Scratch("perf")
	if err != nil {
		return nil, err
	}
	var list []string
	for _, pid := range pids {
		list = append(list, strconv.Itoa(pid))
	}
	s := &sampler{dir: dir}
	s.cmd = exec.CommandContext(ctx, path, "record", "-q", "-N", "-F", strconv.Itoa(hertz), "-e", "cpu-clock", "-k",
		"CLOCK_MONOTONIC", "--call-graph", "dwarf,16384", "-p", strings.Join(list, ","), "-o",
		filepath.Join(dir, "data"))
	s.cmd.Stderr = &s.said
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	s.cmd.WaitDelay = 20 * time.Second
	child.Own(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	time.Sleep(300 * time.Millisecond) // until it has opened its events
	return s, nil
}

// end ends perf, which then has written its samples.
func (s *sampler) end() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	_ = s.cmd.Wait() // it ends by the signal
}

// stop ends perf and returns the stacks of each phase.
func (s *sampler) stop(ctx context.Context, phases []phase) (map[string]*depth.Stacks, error) {
	defer os.RemoveAll(s.dir)
	s.end()
	data := filepath.Join(s.dir, "data")
	if info, err := os.Stat(data); err != nil || info.Size() == 0 {
		return nil, s.refused()
	}
	cmd := exec.CommandContext(ctx, s.cmd.Path, "--buildid-dir", s.dir, "script", "--no-inline", "-i", data, "-F",
		"comm,pid,tid,time,event,ip,sym,symoff,dso")
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("perf script: %w: %s", err, fault.OneLine(said.String()))
	}
	out := map[string]*depth.Stacks{}
	for _, name := range []string{record.Prefill, record.Decode} {
		out[name] = depth.NewStacks(time.Second / hertz)
	}
	return out, depth.ReadPerf(bytes.NewReader(text), func(at time.Duration) *depth.Stacks {
		for _, p := range phases {
			if p.begin <= at && at < p.end {
				return out[p.name]
			}
		}
		return nil
	})
}

// refused is why perf could not sample: the first sentence of what it says.
func (s *sampler) refused() error {
	why, _, _ := strings.Cut(fault.OneLine(strings.TrimPrefix(s.said.String(), "Error:")), ". ")
	now, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		now = []byte("unknown")
	}
	return fault.New(fault.Run, fmt.Sprintf("run as root, or set kernel.perf_event_paranoid to 1, which is %s; "+
		"a container needs --cap-add PERFMON", strings.TrimSpace(string(now))), "perf could not sample: %s", why)
}

// phase is a stretch of the monotonic clock.
type phase struct {
	name       string
	begin, end time.Duration
}

// merged adds up the stacks of all phases, each below its name.
func merged(all map[string]*depth.Stacks) *depth.Stacks {
	out := depth.NewStacks(time.Second / hertz)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for stack, n := range all[name].Seen {
			out.Add([]string{name, stack}, n)
		}
	}
	return out
}

// unnamed says which file lacks the names of its functions, if much of the time is in it. Frames have the file's name.
func unnamed(s *depth.Stacks) []string {
	for _, file := range slices.Sorted(maps.Keys(s.Leaves())) {
		part := float64(s.Leaves()[file]) / float64(s.Total())
		if strings.HasPrefix(file, "[") && part > 0.1 {
			return []string{fmt.Sprintf("%.0f%% of samples are in %s, which has no symbols, so its functions are one; "+
				"use a build that is not stripped, or install its debug symbols", 100*part, strings.Trim(file, "[]"))}
		}
	}
	return nil
}
