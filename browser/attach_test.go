package browser

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"llmparity/browser/find"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// running starts a browser by hand, as a user does.
func running(t *testing.T, flags ...string) (address string, p *child.Process) {
	t.Helper()
	path, err := find.Chrome("")
	check.Err(t, err)
	dir := shortDir(t)
	args := append([]string{"--headless=new", "--remote-debugging-port=0", "--user-data-dir=" + dir,
		"--enable-unsafe-webgpu",
		"--use-webgpu-adapter=swiftshader"}, flags...)
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	cmd := exec.Command(path, append(args, "about:blank")...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir) // killed, it removes nothing
	if p, err = child.Start(context.Background(), cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		for deadline := time.Now().Add(time.Minute); len(child.Group(p.PID())) > 0 &&
			time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
		}
	})
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort")); err == nil {
			if port, _, ok := strings.Cut(string(text), "\n"); ok {
				return "127.0.0.1:" + port, p
			}
		}
	}
	t.Fatal("the browser does not report its port")
	return "", nil
}

// shortDir creates a temporary folder whose path is short enough for a socket; t.TempDir contains the test's name.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "")
	check.Err(t, err)
	t.Cleanup(func() {
		check.Also(t, os.RemoveAll(dir))
	})
	return dir
}

// pages lists a browser's tabs by URL, without the path of this package's page.
func pages(t *testing.T, address string) (list []string) {
	t.Helper()
	r, err := http.Get("http://" + address + "/json/list")
	check.Err(t, err)
	defer r.Body.Close()
	var all []struct{ Type, URL string }
	check.Err(t, json.NewDecoder(r.Body).Decode(&all))
	for _, p := range all {
		if p.Type == "page" {
			list = append(list, p.URL)
		}
	}
	return list
}

// forward opens a local port that leads to another one, as ssh -L does.
func forward(t *testing.T, to string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.Err(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			go func() { io.Copy(far, near); far.Close() }()
			go func() { io.Copy(near, far); near.Close() }()
		}
	}()
	return l.Addr().String()
}

func codes(warnings []record.Warning) (list []string) {
	for _, w := range warnings {
		list = append(list, w.Code)
	}
	return list
}

