package browser

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/browser/driver"
	"llmparity/browser/find"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// patiently is enough for a healthy start on a very busy machine.
var patiently = driver.Limits{Answer: 2 * time.Minute, Tab: 2 * time.Minute, Page: 2 * time.Minute}

// hopeful gives a start more time once another one has failed.
type hopeful struct {
	*enginetest.Probe
	limits *driver.Limits
}

func (h hopeful) Warn(w record.Warning) {
	if w.Code == "start-repeated" {
		*h.limits = patiently
	}
	h.Probe.Warn(w)
}

// unwell creates a program that does something else in the first starts, then starts the browser. starts returns the
// PID of each start.
func unwell(t *testing.T, times int, instead string) (path string, starts func() []string) {
	t.Helper()
	chrome, err := find.Chrome("")
	check.Err(t, err)
	dir := t.TempDir()
	script := fmt.Sprintf("echo $$ >>%[1]s/starts\nif [ $(wc -l <%[1]s/starts) -le %[2]d ]; then %[3]s; fi\nexec %[4]s \"$@\"", dir, times, instead, chrome)
	return check.Script(t, script, dir, "chrome"), func() []string {
		text, _ := os.ReadFile(filepath.Join(dir, "starts")) // missing: no starts
		return strings.Fields(string(text))
	}
}

// strike sends a signal to the processes of a type that the first started browser has, and to no other browser of this
// program; it reports whether there were any.
func strike(starts func() []string, kind string, s syscall.Signal) (hit bool) {
	started := starts()
	if len(started) == 0 {
		return false
	}
	browser, err := strconv.Atoi(started[0])
	if err != nil {
		return false // incomplete line
	}
	group, err := syscall.Getpgid(browser)
	if err != nil || group == syscall.Getpgrp() {
		return false
	}
	for _, pid := range child.Group(group) {
		if strings.Contains(strings.Join(proc.CommandLine(pid), " "), "--type="+kind) {
			hit = syscall.Kill(pid, s) == nil || hit
		}
	}
	return hit
}

// whileLoading returns the stub's site, which calls strike while a page loads, when its renderer is sure to be there.
func whileLoading(strike func()) Site {
	site := stubSite
	site.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/engine/engine.js" {
			strike()
		}
		stubSite.Handler.ServeHTTP(w, r)
	})
	return site
}

// repeated opens the stub in a browser whose first starts fail, which limits gives less time than the next.
func repeated(t *testing.T, path string, s Site, l driver.Limits) *enginetest.Probe {
	t.Helper()
	probe := &enginetest.Probe{}
	p, err := Open(watched(t), Config{Chrome: path, limits: &l}, s, hopeful{probe, &l})
	check.Err(t, err)
	check.Also(t, p.Measure(watched(t), probe))
	check.Also(t, p.Close())
	return probe
}

// Whatever blocks a browser's start, the next attempt works, and the record reports it.
func TestStartsAreRepeated(t *testing.T) {
	// The time until a process is stopped counts.
	noticed := driver.Limits{Answer: time.Minute, Tab: 20 * time.Second, Page: 20 * time.Second}
	for _, x := range []struct {
		name    string
		times   int
		instead string // script that runs instead of the browser
		kind    string // of the processes that get the signal
		signal  syscall.Signal
		limits  driver.Limits // of the first start
		say     string
	}{
		{name: "sleeps", times: 1, instead: "sleep 1000", limits: driver.Limits{Answer: 10 * time.Second},
			say: "Chrome did not answer within 10 s (start 1 of 3); trying again"},
		{name: "crashes twice", times: 2, instead: "kill -SEGV $$", limits: patiently, say: "Chrome did not answer"},
		{name: "exits twice", times: 2, instead: "echo out of luck >&2; exit 1", limits: patiently, say: "out of luck"},
		{name: "renderer killed", times: 1, kind: "renderer", signal: syscall.SIGKILL, limits: patiently,
			say: "(start 1 of 3); trying again"},
		{name: "renderer stopped", times: 1, kind: "renderer", signal: syscall.SIGSTOP, limits: noticed,
			say: "(start 1 of 3); trying again"},
		{name: "zygote stopped", times: 1, kind: "zygote", signal: syscall.SIGSTOP, limits: noticed,
			say: "(start 1 of 3); trying again"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			path, starts := unwell(t, x.times, cmp.Or(x.instead, ":"))
			site, ctx := stubSite, t.Context()
			switch x.kind {
			case "renderer":
				site = whileLoading(func() {
					if len(starts()) == 1 {
						strike(starts, x.kind, x.signal)
					}
				})
			case "zygote":
				go func() { // as soon as there is one: it starts the renderer
					for ctx.Err() == nil && !strike(starts, x.kind, x.signal) {
						time.Sleep(time.Millisecond)
					}
				}()
			}
			probe := repeated(t, path, site, x.limits)
			reported := probe.Warnings()
			if len(reported) != x.times || len(starts()) != x.times+1 {
				t.Fatalf("%d starts instead of %d; reported %+v", len(starts()), x.times+1, reported)
			}
			for i, w := range reported {
				report, closed := probe.Logged(fmt.Sprintf("chrome-start%d", i+1))
				t.Log(w.Text)
				if w.Code != "start-repeated" || !strings.Contains(w.Text, x.say) || !closed ||
					!strings.Contains(report, "Processes") {
					t.Errorf("%+v\n%s", w, report)
				}
				if x.signal == syscall.SIGSTOP && !strings.Contains(report, "state T") {
					t.Errorf("no process is reported as stopped:\n%s", report)
				}
			}
		})
	}
}

// The browser aborts the load of a page whose renderer ends, perhaps before it reports that end; a 204 aborts it too.
func TestStartIsRepeatedIfPageLoadIsAborted(t *testing.T) {
	path, starts := unwell(t, 0, ":")
	site, aborted := stubSite, false
	site.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && !aborted {
			aborted = true
			w.WriteHeader(http.StatusNoContent)
			return
		}
		stubSite.Handler.ServeHTTP(w, r)
	})
	reported := repeated(t, path, site, patiently).Warnings()
	if len(starts()) != 2 || len(reported) != 1 || !strings.Contains(reported[0].Text,
		"Chrome failed before the page was ready: opening the page: page load error net::ERR_ABORTED (start 1 of 3)") {
		t.Errorf("%d starts; reported %+v", len(starts()), reported)
	}
}

// A program that cannot be executed is not tried again.
func TestBrowserThatCannotBeExecuted(t *testing.T) {
	probe, path := &enginetest.Probe{}, filepath.Join(t.TempDir(), "chrome")
	check.Err(t, os.WriteFile(path, []byte("#!/no/such/shell\n"), 0o700))
	_, err := Open(watched(t), Config{Chrome: path}, stubSite, probe)
	if engine.ClassOf(err) == record.Start || fault.Of(err) != fault.NoChrome || len(probe.Warnings()) > 0 {
		t.Errorf("%v, warnings %v", err, probe.Warnings())
	}
}
