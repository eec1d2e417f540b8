package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// running is a browser that is none of ours: started by hand, as a user does.
func running(t *testing.T, flags ...string) (address string, p *child.Process) {
	t.Helper()
	path, err := FindChrome("")
	if err != nil {
		t.Fatal(err)
	}
	dir := shortDir(t)
	args := append([]string{"--headless=new", "--remote-debugging-port=0", "--user-data-dir=" + dir,
		"--enable-unsafe-webgpu",
		"--use-webgpu-adapter=swiftshader"}, flags...)
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	cmd := exec.Command(path, append(args, "about:blank")...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir) // it is killed, and removes nothing
	if p, err = child.Start(context.Background(), cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		for deadline := time.Now().Add(10 * time.Second); len(child.Group(p.PID())) > 0 &&
			time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
		}
	})
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort")); err == nil {
			if port, _, ok := strings.Cut(string(text), "\n"); ok {
				return "127.0.0.1:" + port, p
			}
		}
	}
	t.Fatal("the browser does not tell its port")
	return "", nil
}

// shortDir is a folder that is removed, with a path that leaves room for the name of a socket: a test's own has the
// test's name in it.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// pages lists the tabs of a browser by their addresses, the page's own path cut off.
func pages(t *testing.T, address string) (list []string) {
	t.Helper()
	r, err := http.Get("http://" + address + "/json/list")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var all []struct{ Type, URL string }
	if err := json.NewDecoder(r.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Type == "page" {
			list = append(list, p.URL)
		}
	}
	return list
}

