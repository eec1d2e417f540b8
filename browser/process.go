package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
)

// processes are the browser's sampled processes.
type processes struct {
	renderer atomic.Int64 // the page's

	mu       sync.Mutex // because Close can come at any time
	attached map[int][]func()
	workers  map[target.ID]bool // sampled heaps
	ended    bool               // nothing may be attached any more
}

// Attach samples every process of the browser that is not sampled yet. Processes come and go: a killed GPU process is
// replaced, and services start late.
func (p *Page) Attach(ctx context.Context, probe engine.Probe) error {
	roles, err := p.Roles(ctx)
	if err != nil {
		return err
	}
	workers, err := p.workers(ctx)
	if err != nil {
		return err
	}
	ps := &p.processes
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.ended {
		return errClosed
	}
	for _, pid := range slices.Sorted(maps.Keys(roles)) {
		if _, known := ps.attached[pid]; known {
			continue
		}
		sources, err := proc.Sources(pid, roles[pid], !p.chrome.attached)
		if errors.Is(err, sample.ErrGone) {
			continue
		}
		if err != nil {
			return fmt.Errorf("sampling the %s: %w", roles[pid], err)
		}
		for _, s := range proc.WithCPUTime(sources) {
			ps.attached[pid] = append(ps.attached[pid], probe.Attach(s))
		}
	}
	for _, w := range workers { // last, so that fast sources are read first at a phase edge
		if !ps.workers[w] {
			ps.workers[w] = true
			ps.attached[ofThePage] = append(ps.attached[ofThePage], probe.Attach(p.heapOf(w)))
		}
	}
	return nil
}

// AttachNew samples new processes until stop is called. Looking costs a scan of /proc. The browser is only asked if a
// process is unknown for the second time, because a process that was just forked does not show yet what it will be.
func (p *Page) AttachNew(outer context.Context, probe engine.Probe, every time.Duration) (stop func()) {
	var seen []int
	look := func(ctx context.Context) bool {
		p.processes.mu.Lock()
		unknown := slices.DeleteFunc(p.chrome.members(), func(pid int) bool {
			_, known := p.processes.attached[pid]
			return known
		})
		p.processes.mu.Unlock()
		if slices.ContainsFunc(unknown, func(pid int) bool { return slices.Contains(seen, pid) }) {
			_ = p.Attach(ctx, probe) // retried soon; at the end of the load errors are returned
		}
		seen = unknown
		return false
	}
	end := repeat(outer, every, look)
	return func() {
		end()
		if outer.Err() == nil && p.lost() == nil {
			look(outer) // for what is short-lived
		}
	}
}

// detach ends all sampling.
func (ps *processes) detach() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.ended = true
	for _, all := range ps.attached {
		for _, detach := range all {
			detach()
		}
	}
	clear(ps.attached)
}

// Roles returns the role of each process of the browser. The browser names its main children. Others, such as zygotes,
// are found by process group and named by their command line.
func (p *Page) Roles(ctx context.Context) (map[int]string, error) {
	if p.chrome.pid == 0 {
		return nil, nil // not on this machine
	}
	bctx, cancel := p.within(ctx)
	defer cancel()
	info, err := chromedp.CallBrowser(bctx, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		return nil, fmt.Errorf("asking for the browser's processes: %w", p.errorOf(ctx, err))
	}
	roles := map[int]string{}
	for _, pid := range p.chrome.members() {
		roles[pid] = typeOf(pid)
	}
	for _, i := range info.ProcessInfo {
		roles[int(i.ID)] = roleOf(i.Type)
	}
	for pid, role := range roles {
		if role == "renderer" && pid != int(p.processes.renderer.Load()) {
			roles[pid] = "other-renderer"
		}
	}
	return roles, nil
}

// roleOf converts the browser's names to ours; a service such as network.mojom.NetworkService is utility-network.
func roleOf(kind string) string {
	kind = strings.ToLower(kind)
	if service, _, ok := strings.Cut(kind, ".mojom."); ok {
		return "utility-" + service
	}
	switch kind {
	case "gpu":
		return "gpu-process"
	case "":
		return "browser-helper"
	}
	return kind
}

// typeOf returns the type of a Chrome child from its command line, such as zygote or utility, if there is /proc.
func typeOf(pid int) string {
	// A renderer forked from a zygote separates its arguments by spaces.
	for _, arg := range strings.Fields(strings.Join(proc.CommandLine(pid), " ")) {
		if kind, ok := strings.CutPrefix(arg, "--type="); ok {
			return roleOf(strings.TrimSuffix(kind, "-process"))
		}
	}
	return "browser-helper"
}

// findRenderer finds the page's process with a trace, because no other interface names it.
func (p *Page) findRenderer(ctx context.Context) error {
	tctx, cancel := p.within(ctx)
	defer cancel()
	data := chromedp.Events(tctx, tracing.DataCollected)
	if err := p.trace(ctx, tracing.StartParams{TraceConfig: &tracing.TraceConfig{
		IncludedCategories:  []string{"disabled-by-default-devtools.timeline"},
		TraceBufferSizeInKb: 1024, // the default takes 200 MB
	}}); err != nil {
		return err
	}
	if _, err := ask(ctx, p, "ending the trace", tracing.End, cdp.Empty{}); err != nil {
		return err
	}
	for batch, err := range data {
		if err != nil {
			return fmt.Errorf("reading the trace: %w", p.errorOf(ctx, err))
		}
		for _, event := range batch.Value {
			if pid := rendererIn(event, p.server.Base); pid != 0 {
				p.processes.renderer.Store(int64(pid))
				return nil
			}
		}
	}
	return errors.New("the trace does not name the page's process")
}

// rendererIn returns the process of the frame whose URL begins with base; 0 if the event does not name it.
func rendererIn(event []byte, base string) int {
	var e struct {
		Name string `json:"name"`
		Args struct {
			Data struct {
				Frames []struct {
					URL       string `json:"url"`
					ProcessID int    `json:"processId"`
				} `json:"frames"`
			} `json:"data"`
		} `json:"args"`
	}
	if json.Unmarshal(event, &e) != nil || e.Name != "TracingStartedInBrowser" {
		return 0
	}
	for _, f := range e.Args.Data.Frames {
		if strings.HasPrefix(f.URL, base) {
			return f.ProcessID
		}
	}
	return 0
}
