package launch

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"llmparity/internal/host/container"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/words"
)

// tree samples the program. In a container it is no descendant of what carries it there, so processes join by the
// container's namespace and by the program's mark, and the carriers are left out.
func (p *Program) tree(o Options) (*proc.Tree, error) {
	if p.in == nil {
		return proc.NewTree(p.Process.PID(), o.Roles, o.Attach, true)
	}
	return proc.NewTreeWith(p.Process.PID(), func(of proc.Process) bool { return p.in.Has(of.PID) && p.Owns(of.PID) },
		func(line []string) string {
			if container.Carries(line) {
				return proc.NotYet
			}
			return o.Roles(line)
		}, o.Attach, true)
}

// In reports whether the program runs in a container.
func (p *Program) In() bool { return p.in != nil }

// PID returns the process's number on this machine; in a container, that of the first process found there.
func (p *Program) PID() int {
	if p.in != nil {
		for _, pid := range p.inside() {
			return pid
		}
	}
	return p.Process.PID()
}

// inside returns the program's processes in its container, without those that carry it, the oldest first.
func (p *Program) inside() (pids []int) {
	all, _ := proc.All()
	for _, pid := range append(p.Tree.PIDs(), all...) {
		if p.in.Has(pid) && !slices.Contains(pids, pid) && !container.Carries(proc.CommandLine(pid)) &&
			(slices.Contains(p.Tree.PIDs(), pid) || p.Owns(pid)) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// Exit describes how the program ended. A container reports the end by a signal as a number.
func (p *Program) Exit() string {
	how := p.Process.Exit()
	if code, ok := strings.CutPrefix(how, "exit status "); ok && p.in != nil {
		if n, err := strconv.Atoi(code); err == nil && n > 128 && n < 160 {
			return "signal: " + syscall.Signal(n-128).String()
		}
	}
	return how
}

// Signalled reports whether a signal ended the program.
func (p *Program) Signalled() bool { return strings.HasPrefix(p.Exit(), "signal: ") }

// Starved reports whether the kernel has ended a process since the start to free memory: of the program's container,
// else of this machine.
func (p *Program) Starved() bool {
	now := countKills(p.in)
	if p.kills.inside >= 0 && now.inside >= 0 {
		return now.inside > p.kills.inside
	}
	return p.kills.here >= 0 && now.here > p.kills.here // the container ended, too
}

// kills counts processes that the kernel has ended to free memory; -1: unknown.
type kills struct{ here, inside int }

func countKills(in *container.Container) kills {
	k := kills{machine.MemoryKills(), -1}
	if in != nil {
		k.inside = in.MemoryKills()
	}
	return k
}

// Limit names the container's limit if the kernel has ended a process there, to follow how the program ended.
func (p *Program) Limit() string {
	if p.in == nil || p.in.Memory == 0 || !p.Starved() {
		return ""
	}
	return fmt.Sprintf(" at the memory limit of %s of container %s", words.Size(p.in.Memory), p.in.Name)
}

// Stop asks the program to end, and kills it after grace.
func (p *Program) Stop(grace time.Duration) {
	if p.in == nil {
		p.Process.Stop(grace)
		return
	}
	p.Ask()
	if p.hold != nil {
		_ = p.hold.Close() // it may have ended
	}
	p.Ended(grace)
	p.Kill()
}

// reported is how long a container's program may take to report the end of what it carried.
const reported = 2 * time.Second

// Kill kills the program and all that it started, and waits for its end. What carries it into a container goes last,
// because it also keeps the container's own account of it.
func (p *Program) Kill() {
	if p.in != nil && !p.Ended(0) {
		p.Ask()
		if p.hold != nil {
			_ = p.hold.Close() // it may have ended
		}
		for _, pid := range p.inside() {
			if of, err := os.FindProcess(pid); err == nil {
				_ = of.Kill() // it may have ended
			}
		}
		p.Ended(reported)
	}
	p.Process.Kill()
}
