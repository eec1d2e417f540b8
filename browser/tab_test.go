package browser

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

func TestProcessesAreMapped(t *testing.T) {
	s := loaded(t)
	roles, err := s.tab.roles(watched(t))
	if err != nil {
		t.Fatal(err)
	}
	count, group := map[string]int{}, child.Group(s.tab.chrome.pid)
	for pid, role := range roles {
		count[role]++
		if !slices.Contains(group, pid) {
			t.Errorf("the %s, process %d, is not in the group that Close kills", role, pid)
		}
	}
	for _, role := range []string{"browser", "renderer", "gpu-process"} {
		if count[role] != 1 {
			t.Errorf("%d processes are called %s: %v", count[role], role, roles)
		}
	}
	if n := count["other-renderer"]; n != 0 {
		t.Errorf("%d renderers beside the page's", n)
	}
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(int(s.tab.processes.renderer.Load())), "cmdline"))
	if err != nil || !strings.Contains(string(line), "--type=renderer") {
		t.Errorf("the page's process is %q (%v)", line, err)
	}
}

func TestEveryProcessIsSampledOnce(t *testing.T) {
	loaded(t)
	seen := map[string]bool{}
	for _, source := range shared.probe.Attached() {
		d := source.Describe()
		key := strconv.Itoa(d.PID) + d.Method
		if seen[key] {
			t.Errorf("the %s is read by %s twice", d.Role, d.Method)
		}
		seen[key] = true
	}
}

// processesOf gives the processes of a role that were sampled.
func processesOf(probe *enginetest.Probe, role string) (pids []int) {
	for _, source := range probe.Attached() {
		if d := source.Describe(); d.Role == role && !slices.Contains(pids, d.PID) {
			pids = append(pids, d.PID)
		}
	}
	return pids
}