// forward is a port of this machine that leads to another one, as ssh -L makes.
func forward(t *testing.T, to string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

func attached(t *testing.T, address string) (*session, *enginetest.Probe) {
	t.Helper()
	c, _ := tinyModel(t)
	c.Launch.Attach = address
	return fresh(t, c)
}

func codes(warnings []record.Warning) (list []string) {
	for _, w := range warnings {
		list = append(list, w.Code)
	}
	return list
}

func TestAttachedBrowserIsMeasuredAndLeftAsItWas(t *testing.T) {
	address, chrome := running(t)
	before := pages(t, address)
	_, port, _ := net.SplitHostPort(address)
	s, probe := attached(t, "localhost:"+port)
	roles := map[string]int{}
	for _, source := range probe.Attached() {
		d := source.Describe()
		if d.Method == record.MethodSmapsRollup {
			roles[d.Role]++
			// The kernel has one such figure a process, and this process is somebody else's.
			if !strings.Contains(d.Sees, "since the process started") {
				t.Errorf("the peak of the %s is reset: it sees %s", d.Role, d.Sees)
			}
		}
	}
	if roles["renderer"] != 1 || roles["browser"] != 1 || roles["gpu-process"] != 1 ||
		s.tab.chrome.pid != chrome.PID() {
		t.Errorf("sampled: %v of browser %d, want that of process %d", roles, s.tab.chrome.pid, chrome.PID())
	}
	if got := codes(probe.Warnings()); !slices.Contains(got, "attached") || !slices.Contains(got, "attached-flags") {
		t.Errorf("warnings %v, want what a browser that ran already lacks", got)
	}
	for _, e := range probe.Events() {
		if e.Engine != nil && (e.Engine.Policy["isolation"] != "tab" ||
			!slices.Contains(e.Engine.Args, "--remote-debugging-port=0")) {
			t.Errorf("the record has %+v", *e.Engine)
		}
		if e.Device != nil && !strings.Contains(e.Device.Name, "swiftshader") {
			t.Errorf("device %+v", *e.Device)
		}
	}
	if during := pages(t, address); len(during) != len(before)+1 {
		t.Errorf("tabs while attached: %v, before: %v", during, before)
	}
	crashAnother(t, s.tab)
	if _, err := call[int](watched(t), s.tab, "1"); err != nil || s.tab.lost() != nil {
		t.Errorf("after another tab's crash: %v, %v", err, s.tab.lost())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if after := pages(t, address); !slices.Equal(after, before) {
		t.Errorf("tabs %v, before: %v", after, before)
	}

	// By a forwarded port it could be anywhere: then nobody's processes are taken for its own.
	if got := s.webllm.Caps().Isolation; got != record.OfTab {
		t.Errorf("a repetition has a %s of its own", got)
	}
	far, probe := attached(t, forward(t, address))
	for _, source := range probe.Attached() {
		if d := source.Describe(); d.Method == record.MethodStatm || d.Method == record.MethodSmapsRollup {
			t.Errorf("process %d is sampled as %s", d.PID, d.Role)
		}
	}
	if far.tab.chrome.memoryKills != -1 {
		t.Errorf("the %d kills of this kernel's count for a browser of another machine", far.tab.chrome.memoryKills)
	}
	if got := codes(probe.Warnings()); !slices.Contains(got, "attached-elsewhere") {
		t.Errorf("warnings %v, want that OS memory is absent", got)
	}

	// A tab that its owner closes is a loss that is noticed at once.
	r, err := http.Get("http://" + address + "/json/close/" +
		string(chromedp.FromContext(far.tab.chrome.ctx).Target.TargetID))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	select {
	case <-far.tab.chrome.ctx.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("a closed tab is not noticed")
	}
	if class := engine.ClassOf(far.tab.lost()); class != record.Crash {
		t.Errorf("lost as %s: %v", class, far.tab.lost())
	}
}

// crashAnother opens another tab in the browser, lets it crash and closes it.
func crashAnother(t *testing.T, p *tab) {
	t.Helper()
	ended := make(chan struct{}, 2)
	ctx, cancel := chromedp.NewContext(p.chrome.ctx, chromedp.WithListener(func(ev any) {
		if _, ok := ev.(*target.EventTargetCrashed); ok {
			ended <- struct{}{}
		}
	}))
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	go func() { _ = chromedp.Do(ctx, chromedp.Navigate("chrome://crash")) }() // fails with the tab
	select {
	case <-ended:
	case <-p.chrome.ctx.Done(): // it is taken for p's
	case <-watched(t).Done():
		t.Fatal("nobody tells of the crash")
	}
}

// A launch in a browser that ran already is lost with its renderer; the next one has a tab of its own, and the browser
// goes on.
func TestARunInAnAttachedBrowserOutlivesItsRenderer(t *testing.T) {
	address, chrome := running(t)
	before := pages(t, address)
	attach := func(c *Config) { c.Launch.Attach = address }
	list := []trouble{
		{name: "renderer killed", class: record.Crash, say: "renderer process ended (killed)", token: kill("renderer"),
			config: attach},
		{name: "nothing", config: attach},
	}
	r, err := provoke(t, list, time.Minute)
	if engine.ClassOf(err) != record.Crash {
		t.Errorf("the run says %v, want the crash", err)
	}
	if len(r.Attempts) != len(list) {
		t.Fatalf("%d launches, want %d", len(r.Attempts), len(list))
	}
	for i, x := range list {
		x.check(t, r.Attempts[i])
	}
	if after := pages(t, address); !slices.Equal(after, before) {
		t.Errorf("tabs %v, before: %v", after, before)
	}
	if !slices.Contains(child.Group(chrome.PID()), chrome.PID()) {
		t.Error("the browser has ended")
	}
}

func TestAttachedBrowserCannotReachPage(t *testing.T) {
	address, _ := running(t, "--proxy-server=127.0.0.1:9", "--proxy-bypass-list=<-loopback>")
	c, _ := tinyModel(t)
	c.Launch.Attach = address
	_, err := New(c).Open(watched(t), &enginetest.Probe{})
	if fault.Of(err) != fault.NoChrome ||
		!strings.Contains(err.Error(), "run llmparity where the browser runs") {
		t.Errorf("error %v, want that the page is out of reach", err)
	}
	if left := pages(t, address); len(left) != 1 {
		t.Errorf("tabs left: %v", left)
	}
}

func TestNoBrowserAtAnAddressIsOneLine(t *testing.T) {
	something := httptest.NewServer(http.NotFoundHandler())
	defer something.Close()
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }))
	defer empty.Close()
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	host := func(s *httptest.Server) string {
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		return u.Host
	}
	for _, address := range []string{host(something), host(empty), nobody.Addr().String(),
		"ws://" + host(empty) + "/devtools/browser/none"} {
		_, err := launch(watched(t), "", Config{Launch: Launch{Attach: address}}, func(any) {})
		if fault.Of(err) != fault.NoChrome || !strings.Contains(err.Error(), "--remote-debugging-port") ||
			!strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v, want NoChrome and how to start one", address, err)
		}
	}
	for _, address := range []string{"", "9222", "host", "https://host:1", "ftp://host:1", "host:port:1"} {
		if _, err := parseAddress(address); fault.Of(err) != fault.Usage {
			t.Errorf("%q: %v, want a usage error", address, err)
		}
	}
}
