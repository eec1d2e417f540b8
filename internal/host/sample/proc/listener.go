package proc

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sockets "github.com/shirou/gopsutil/v3/net"
	"github.com/shirou/gopsutil/v3/process"
)

// PIDOfListener returns the process on this machine that answers at an address such as 127.0.0.1:8080. If several hold
// the socket, such as a server and its workers, it returns the oldest.
func PIDOfListener(ctx context.Context, address string) (int, error) {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, fmt.Errorf("no process found that listens at %s on this machine: %w", address, err)
	}
	defer conn.Close()
	return answering(endOf(conn.LocalAddr()), endOf(conn.RemoteAddr()))
}

// PIDOfPeer returns the process on this machine at the other end of a connection that we accepted.
func PIDOfPeer(ours, theirs net.Addr) (int, error) {
	all, err := sockets.Connections("tcp")
	if err != nil {
		return 0, fmt.Errorf("finding the process at %v: %w", theirs, err)
	}
	for _, c := range all {
		if c.Pid != 0 && end(c.Laddr) == endOf(theirs) && end(c.Raddr) == endOf(ours) {
			return int(c.Pid), nil
		}
	}
	return 0, fmt.Errorf("no process found at %v on this machine", theirs)
}

func endOf(a net.Addr) netip.AddrPort {
	p := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}

// answering returns the process that holds the other end of a connection, else one that listens on that address, else
// one that listens on all addresses.
func answering(ours, theirs netip.AddrPort) (int, error) {
	all, err := sockets.Connections("tcp")
	if err != nil {
		return 0, fmt.Errorf("finding the listener at %v: %w", theirs, err)
	}
	var first Process
	rank := 0
	for _, c := range all {
		r := 0
		switch local, remote := end(c.Laddr), end(c.Raddr); {
		case c.Pid == 0 || local.Port() != theirs.Port():
		case c.Status == "ESTABLISHED" && local == theirs && remote == ours:
			r = 3
		case c.Status == "LISTEN" && local == theirs:
			r = 2
		case c.Status == "LISTEN" && (!local.Addr().IsValid() || local.Addr().IsUnspecified()):
			r = 1
		}
		if r == 0 || r < rank {
			continue
		}
		if p, err := Look(int(c.Pid)); err == nil && (r > rank || p.Start < first.Start) {
			first, rank = p, r
		}
	}
	if first.PID == 0 {
		return 0, fmt.Errorf("no process found that listens at %v on this machine", theirs)
	}
	return first.PID, nil
}

func end(a sockets.Addr) netip.AddrPort {
	ip, _ := netip.ParseAddr(a.IP) // "*" is invalid
	return netip.AddrPortFrom(ip.Unmap(), uint16(a.Port))
}

// launchers are programs and modules that start a server as several processes. The listening process may be a child
// whose siblings hold the model.
var launchers = []string{"text-generation-launcher", "vllm", "sglang"}

// Root returns the topmost process of a server: it follows parents that run the same program or are known launchers. It
// stops at a shell, at an ancestor of this process, and at the leader of a session.
func Root(pid int) int {
	above := Ancestors()
	for seen := map[int]bool{}; !seen[pid]; {
		seen[pid] = true
		me, err := Look(pid)
		if err != nil || me.Parent <= 1 || above[me.Parent] > 0 || leads(pid) || !started(me.Parent, pid) {
			break
		}
		pid = me.Parent
	}
	return pid
}

// Ancestors returns the start times of this process and those above it, by pid.
func Ancestors() map[int]uint64 {
	starts := map[int]uint64{}
	for pid := os.Getpid(); pid > 0; {
		p, err := Look(pid)
		if _, seen := starts[pid]; err != nil || seen {
			break
		}
		starts[pid], pid = p.Start, p.Parent
	}
	return starts
}

// started reports whether a parent belongs to the same server as its child.
func started(parent, child int) bool {
	line := CommandLine(parent)
	if launches(line) {
		return true
	}
	if p, err := Look(parent); err != nil || shell(p.Name) {
		return false
	}
	a, b := program(parent), program(child)
	return a != nil && b != nil && os.SameFile(a, b)
}

// launches reports whether a command line is that of a known launcher: its program, its script or its module.
func launches(line []string) bool {
	for i, arg := range line {
		if i > 0 && arg == "-m" && i+1 < len(line) {
			arg, _, _ = strings.Cut(line[i+1], ".")
		} else if i > 0 && strings.HasPrefix(arg, "-") {
			continue
		}
		if known := slices.Contains(launchers, filepath.Base(arg)); known || i > 0 {
			return known
		}
	}
	return false
}

// shell reports whether a program starts unrelated programs.
func shell(name string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "tmux", "screen",
		"init", "systemd", "sshd", "login",
		"sudo", "su", "tini", "dumb-init", "docker-init", "containerd-shim", "supervisord", "make", "timeout", "nohup",
		"env"}, strings.TrimPrefix(name, "-"))
}

// program returns the file that a process runs; nil if unknown.
func program(pid int) os.FileInfo {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return nil
	}
	path, _ := p.Exe()
	f, _ := os.Stat(path) // nil without a path
	return f
}
