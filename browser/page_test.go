package browser

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/browser/driver"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

func TestProcessesAreMapped(t *testing.T) {
	p, probe := blank(t)
	roles, err := p.Roles(watched(t))
	check.Err(t, err)
	count, group := map[string]int{}, child.Group(p.tab.Facts().PID)
	for pid, role := range roles {
		count[role]++
		if !slices.Contains(group, pid) {
			t.Errorf("process %d, the %s, is not in the group that Close kills", pid, role)
		}
	}
	for _, role := range []string{"browser", "renderer", "gpu-process"} {
		if count[role] != 1 {
			t.Errorf("%d processes are called %s: %v", count[role], role, roles)
		}
	}
	if n := count["other-renderer"]; n != 0 {
		t.Errorf("%d other renderers", n)
	}
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.tab.Renderer()), "cmdline"))
	if err != nil || !strings.Contains(string(line), "--type=renderer") {
		t.Errorf("the page's process is %q (%v)", line, err)
	}
	seen := map[string]bool{}
	for _, source := range probe.Attached() {
		d := source.Describe()
		key := strconv.Itoa(d.PID) + d.Method + d.Role
		if seen[key] {
			t.Errorf("the %s is read by %s twice", d.Role, d.Method)
		}
		seen[key] = true
	}
}

// A page in its own browser: clock, exceptions, cancelled calls, new processes, and the end.
func TestPage(t *testing.T) {
	p, probe := fresh(t, Config{})
	clockIsOurs(t, p, probe)
	for _, what := range []string{"crossOriginIsolated", "performance.memory.usedJSHeapSize > 0"} {
		if ok, err := Call[bool](watched(t), p, what); err != nil || !ok {
			t.Errorf("%s: %v, %v", what, ok, err)
		}
	}
	for expression, want := range map[string]string{
		`Promise.reject(new TypeError("no\n such thing"))`: "in the page: TypeError: no such thing",
		`Promise.reject("a bare string")`:                  "in the page: a bare string",
	} {
		if _, err := Call[any](watched(t), p, expression); err == nil || err.Error() != want {
			t.Errorf("%s: error %q, want %q", expression, err, want)
		}
	}
	full := `Promise.reject(new RangeError("Array buffer allocation failed"))`
	if _, err := Call[any](watched(t), p, full); engine.ClassOf(err) != record.OOM {
		t.Errorf("class %s of %v, want %s", engine.ClassOf(err), err, record.OOM)
	}
	givenUp(t, p)
	newProcessesAreSampled(t, p, probe)
	closes(t, p, probe)
}

func clockIsOurs(t *testing.T, p *Page, probe *enginetest.Probe) {
	t.Helper()
	var bound time.Duration
	for _, e := range probe.Events() {
		if e.Clock != nil {
			bound = time.Duration(e.Clock.ErrorNS)
		}
	}
	begin := time.Now()
	ms, err := Call[float64](watched(t), p, "llmparity.now()")
	end := time.Now()
	check.Err(t, err)
	if at := p.At(ms); bound == 0 || at.Before(begin.Add(-bound)) || at.After(end.Add(bound)) {
		t.Errorf("the page's clock is at %v, outside [%v, %v] by more than its error of %v", at, begin, end, bound)
	}
}

// givenUp cancels a long call: tokens reported until then arrive, and the next call works.
func givenUp(t *testing.T, p *Page) {
	t.Helper()
	want := generated(t, p)
	ctx, cancel := context.WithCancel(watched(t))
	tokens := 0
	_, err := Long[answer](ctx, p, "llmparity.interrupt()", "llmparity.generate", map[string]any{"tokens": 1 << 30},
		func(told Told) {
			if tokens += len(told.Tokens) / 2; tokens > 20 {
				cancel()
			}
		})
	if !errors.Is(err, context.Canceled) || tokens < 20 {
		t.Errorf("cancelled after %d tokens: %v", tokens, err)
	}
	check.Also(t, p.Settle(watched(t)))
	if again := generated(t, p); len(want) != 9 || !slices.Equal(again, want) {
		t.Errorf("tokens %v, before: %v", again, want)
	}
}

