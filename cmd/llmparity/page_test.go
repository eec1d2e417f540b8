package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"llmparity/browser/find"
	"llmparity/browser/store"
	"llmparity/internal/host/child"
)

// hand is a person at a browser, which is as it comes but for a software adapter.
type hand struct {
	testing.TB
	ctx context.Context
}

// newHand starts a browser.
func newHand(t testing.TB, more ...chromedp.ExecAllocatorOption) hand {
	t.Helper()
	path, err := find.Chrome("")
	check(t, err)
	home := shortDir(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.UserDataDir(filepath.Join(home, "profile")), chromedp.Flag("headless", "new"),
		chromedp.Flag("enable-unsafe-webgpu", true), chromedp.Flag("use-webgpu-adapter", "swiftshader"),
		chromedp.Env("HOME="+home, "TMPDIR="+home), chromedp.ModifyCmdFunc(child.Own))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute) // a watchdog
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(options, more...)...)
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) })
	check(t, chromedp.Do(ctx))
	check(t, chromedp.Listen(ctx, func(event any) { // on another goroutine, also when the test has ended
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			fmt.Fprintln(os.Stderr, "the page throws:", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
		case *log.EventEntryAdded:
			fmt.Fprintln(os.Stderr, "the page's log:", e.Entry.Text, e.Entry.URL)
		}
	}))
	return hand{t, ctx}
}

// opens opens a page and waits until it is ready.
func (h hand) opens(address string) {
	h.Helper()
	check(h, chromedp.Do(h.ctx, chromedp.Navigate(address)))
	h.reads("#status", "Ready.")
}

// sees returns what an expression becomes.
func sees[T any](h hand, expression string) T {
	h.Helper()
	v, err := chromedp.Run(h.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		h.Fatalf("%v: %.200s", err, expression)
	}
	return v
}

// text is what an element says.
func (h hand) text(element string) string {
	h.Helper()
	return sees[string](h, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", element))
}

// reads waits until an element says something, and returns all of it.
func (h hand) reads(element, want string) string {
	h.Helper()
	is := ""
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(20 * time.Millisecond) { // a watchdog
		if is = h.text(element); strings.Contains(is, want) {
			return is
		}
	}
	h.Fatalf("%s says %q, want %q; the status is %q, the notes %q", element, is, want, h.text("#status"), h.text("#notes"))
	return ""
}

// types types a value into a field.
func (h hand) types(field, value string) {
	h.Helper()
	sees[bool](h, fmt.Sprintf("(() => { const e = document.querySelector(%q); e.focus(); e.select(); return true; })()", field))
	check(h, chromedp.Do(h.ctx, chromedp.KeyEvent(value)))
}

// chooses chooses an option.
func (h hand) chooses(field, value string) {
	h.Helper()
	if !sees[bool](h, fmt.Sprintf("(() => { const e = document.querySelector(%q); e.value = %q; return e.value === %[2]q; })()",
		field, value)) {
		h.Fatalf("%s has no %q", field, value)
	}
}

// stored is how many bytes pages have stored in the browser.
func (h hand) stored() int64 {
	h.Helper()
	return store.Folders{"WebStorage", "File System", "IndexedDB"}.Size(filepath.Join(h.profile(), "Default"))
}

// profile is the browser's folder.
func (h hand) profile() string {
	h.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", chromedp.FromContext(h.ctx).Browser.Process().Pid))
	check(h, err)
	_, rest, ok := strings.Cut(string(line), "--user-data-dir=")
	if !ok {
		h.Fatalf("the browser has no profile: %q", line)
	}
	profile, _, _ := strings.Cut(rest, "\x00")
	return profile
}

func (h hand) clicks(element string) {
	h.Helper()
	sees[bool](h, fmt.Sprintf("document.querySelector(%q).scrollIntoView({ block: 'center' }), true", element))
	check(h, chromedp.Do(h.ctx, chromedp.Click(element)))
}

// stops clicks Stop, and returns how long it took until the page said that it has stopped.
func (h hand) stops() (took time.Duration, said string) {
	h.Helper()
	ms := sees[float64](h, `new Promise((done) => {
		const status = document.getElementById("status"), begin = performance.now();
		new MutationObserver(() => status.textContent.startsWith("Stopped") && done(performance.now() - begin)).observe(status, { childList: true });
		document.getElementById("stop").click();
	})`)
	return time.Duration(ms * float64(time.Millisecond)), h.text("#status")
}

// pageServed runs `llmparity page`, and returns it and its address.
func pageServed(t testing.TB, args ...string) (cmd *exec.Cmd, address string) {
	t.Helper()
	cmd = program(t, append([]string{"page"}, args...)...)
	out := &printed{address: make(chan string, 1)}
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	check(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			check(t, cmd.Process.Signal(syscall.SIGINT))
			if err := cmd.Wait(); err != nil {
				t.Errorf("page ends with %v", err)
			}
		}
	})
	select {
	case address = <-out.address:
	case <-time.After(patience):
		t.Fatal("page prints no address")
	}
	return cmd, address
}

