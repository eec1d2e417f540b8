package chrome

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"llmparity/internal/host/sample/proc"
)

// Roles returns the role of each process of the browser. The browser names its main children. Others, such as zygotes,
// are found by process group and named by their command line.
func (t *Tab) Roles(ctx context.Context) (map[int]string, error) {
	if t.About.PID == 0 {
		return nil, nil // not on this machine
	}
	bctx, cancel := t.within(ctx)
	defer cancel()
	info, err := chromedp.CallBrowser(bctx, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		return nil, fmt.Errorf("asking for the browser's processes: %w", t.errorOf(ctx, err))
	}
	roles := map[int]string{}
	for _, pid := range t.Members() {
		roles[pid] = TypeOf(pid)
	}
	for _, i := range info.ProcessInfo {
		roles[int(i.ID)] = roleOf(i.Type)
	}
	for pid, role := range roles {
		if role == "renderer" && pid != int(t.renderer.Load()) {
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

// TypeOf returns the type of a Chrome child from its command line, such as zygote or utility, if there is /proc.
func TypeOf(pid int) string {
	// A renderer forked from a zygote separates its arguments by spaces.
	for _, arg := range strings.Fields(strings.Join(proc.CommandLine(pid), " ")) {
		if kind, ok := strings.CutPrefix(arg, "--type="); ok {
			return roleOf(strings.TrimSuffix(kind, "-process"))
		}
	}
	return "browser-helper"
}

// Identify finds the page's process with a trace, because no other interface names it.
func (t *Tab) Identify(ctx context.Context) error {
	tctx, cancel := t.within(ctx)
	defer cancel()
	data := chromedp.Events(tctx, tracing.DataCollected)
	if err := t.trace(ctx, tracing.StartParams{TraceConfig: &tracing.TraceConfig{
		IncludedCategories:  []string{"disabled-by-default-devtools.timeline"},
		TraceBufferSizeInKb: 1024, // the default takes 200 MB
	}}); err != nil {
		return err
	}
	if _, err := ask(ctx, t, "ending the trace", tracing.End, cdp.Empty{}); err != nil {
		return err
	}
	for batch, err := range data {
		if err != nil {
			return fmt.Errorf("reading the trace: %w", t.errorOf(ctx, err))
		}
		for _, event := range batch.Value {
			if pid := rendererIn(event, t.base); pid != 0 {
				t.renderer.Store(int64(pid))
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

// Renderer is the page's process.
func (t *Tab) Renderer() int { return int(t.renderer.Load()) }
