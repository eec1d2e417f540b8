package visitor

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v3/process"

	"llmparity/browser/chrome"
	"llmparity/browser/driver"
	"llmparity/browser/firefox"
	"llmparity/internal/host/child"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/record"
)

// Here reports whether the browser is on this machine.
func (v *Visitor) Here() bool { return IsHere(v.theirs) }

// IsHere reports whether an address is one of this machine's.
func IsHere(browser net.Addr) bool {
	host, _, _ := net.SplitHostPort(browser.String())
	ip := net.ParseIP(host)
	if ip.IsLoopback() {
		return true
	}
	own, _ := net.InterfaceAddrs() // without them it is another one
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

// process finds the browser, by the process that holds the other end of the connection.
func (v *Visitor) process(context.Context) (int, error) {
	if !v.Here() {
		return 0, errors.New("another device")
	}
	pid, err := proc.PIDOfPeer(v.ours, v.theirs)
	if err != nil {
		return 0, err
	}
	return proc.Root(pid), nil
}

// Renderer is the page's process; 0: unknown.
func (t *Tab) Renderer() int { return int(t.renderer.Load()) }

// Members are the browser's processes without those of its other pages, if the one of ours is known.
func (t *Tab) Members() []int {
	ours := t.Renderer()
	return slices.DeleteFunc(child.Descendants(t.About.PID), func(pid int) bool {
		return ours != 0 && pid != ours && t.role(pid) == otherRenderer
	})
}

const otherRenderer = "other-renderer"

// role is what a process is to the browser.
func (t *Tab) role(pid int) string {
	role := chrome.TypeOf(pid)
	if strings.HasPrefix(t.About.Product, "Firefox") {
		role = firefox.TypeOf(pid)
	}
	switch {
	case pid == t.About.PID:
		return "browser"
	case pid == t.Renderer():
		return "renderer"
	case role == "renderer":
		return otherRenderer
	}
	return role
}

// Roles names the browser's processes.
func (t *Tab) Roles(context.Context) (map[int]string, error) {
	if t.About.PID == 0 {
		return nil, nil
	}
	roles := map[int]string{}
	for _, pid := range t.Members() {
		roles[pid] = t.role(pid)
	}
	return roles, nil
}

// The page keeps its process busy for a time, by which that is known among others. On a busy machine it gets less.
const (
	spinCall  = "llmparityPage.spin(200)"
	spinLeast = 20 * time.Millisecond
	spinMore  = 3 // times as much as the next process
)

// Identify finds the page's process: the one that takes CPU time while the page is busy. If another does, too, it is
// not known.
func (t *Tab) Identify(ctx context.Context) error {
	if t.About.PID == 0 {
		return nil
	}
	before := t.pages()
	if _, err := t.Evaluate(ctx, driver.PageThread, spinCall); err != nil {
		return err
	}
	first, second := 0, time.Duration(0)
	took := t.pages()
	for pid := range took {
		took[pid] -= before[pid]
		switch {
		case first == 0:
			first = pid
		case took[pid] > took[first]:
			first, second = pid, took[first]
		default:
			second = max(second, took[pid])
		}
	}
	if first != 0 && took[first] >= spinLeast && took[first] > spinMore*second {
		t.renderer.Store(int64(first))
	} else {
		t.visitor.Note("Other pages of this browser are busy, so which process has this one is not " +
			"known. Figures include all pages. Close the others for better ones.")
	}
	t.show()
	return nil
}

// pages are the CPU times of processes that have pages, by pid.
func (t *Tab) pages() map[int]time.Duration {
	out := map[int]time.Duration{}
	for _, pid := range child.Descendants(t.About.PID) {
		if took, ok := proc.CPUTime(pid); ok && t.role(pid) == otherRenderer {
			out[pid] = took
		}
	}
	return out
}

// shownEvery is how often memory is read to be shown. What is recorded is read by the run.
const shownEvery = time.Second

// show shows the RSS of the processes until the tab is closed.
func (t *Tab) show() {
	ctx, cancel := context.WithCancel(t.Ctx)
	t.end = cancel
	go func() {
		tick := time.NewTicker(shownEvery)
		defer tick.Stop()
		for {
			all := map[string]float64{}
			for _, pid := range t.Members() {
				if m, err := (&process.Process{Pid: int32(pid)}).MemoryInfo(); err == nil {
					all[t.role(pid)] += float64(m.RSS) / record.MiB
				}
			}
			t.visitor.Send(map[string]any{"host": all}) // by role, in MiB
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
}
