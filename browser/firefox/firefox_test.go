package firefox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/browser"
	"llmparity/browser/find"
	"llmparity/browser/serve"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

func TestMain(m *testing.M) {
	if os.Getenv(pause) != "" {
		c := browser.Config{Chrome: "firefox"}
		if _, err := browser.Open(context.Background(), c, stubSite, &enginetest.Probe{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("open")
		select {}
	}
	childtest.Browsers(m, func() error { return nil })
}

// stub is a minimal engine script.
const stub = `
import { host } from "../host.js";
let stopped;
export async function generate({ tokens }) {
	stopped = false;
	for (let i = 0; i < tokens && !stopped; i++) {
		host.token(i);
		await host.turn();
	}
	return { text: "said" };
}
export const interrupt = () => { stopped = true; };
`

// stubSite is the page with the stub as its engine.
var stubSite = browser.Site{Title: "the stub", Imports: "nothing", Do: "mend it", Handler: http.HandlerFunc(
	func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/engine/engine.js" {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, stub)
			return
		}
		serve.Files(nil).ServeHTTP(w, r)
	})}

// watched returns a context with a watchdog.
func watched(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// fresh opens the stub in a new browser.
func fresh(t *testing.T, c browser.Config) (*browser.Page, *enginetest.Probe) {
	t.Helper()
	if _, err := find.Chrome("firefox"); err != nil {
		t.Skip("no Firefox here: scripts/setup firefox")
	}
	probe := &enginetest.Probe{}
	c.Chrome = "firefox"
	p, err := browser.Open(watched(t), c, stubSite, probe)
	check.Err(t, err)
	t.Cleanup(func() { check.Also(t, p.Close()) })
	check.Err(t, p.Measure(watched(t), probe))
	return p, probe
}

// A page in Firefox, with the engine on either thread: clock, what the page throws, tokens, processes, adapter.
func TestPage(t *testing.T) {
	for _, thread := range []browser.Thread{browser.PageThread, browser.WorkerThread} {
		t.Run(string(thread), func(t *testing.T) {
			said := browser.Launch{Flags: []string{"llmparity.said=yes"}}
			p, probe := fresh(t, browser.Config{Thread: thread, Launch: said})
			if ok, err := browser.Call[bool](watched(t), p, "crossOriginIsolated"); err != nil || !ok {
				t.Errorf("isolated: %v, %v", ok, err)
			}
			for expression, want := range map[string]string{
				`Promise.reject(new TypeError("no\n such thing"))`: "in the page: TypeError: no such thing",
				`Promise.reject("a bare string")`:                  "in the page: a bare string",
			} {
				if _, err := browser.Call[any](watched(t), p, expression); err == nil || err.Error() != want {
					t.Errorf("%s: error %q, want %q", expression, err, want)
				}
			}
			full := `Promise.reject("out of memory")` // Firefox throws this text
			if _, err := browser.Call[any](watched(t), p, full); engine.ClassOf(err) != record.OOM {
				t.Errorf("%s: class %s of %v", full, engine.ClassOf(err), err)
			}
			speaks(t, p)
			clockIsOurs(t, p, probe)
			processesAreNamed(t, p, probe)
			described(t, p)
			check.Also(t, p.Unloaded(watched(t), probe))
			for _, w := range probe.Warnings() {
				t.Errorf("warning: %+v", w)
			}
		})
	}
}

// speaks generates tokens, and cancels a call that would take for ever.
func speaks(t *testing.T, p *browser.Page) {
	t.Helper()
	ask := func(ctx context.Context, tokens int, cancel func()) (ids []float64, err error) {
		_, err = browser.Long[any](ctx, p, "llmparity.interrupt()", "llmparity.generate",
			map[string]any{"tokens": tokens}, func(told browser.Told) {
				for i := 0; i < len(told.Tokens); i += 2 {
					ids = append(ids, told.Tokens[i])
				}
				if len(ids) > 20 {
					cancel()
				}
			})
		return ids, err
	}
	if ids, err := ask(watched(t), 4, func() {}); err != nil || !slices.Equal(ids, []float64{0, 1, 2, 3}) {
		t.Errorf("tokens %v, %v", ids, err)
	}
	ctx, cancel := context.WithCancel(watched(t))
	if ids, err := ask(ctx, 1<<30, cancel); !errors.Is(err, context.Canceled) || len(ids) < 20 {
		t.Errorf("cancelled after %d tokens: %v", len(ids), err)
	}
	check.Also(t, p.Settle(watched(t)))
	if ids, err := ask(watched(t), 2, func() {}); err != nil || len(ids) != 2 {
		t.Errorf("afterwards: tokens %v, %v", ids, err)
	}
}

func clockIsOurs(t *testing.T, p *browser.Page, probe *enginetest.Probe) {
	t.Helper()
	var bound time.Duration
	for _, e := range probe.Events() {
		if e.Clock != nil {
			bound = time.Duration(e.Clock.ErrorNS)
		}
	}
	begin := time.Now()
	ms, err := browser.Call[float64](watched(t), p, "llmparity.now()")
	end := time.Now()
	check.Err(t, err)
	if at := p.At(ms); bound == 0 || at.Before(begin.Add(-bound)) || at.After(end.Add(bound)) {
		t.Errorf("the page's clock is at %v, outside [%v, %v] by more than its error of %v", at, begin, end, bound)
	}
}

// processesAreNamed checks roles, and that each process is read, by the kernel, but nothing inside the page.
func processesAreNamed(t *testing.T, p *browser.Page, probe *enginetest.Probe) {
	t.Helper()
	roles, err := p.Roles(watched(t))
	check.Err(t, err)
	count := map[string]int{}
	for _, role := range roles {
		count[role]++
	}
	if count["browser"] != 1 || count["renderer"] != 1 || count["browser-helper"] > 0 {
		t.Errorf("processes: %v", roles)
	}
	read := map[int]bool{}
	for _, source := range probe.Attached() {
		switch d := source.Describe(); d.Method {
		case record.MethodSmapsRollup:
			read[d.PID] = true
			var sum record.Sample
			if err := source.Read(watched(t), &sum); err != nil || sum.PSS == 0 {
				t.Errorf("the %s has no memory (%v)", d.Role, err)
			}
			t.Logf("%-20s PSS %4d MiB", d.Role, sum.PSS>>20)
		case browser.MethodHeap, browser.MethodPerformance, browser.MethodUserAgent:
			t.Errorf("Firefox reports no %s", d.Method)
		}
	}
	for pid, role := range roles {
		if !read[pid] {
			t.Errorf("process %d, the %s, is not read", pid, role)
		}
	}
}

// described checks what is recorded of the browser and its adapter.
func described(t *testing.T, p *browser.Page) {
	t.Helper()
	info := p.Info()
	if !strings.HasPrefix(info.Parts["browser"], "Firefox/") ||
		!strings.Contains(info.Parts["user_agent"], "Firefox/") ||
		!slices.Contains(info.Args, `user_pref("llmparity.said", "yes");`) {
		t.Errorf("recorded: %+v", info)
	}
	if !browser.Auto.Software() {
		return
	}
	d, err := p.Device(watched(t))
	if fault.Of(err) == fault.NoAdapter {
		t.Skip("no lavapipe here")
	}
	check.Err(t, err)
	t.Log(d)
	if d.Class != record.SoftwareAdapter || d.Detail["architecture"] != string(browser.Lavapipe) ||
		!strings.HasPrefix(d.Name, "mesa lavapipe llvmpipe") || d.Detail["backend"] == "" {
		t.Errorf("adapter: %+v", d)
	}
}

// Whatever happens to the engine's thread or Firefox, the loss of the page has a class.
func TestLostPageHasAClass(t *testing.T) {
	for _, x := range []struct {
		name       string
		thread     browser.Thread
		expression string // to evaluate, or the role of processes to kill
		class      record.Class
		say        string
	}{
		{"page hung", browser.PageThread, "(() => { for (;;); })()", record.Hung, "the page hangs"},
		{"worker hung", browser.WorkerThread, "(() => { for (;;); })()", record.Hung, "the worker hangs"},
		{"tab killed", browser.PageThread, "renderer", record.Crash, "content process ended"},
		{"browser killed", browser.PageThread, "browser", record.Crash, "browser ended unexpectedly"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := browser.Config{Thread: x.thread, Watchdog: 2 * time.Second}
			if x.class == record.Crash {
				c.Watchdog = 5 * time.Minute
			}
			p, _ := fresh(t, c)
			defer p.Guard()()
			if x.class == record.Crash {
				roles, err := p.Roles(watched(t))
				check.Err(t, err)
				for pid, role := range roles {
					if role == x.expression {
						check.Also(t, check.Kill(pid))
					}
				}
				x.expression = "new Promise(() => {})"
			}
			_, err := browser.Call[any](watched(t), p, x.expression)
			enginetest.OneLine(t, err, fault.Run, x.class, x.say)
			if after := p.Settle(watched(t)); engine.ClassOf(after) != x.class {
				t.Errorf("afterwards: %v", after)
			}
		})
	}
}