// A running browser on this machine is measured, and left unchanged whatever happens to our tab.
func TestAttachedBrowserIsLeftUnchanged(t *testing.T) {
	address, chrome := running(t)
	before := pages(t, address)
	_, port, _ := net.SplitHostPort(address)
	here, probe := fresh(t, Config{Launch: Launch{Attach: "localhost:" + port}})
	roles := map[string]int{}
	for _, source := range probe.Attached() {
		d := source.Describe()
		if d.Method == record.MethodSmapsRollup {
			roles[d.Role]++
			// The kernel has one peak per process, and this is another user's process.
			if !strings.Contains(d.Sees, "since the process started") {
				t.Errorf("the peak of the %s is reset: %s", d.Role, d.Sees)
			}
		}
	}
	if roles["renderer"] != 1 || roles["browser"] != 1 || roles["gpu-process"] != 1 ||
		here.tab.Facts().PID != chrome.PID() {
		t.Errorf("sampled: %v of browser %d instead of %d", roles, here.tab.Facts().PID, chrome.PID())
	}
	if got := codes(probe.Warnings()); !slices.Contains(got, "attached") || !slices.Contains(got, "attached-flags") {
		t.Errorf("warnings %v instead of those for a running browser", got)
	}
	if info := here.Info(); info.Policy["isolation"] != record.OfTab ||
		!slices.Contains(info.Args, "--remote-debugging-port=0") {
		t.Errorf("recorded: %+v", info)
	}
	if d, err := here.Device(watched(t)); err != nil || !strings.Contains(d.Name, "SwiftShader") {
		t.Errorf("device %+v, %v", d, err)
	}
	if during := pages(t, address); len(during) != len(before)+1 {
		t.Errorf("tabs while attached: %v, before: %v", during, before)
	}
	crashAnother(t, here)
	if _, err := Call[int](watched(t), here, "1"); err != nil || here.lost() != nil {
		t.Errorf("after a crash of another tab: %v, %v", err, here.lost())
	}
	check.Also(t, here.Close())
	if after := pages(t, address); !slices.Equal(after, before) {
		t.Errorf("tabs %v, before: %v", after, before)
	}

	// Behind a forwarded port it could be anywhere, so no processes are sampled.
	far, probe := fresh(t, Config{Launch: Launch{Attach: forward(t, address)}})
	for _, source := range probe.Attached() {
		if d := source.Describe(); d.Method == record.MethodStatm || d.Method == record.MethodSmapsRollup {
			t.Errorf("process %d is sampled as %s", d.PID, d.Role)
		}
	}
	if on(far).MemoryKills != -1 {
		t.Errorf("%d kills of this kernel count for a browser on another machine", on(far).MemoryKills)
	}
	if got := codes(probe.Warnings()); !slices.Contains(got, "attached-elsewhere") {
		t.Errorf("warnings %v, want that OS memory is absent", got)
	}
	// A tab that the user closes is lost immediately.
	r, err := http.Get("http://" + address + "/json/close/" + string(on(far).ID))
	check.Err(t, err)
	r.Body.Close()
	isLost(t, far, "the page's tab was closed")

	// So is a killed renderer; the browser accepts another tab.
	killed, _ := fresh(t, Config{Launch: Launch{Attach: address}})
	kill(t, killed, "renderer")
	isLost(t, killed, "renderer process ended (killed)")
	check.Also(t, errors.Join(far.Close(), killed.Close()))
	again, _ := fresh(t, Config{Launch: Launch{Attach: address}})
	check.Also(t, errors.Join(again.lost(), again.Close()))
	if after := pages(t, address); !slices.Equal(after, before) {
		t.Errorf("tabs %v, before: %v", after, before)
	}
	if !slices.Contains(child.Group(chrome.PID()), chrome.PID()) {
		t.Error("the browser has ended")
	}
}

// isLost waits for the page to be lost as a crash.
func isLost(t *testing.T, p *Page, say string) {
	t.Helper()
	select {
	case <-p.tab.Context().Done():
	case <-time.After(2 * time.Minute):
		t.Fatalf("not noticed: %s", say)
	}
	if err := p.Settle(watched(t)); engine.ClassOf(err) != record.Crash || !strings.Contains(err.Error(), say) {
		t.Errorf("lost as %s: %v, want a crash: %s", engine.ClassOf(err), err, say)
	}
}

// crashAnother opens another tab in the browser, crashes it and closes it.
func crashAnother(t *testing.T, p *Page) {
	t.Helper()
	ended := make(chan struct{}, 2)
	ctx, cancel := chromedp.NewContext(p.tab.Context(), chromedp.WithListener(func(ev any) {
		if _, ok := ev.(*target.EventTargetCrashed); ok {
			ended <- struct{}{}
		}
	}))
	defer cancel()
	check.Err(t, chromedp.Do(ctx))
	go func() { _ = chromedp.Do(ctx, chromedp.Navigate("chrome://crash")) }() // fails with the tab
	select {
	case <-ended:
	case <-p.tab.Context().Done(): // attributed to p's tab
	case <-watched(t).Done():
		t.Fatal("the crash is not reported")
	}
}

func TestAttachedBrowserCannotReachPage(t *testing.T) {
	address, _ := running(t, "--proxy-server=127.0.0.1:9", "--proxy-bypass-list=<-loopback>")
	_, err := Open(watched(t), Config{Launch: Launch{Attach: address}}, stubSite, &enginetest.Probe{})
	enginetest.OneLine(t, err, fault.NoChrome, record.Other, "run llmparity where the browser runs")
	if left := pages(t, address); len(left) != 1 {
		t.Errorf("tabs left: %v", left)
	}
}