func TestProcessesBornDuringALoadAndGenerationsAreSampled(t *testing.T) {
	c, m := tinyModel(t)
	s, probe := fresh(t, c)
	old := processesOf(probe, "gpu-process")
	if len(old) != 1 {
		t.Fatalf("GPU processes before the load: %v", old)
	}
	// Asked for in the middle of the load, which goes on once the browser has another GPU process.
	s.webllm.config.Package = func(ctx context.Context, _ engine.Model, _ Target, _ func(string)) (Package, error) {
		if err := syscall.Kill(old[0], syscall.SIGKILL); err != nil {
			return Package{}, err
		}
		for deadline := time.Now().Add(20 * time.Second); len(processesOf(probe, "gpu-process")) < 2; time.Sleep(
			10 * time.Millisecond) {
			if time.Now().After(deadline) {
				return Package{}, errors.New("no new GPU process is sampled")
			}
		}
		return files.pack, nil
	}
	if err := s.Load(watched(t), m); err != nil {
		t.Fatal(err)
	}

	old = processesOf(probe, "utility-network")
	if len(old) != 1 {
		t.Fatalf("network services: %v", old)
	}
	if err := syscall.Kill(old[0], syscall.SIGKILL); err != nil { // the browser starts another one
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); len(processesOf(probe, "utility-network")) < 2; {
		if time.Now().After(deadline) {
			t.Fatal("no new network service is sampled")
		}
		r := engine.Request{Prompt: "How long does it take?", MaxTokens: 8, IgnoreEOS: true}
		if _, err := s.Generate(watched(t), r, func(record.Token) {}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClocksThatMoveApartAreWarnedOf(t *testing.T) {
	c := pageClock{offset: int64(5 * time.Second)}
	for by, want := range map[time.Duration]bool{0: false, 90 * time.Millisecond: false, 150 * time.Millisecond: true,
		-150 * time.Millisecond: true} {
		w, ok := c.drifted(record.Clock{Isolate: "page", OffsetNS: c.offset + int64(by),
			ErrorNS: int64(time.Millisecond)})
		if ok != want || ok && (w.Code != "clock-drift" || !strings.Contains(w.Text, "150ms")) {
			t.Errorf("moved by %v: %v, %+v", by, ok, w)
		}
	}
	// As far as the second measurement can tell, they may have stayed together.
	if w, ok := c.drifted(record.Clock{OffsetNS: c.offset + int64(time.Second), ErrorNS: int64(time.Second)}); ok {
		t.Errorf("%+v", w)
	}
}

func TestPageClockIsOurs(t *testing.T) {
	s := loaded(t)
	var bound time.Duration
	for _, e := range shared.probe.Events() {
		if e.Clock != nil {
			bound = time.Duration(e.Clock.ErrorNS)
		}
	}
	begin := time.Now()
	ms, err := call[float64](watched(t), s.tab, "llmparity.now()")
	end := time.Now()
	if err != nil {
		t.Fatal(err)
	}
	if at := s.tab.clock.at(ms); at.Before(begin.Add(-bound)) || at.After(end.Add(bound)) {
		t.Errorf("the page's clock says %v, outside [%v, %v] by more than its error of %v", at, begin, end, bound)
	}
}

func TestPageIsIsolated(t *testing.T) {
	s := loaded(t)
	for _, what := range []string{"crossOriginIsolated", "performance.memory.usedJSHeapSize > 0"} {
		if ok, err := call[bool](watched(t), s.tab, what); err != nil || !ok {
			t.Errorf("%s: %v, %v", what, ok, err)
		}
	}
}

func TestWhatThePageThrowsIsOneLine(t *testing.T) {
	s := loaded(t)
	for expression, want := range map[string]string{
		`Promise.reject(new TypeError("no\n such thing"))`: "in the page: TypeError: no such thing",
		`Promise.reject("a bare string")`:                  "in the page: a bare string",
	} {
		if _, err := call[any](watched(t), s.tab, expression); err == nil || err.Error() != want {
			t.Errorf("%s: error %q, want %q", expression, err, want)
		}
	}
}

func TestNoAdapterIsAFault(t *testing.T) {
	p, _ := blank(t)
	if _, err := call[any](watched(t), p, `Object.defineProperty(navigator, "gpu", { value: undefined })`); err != nil {
		t.Fatal(err)
	}
	if _, err := p.device(watched(t), Auto); fault.Of(err) != fault.NoAdapter {
		t.Errorf("error %v, want NoAdapter", err)
	}
}

func TestWhatIsNoWebLLMIsRefused(t *testing.T) {
	c, _ := tinyModel(t)
	dir := t.TempDir()
	for text, want := range map[string]string{
		"export const MLCEngine": "can't be imported",
		"export class Engine {}": "no class MLCEngine",
		// the page talks to nobody else
		"import 'https://example.com/other.js'; export class MLCEngine {}": "can't be imported",
	} {
		c.Bundle = Bundle{Path: filepath.Join(dir, "bundle.js"), Version: "0.0.1"}
		if err := os.WriteFile(c.Bundle.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := New(c).Open(watched(t), &enginetest.Probe{})
		if err == nil {
			s.Close()
		}
		if fault.Of(err) != fault.NoBundle || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "WebLLM 0.0.1") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want a line with %q", text, err, want)
		}
	}
	c.Bundle.Path = filepath.Join(dir, "missing.js")
	if _, err := New(c).Open(watched(t), &enginetest.Probe{}); fault.Of(err) != fault.NoBundle ||
		!strings.Contains(err.Error(), "missing.js") {
		t.Errorf("error %v, want one that names missing.js", err)
	}
}

func TestRendererIn(t *testing.T) {
	const event = `{"name":"TracingStartedInBrowser","args":{"data":{"frames":[
		{"url":"http://other/","processId":1},{"url":"http://127.0.0.1:1/token/","processId":42}]}}}`
	if got := rendererIn([]byte(event), "http://127.0.0.1:1/token"); got != 42 {
		t.Errorf("process %d, want 42", got)
	}
	for _, other := range []string{`{"name":"Layout"}`, `{`, strings.Replace(event, "token", "elsewhere", 1)} {
		if got := rendererIn([]byte(other), "http://127.0.0.1:1/token"); got != 0 {
			t.Errorf("%s: process %d, want none", other, got)
		}
	}
}

func TestUnclassedPageErrorsKeepTheirClassInAFailure(t *testing.T) {
	s := loaded(t)
	_, err := call[any](watched(t), s.tab, `Promise.reject(new RangeError("Array buffer allocation failed"))`)
	if engine.ClassOf(err) != record.OOM {
		t.Errorf("class %s of %v, want %s", engine.ClassOf(err), err, record.OOM)
	}
}
