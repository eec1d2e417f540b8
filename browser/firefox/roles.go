package firefox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"llmparity/browser/driver"
	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/record"
)

// Renderer is the page's content process.
func (t *Tab) Renderer() int { return int(t.renderer.Load()) }

// Members returns the browser's processes. The group also has the process that guards it.
func (t *Tab) Members() []int { return child.Descendants(t.process.PID()) }

func alive(pid int) bool { return child.Alive(pid) }

// process is one of Firefox's, as its own scripts know it.
type process struct {
	PID  int      `json:"pid"`
	Type string   `json:"type"`
	URLs []string `json:"urls"`
}

// processes asks Firefox for its processes and what they show.
const processes = `ChromeUtils.requestProcInfo().then((main) => [
	{ pid: main.pid, type: "browser", urls: [] },
	...main.children.map(({ pid, type, windows }) => ({ pid, type, urls: windows.map((w) => w.documentURI?.spec ?? "") })),
])`

func (t *Tab) processes(ctx context.Context) (all []process, err error) {
	text, err := t.own(ctx, processes)
	if err == nil {
		err = json.Unmarshal([]byte(text), &all)
	}
	if err != nil {
		return nil, fmt.Errorf("asking for the browser's processes: %w", err)
	}
	return all, nil
}

// adapted asks for what pages may not know, so that they recognise nobody by it.
const adapted = `navigator.gpu?.requestAdapter({ powerPreference: "high-performance" }).then((adapter) => {
	const info = adapter?.info;
	return info && { name: info.wgpuName, driver: [info.wgpuDriver, info.wgpuDriverInfo].filter(Boolean).join(" "),
		backend: info.wgpuBackend, type: info.wgpuDeviceType };
})`

// Adapter is what Firefox knows of the WebGPU adapter.
func (t *Tab) Adapter(ctx context.Context) (*driver.Adapted, error) {
	text, err := t.own(ctx, adapted)
	if err != nil || text == "" {
		return nil, err
	}
	var a *driver.Adapted
	err = json.Unmarshal([]byte(text), &a)
	return a, err
}

// own evaluates an expression with the rights of the browser's own scripts.
func (t *Tab) own(ctx context.Context, expression string) (string, error) {
	var tree struct {
		Contexts []struct {
			Context string `json:"context"`
		} `json:"contexts"`
	}
	windows := map[string]any{"moz:scope": "chrome", "maxDepth": 0}
	if err := t.call(ctx, "browsingContext.getTree", windows, &tree); err != nil {
		return "", err
	}
	if len(tree.Contexts) == 0 {
		return "", errors.New("the browser has no window")
	}
	return t.evaluate(ctx, map[string]any{"context": tree.Contexts[0].Context}, expression)
}

// Identify finds the page's process, and watches it.
func (t *Tab) Identify(ctx context.Context) error {
	all, err := t.processes(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		for _, url := range p.URLs {
			if strings.HasPrefix(url, t.base) {
				t.renderer.Store(int64(p.PID))
				go t.watch(p.PID)
				return nil
			}
		}
	}
	return errors.New("the browser does not name the page's process")
}

// watched is how often the page's process is looked for. Calls to it may never return once it has ended.
const watched = 200 * time.Millisecond

// watch makes the page lost when its process ends.
func (t *Tab) watch(pid int) {
	tick := time.NewTicker(watched)
	defer tick.Stop()
	for alive(pid) {
		select {
		case <-t.Ctx.Done():
			return
		case <-tick.C:
		}
	}
	class, how := t.vanished("it is gone")
	if t.process.Ended(0) {
		return // with the browser, whose end is reported
	}
	t.Lose(engine.Fail(class, "the page's content process ended (%s)", how))
}

// vanished is why a process ended, of which only the end is known. The kernel counts those that it killed for memory.
func (t *Tab) vanished(how string) (record.Class, string) {
	if class, why := t.EndedFor(driver.Killed); class == record.OOM {
		return class, why
	}
	return t.EndedFor(how)
}

// Roles names the browser's processes: those that it names itself, and on Linux others by their command line.
func (t *Tab) Roles(ctx context.Context) (map[int]string, error) {
	all, err := t.processes(ctx)
	if err != nil {
		return nil, err
	}
	roles := map[int]string{}
	for _, pid := range t.Members() {
		roles[pid] = roleOf(kindOf(proc.CommandLine(pid)))
	}
	for _, p := range all {
		roles[p.PID] = roleOf(p.Type)
	}
	if pid := t.Renderer(); pid != 0 {
		roles[pid] = "renderer"
	}
	return roles, nil
}

// kindOf is the kind of a child from its command line, whose last argument it is.
func kindOf(line []string) string {
	if len(line) == 0 || !strings.Contains(strings.Join(line, " "), "-contentproc") {
		return ""
	}
	return line[len(line)-1]
}

// TypeOf returns the role of a child of Firefox from its command line, if there is /proc.
func TypeOf(pid int) string {
	role := roleOf(kindOf(proc.CommandLine(pid)))
	if role == "other-renderer" {
		return "renderer"
	}
	return role
}

// roleOf converts Firefox's names to ours. Pages have many kinds, such as web and webCOOP+COEP.
func roleOf(kind string) string {
	switch kind {
	case "browser", "extension", "utility":
		return kind
	case "gpu":
		return "gpu-process"
	case "":
		return "browser-helper"
	case "rdd", "socket", "forkServer", "forkserver", "vr", "gmpPlugin":
		return "utility-" + strings.ToLower(kind)
	}
	return "other-renderer"
}