// Firefox that does not start is quoted, and a preference that measuring needs is refused.
func TestBadInput(t *testing.T) {
	path := check.Script(t, "echo cannot open display >&2; exit 1", t.TempDir(), "firefox")
	_, err := browser.Open(watched(t), browser.Config{Chrome: path}, stubSite, &enginetest.Probe{})
	enginetest.OneLine(t, err, fault.NoChrome, record.Start, "cannot open display")
	for _, flag := range []string{"dom.webgpu.enabled=false", "disable-gpu", "a b.c=1"} {
		s := browser.Settings{Chrome: "/opt/firefox/firefox", Launch: browser.Launch{Flags: []string{flag}}}
		enginetest.OneLine(t, s.Check(), fault.Usage, record.Other, "--chrome-flag")
	}
	s := browser.Settings{Chrome: path, Adapter: string(browser.SwiftShader)}
	enginetest.OneLine(t, s.Check(), fault.NotSupported, record.Other, "lavapipe")
	s = browser.Settings{Chrome: path, Launch: browser.Launch{Attach: "127.0.0.1:9222"}}
	enginetest.OneLine(t, s.Check(), fault.Usage, record.Other, "--attach")
}

// pause makes this program open Firefox and wait to be killed.
const pause = "LLMPARITY_TEST_FIREFOX_PAUSE"

// A Firefox ends with us, even if we are killed, and the next start removes its profile.
func TestNothingOutlivesUs(t *testing.T) {
	program, err := os.Executable()
	check.Err(t, err)
	cmd := exec.Command(program, "-test.run", "^$")
	cmd.Env = append(os.Environ(), pause+"=1")
	out, err := cmd.StdoutPipe()
	check.Err(t, err)
	check.Err(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	check.Err(t, err)
	pids := child.Tagged(cmd.Process.Pid)
	if len(pids) < 3 || len(child.Scratches(cmd.Process.Pid)) != 1 {
		t.Errorf("%s started %v", line, pids)
	}
	check.Err(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	deadline := time.Now().Add(2 * time.Minute)
	for ; len(child.Tagged(cmd.Process.Pid)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("left: %s", child.Describe(child.Tagged(cmd.Process.Pid)))
		}
	}
	child.Sweep()
	if left := child.Scratches(cmd.Process.Pid); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