// newProcessesAreSampled kills processes that the browser restarts during a call.
func newProcessesAreSampled(t *testing.T, p *Page, probe *enginetest.Probe) {
	t.Helper()
	stop := p.AttachNew(watched(t), probe, 100*time.Millisecond)
	defer stop()
	for _, role := range []string{"gpu-process", "utility-network"} {
		old := probe.PIDs(role)
		if len(old) != 1 {
			t.Fatalf("processes called %s: %v", role, old)
		}
		check.Err(t, check.Kill(old[0]))
		for deadline := time.Now().Add(2 * time.Minute); len(probe.PIDs(role)) < 2; {
			if time.Now().After(deadline) {
				t.Fatalf("the new %s is not sampled", role)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// closes closes a page during an attachment, and twice.
func closes(t *testing.T, p *Page, probe *enginetest.Probe) {
	t.Helper()
	done := make(chan error)
	go func() { done <- p.Attach(watched(t), probe) }()
	p.processes.detach() // before, during or after
	<-done
	if err := p.Attach(watched(t), probe); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("attaching to a closed page: %v, want %v", err, driver.ErrClosed)
	}
	if n := len(probe.Attached()); n != 0 {
		t.Errorf("%d sources are attached after Close", n)
	}
	check.Also(t, errors.Join(p.Close(), p.Close()))
	if r, err := http.Get(p.Base() + "/"); err == nil {
		r.Body.Close()
		t.Error("the server still answers")
	}
	if err := p.Settle(watched(t)); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("after Close: %v, want %v", err, driver.ErrClosed)
	}
}

func TestCancelledOpenLeavesNothing(t *testing.T) {
	check.Also(t, endShared()) // it may start processes at any time
	for _, after := range []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		p, err := Open(ctx, Config{}, stubSite, &enginetest.Probe{})
		cancel()
		switch {
		case err == nil: // already open
			if err := p.Close(); err != nil {
				t.Errorf("after %v: Close: %v", after, err)
			}
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("after %v: %v, want a context error", after, err)
		}
		if left := childtest.Left(); len(left) > 0 {
			t.Errorf("after %v: left: %s", after, left)
		}
	}
}

// Whatever happens to the engine's thread or the browser, the loss of the page has a class.
func TestLostPageHasAClass(t *testing.T) {
	const fillHeap = "(() => { const a = []; for (;;) a.push(new Array(1e5).fill({})); })()"
	for _, x := range []struct {
		name       string
		thread     Thread
		expression string // to evaluate, or the role of processes to kill
		class      record.Class
		say, or    string
	}{
		{"heap full", PageThread, fillHeap, record.OOM, "memory ran out", ""},
		// of the whole process, if the worker is not ended in time
		{"worker's heap full", WorkerThread, fillHeap, record.OOM, "worker ended unexpectedly", "memory ran out"},
		{"page hung", PageThread, "for (;;);", record.Hung, "the page hangs", ""},
		{"worker hung", WorkerThread, "for (;;);", record.Hung, "the worker hangs", ""},
		{"browser killed", PageThread, "browser", record.Crash, "browser ended unexpectedly", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := Config{Thread: x.thread, Watchdog: time.Second}
			if x.class != record.Hung {
				c.Launch.Flags, c.Watchdog = []string{"js-flags=--max-old-space-size=60"}, 5*time.Minute
			}
			p, probe := fresh(t, c)
			defer p.Guard()()
			if x.class == record.Crash {
				kill(t, p, x.expression)
				x.expression = "new Promise(() => {})"
			}
			_, err := Call[any](watched(t), p, x.expression)
			if engine.ClassOf(err) != x.class || !strings.Contains(err.Error(), x.say) &&
				(x.or == "" || !strings.Contains(err.Error(), x.or)) || !oneLine(err) {
				t.Errorf("class %s of %v, want %s: %s", engine.ClassOf(err), err, x.class, x.say)
			}
			if after := p.Settle(watched(t)); engine.ClassOf(after) != x.class {
				t.Errorf("afterwards: %v", after)
			}
			for _, w := range probe.Warnings() {
				t.Errorf("warning: %+v", w)
			}
		})
	}
}

func TestClockDriftWarning(t *testing.T) {
	c := pageClock{offset: int64(5 * time.Second)}
	for by, want := range map[time.Duration]bool{0: false, 90 * time.Millisecond: false, 150 * time.Millisecond: true,
		-150 * time.Millisecond: true} {
		p := &enginetest.Probe{}
		c.drifted(p, record.Clock{Isolate: "page", OffsetNS: c.offset + int64(by), ErrorNS: int64(time.Millisecond)})
		if w := p.Warned("clock-drift"); (len(w) == 1) != want || want && !strings.Contains(w[0], "150ms") {
			t.Errorf("moved by %v: %q", by, w)
		}
	}
	// Within the second measurement's error.
	p := &enginetest.Probe{}
	c.drifted(p, record.Clock{OffsetNS: c.offset + int64(time.Second), ErrorNS: int64(time.Second)})
	if w := p.Warnings(); len(w) > 0 {
		t.Errorf("%+v", w)
	}
}

func TestNoAdapterIsAFault(t *testing.T) {
	p, _ := blank(t)
	_, err := Call[any](watched(t), p, `Object.defineProperty(navigator, "gpu", { value: undefined })`)
	check.Err(t, err)
	if _, err := p.Device(watched(t)); fault.Of(err) != fault.NoAdapter {
		t.Errorf("error %v, want NoAdapter", err)
	}
}

func TestClassify(t *testing.T) {
	p := &Page{site: Site{Classify: func(text string) record.Class {
		return map[string]record.Class{"Error: the engine's own": record.BadOutput}[text]
	}}}
	for text, want := range map[string]record.Class{
		"Error: the engine's own":                                                            record.BadOutput,
		"RangeError: Array buffer allocation failed":                                         record.OOM,
		"RangeError: WebAssembly.Memory(): could not allocate memory":                        record.OOM,
		"GPUOutOfMemoryError":                                                                record.OOM,
		"DeviceLostError: The WebGPU device was lost while loading the model.":               record.DeviceLost,
		"TypeError: Failed to fetch":                                                         record.Download,
		"RuntimeError: unreachable":                                                          record.Crash,
		"RuntimeError: memory access out of bounds":                                          record.Crash,
		"Error: Cannot find function create_tir_paged_kv_cache":                              record.Other,
		"ContextWindowSizeExceededError: Prompt tokens exceed context window size":           record.Other,
		"CompileError: WebAssembly.instantiate(): expected magic word 00 61 73 6d, found 74": record.Other,
	} {
		if got := p.classify(text); got != want {
			t.Errorf("%s: class %s, want %s", text, got, want)
		}
	}
}