// printed is what `llmparity page` prints, with its address.
type printed struct {
	mu      sync.Mutex
	text    strings.Builder
	address chan string
}

func (p *printed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Write(text)
	if m := pageAddress.FindString(p.text.String()); m != "" {
		select {
		case p.address <- m:
		default: // it is known
		}
	}
	return len(text), nil
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// patience is a watchdog.
var patience = time.Minute

var pageAddress = regexp.MustCompile(`https?://\S+/[A-Z2-7]{26}/`)

// A person measures, saves the run, measures again and stops. What was saved opens like any run.
func TestPageByHand(t *testing.T) {
	browserTest(t)
	cmd, address := pageServed(t)
	h := newHand(t)
	h.opens(address)
	h.types("#launches", "1")
	h.types("#maxTokens", "8")
	h.clicks("#start")
	h.reads("#status", "Done.")
	if text := h.text("#text"); !strings.Contains(text, " ") {
		t.Errorf("the text is %q", text)
	}
	mentions(t, h.text("#runs"), "1. WebLLM", "8 tokens", "Chrome/")
	mentions(t, sees[string](h, "[...document.querySelectorAll('#runs td')].map((td) => td.dataset.head).join()"),
		"Decode, tok/s", "Peak memory, MiB", "Weights, MiB")
	exported := func(n int) string {
		return sees[string](h, fmt.Sprintf("fetch(document.querySelectorAll('#runs a')[%d].href).then((r) => r.text())", n))
	}
	if text := exported(0); !strings.HasPrefix(text, "timestamp,label,pid,rss_mb,vms_mb,") {
		t.Errorf("the CSV begins with %.200s", text)
	} else {
		mentions(t, text, "heap_used_mb", ",page,", ",renderer,", ",gpu-process,", ",measure,")
	}
	decoded[map[string]any](t, exported(1))
	h.clicks("#runs button")
	h.reads("#status", "is saved in")
	dirs, err := filepath.Glob(filepath.Join(cmd.Dir, "results", "*", "run.json"))
	check(t, err)
	if len(dirs) != 1 {
		t.Fatalf("saved: %v", dirs)
	}
	dir := filepath.Dir(dirs[0])
	mentions(t, good(t, "report", dir, "--details"), "by hand, in this browser")
	good(t, "compare", dir, dir)
	good(t, "gate", dir, "--max", "peak_pss_mb=9000")

	if left := h.stored(); left > 1<<20 {
		t.Errorf("%d bytes are left in the browser", left)
	}

	h.types("#maxTokens", "400")
	h.clicks("#start")
	h.reads("#phase", "generate")
	if _, said := h.stops(); said != "Stopped. WebGPU memory: 0.0 MiB." {
		t.Errorf("Stop: %q", said)
	}
	h.reads("#runs", "stopped by hand")
}
