package browser

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/chromedp"
	"github.com/prometheus/procfs"

	"llmparity/assets/page"
	"llmparity/browser/chrome"
	"llmparity/browser/serve"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child"
	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/host/sample/truth"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// findTruth makes a page allocate size bytes of every kind of memory, repeats times each, and reads all sources of a
// run before and after.
func findTruth(t *testing.T, size int64, repeats int) truth.Matrix {
	t.Helper()
	p, err := openPlain(t.Context(), Config{})
	check.Err(t, err)
	defer func() { check.Err(t, errors.Join(p.close(), p.complaint())) }()
	device, err := p.page.Device(t.Context())
	check.Err(t, err)
	p.call(t, "llmparity.prepare()")
	platform := truth.Platform{OS: runtime.GOOS, Software: device.Class == record.SoftwareAdapter}
	m := truth.Measure(t, truth.InBrowser(), p, platform, size, repeats)
	m.Facts = fmt.Sprintf("browser %s; window %s; WebGPU adapter %s (%s)", p.page.tab.Facts().Product,
		p.page.tab.Facts().Policy["window"], device.Name, device.Class)
	t.Logf("\n%s", m)
	for _, c := range m.Contradictions() {
		t.Error(c)
	}
	return m
}

// plain is a page with the ledger but no engine, in its own browser, with attached sources.
type plain struct {
	enginetest.Probe
	page  *Page
	gpus  *gpu.Monitor
	cards []sample.Source // GPU devices
}

var _ truth.Subject = (*plain)(nil)

// openPlain opens the page that allocates memory.
func openPlain(ctx context.Context, c Config) (_ *plain, err error) {
	p := &plain{gpus: gpu.Open(ctx, gpu.Options{})}
	for _, s := range p.gpus.Sources() {
		if s.Describe().Method != gpu.RAPL {
			p.cards = append(p.cards, s)
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	c.Thread = PageThread
	site := Site{Handler: serve.Files(nil), Page: page.Truth}
	if p.page, err = Open(ctx, c, site, p); err != nil {
		return nil, err
	}
	p.page.clock = pageClock{anchor: time.Now()}
	if err := p.page.Attach(ctx, p); err != nil {
		return nil, err
	}
	return p, p.page.attachInside(ctx, p)
}

// close closes the browser.
func (p *plain) close() error {
	if p == nil {
		return nil
	}
	defer p.gpus.Close()
	if p.page == nil {
		return nil
	}
	return p.page.Close()
}

// Attach also attaches what the GPU driver reports about a process.
func (p *plain) Attach(s sample.Source) func() {
	ends := []func(){p.Probe.Attach(s)}
	for _, beside := range p.gpus.Beside(s) {
		ends = append(ends, p.Probe.Attach(beside))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// call evaluates an expression in the page.
func (p *plain) call(t testing.TB, expression string) {
	t.Helper()
	_, err := Call[any](t.Context(), p.page, expression)
	check.Err(t, err)
}

// Take allocates memory in the page.
func (p *plain) Take(t testing.TB, kind string, bytes int64) {
	p.call(t, fmt.Sprintf("llmparity.take(%q, %d)", kind, bytes))
}

// GiveBack frees it.
func (p *plain) GiveBack(t testing.TB) { p.call(t, "llmparity.giveBack()") }

// Others lists this machine's other processes of the browser's program. The pages of its executable are private or
// shared depending on them.
func (p *plain) Others() []int {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.page.tab.Facts().PID))
	if err != nil {
		return nil // on another machine, or without /proc
	}
	links, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is valid
	var pids []int
	for _, l := range links {
		if other, err := os.Readlink(l); err == nil && other == program {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(l))) // a number by the pattern
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// pageRest is enough for the browser's postponed work.
const pageRest = 70 * time.Millisecond

// Rest reads every source when the processes are idle, the page's own last, because measuring the user agent's memory
// also collects garbage. Destroyed buffers may stay in the GPU process until a later submit, however long that takes:
// on a busy machine, those of one giveBack in 300 did. With them in the first reading, the next ones seem to take none.
func (p *plain) Rest(t testing.TB) truth.Reading {
	t.Helper()
	check.Err(t, p.page.Attach(t.Context(), p)) // new processes
	settle := func() {
		p.collect(t)
		p.call(t, "llmparity.flush()")
	}
	reading := truth.Rest(pageRest, settle, func() truth.Reading {
		p.awaitIdle()
		return p.processes(t)
	})
	maps.Copy(reading, p.inside(t))
	return reading
}

// awaitIdle waits until no thread of the browser runs or waits for a processor. On a busy machine memory that is given
// back may be freed only after several equal readings. On a very busy one, the browser is hardly ever idle.
func (p *plain) awaitIdle() {
	const pause, atMost = 20 * time.Millisecond, time.Second
	for range atMost / pause {
		if !slices.ContainsFunc(child.Group(p.page.tab.Facts().PID), isBusy) {
			return
		}
		time.Sleep(pause)
	}
}

// isBusy reports whether a thread of a process runs or waits for a processor.
func isBusy(pid int) bool {
	threads, err := procfs.AllThreads(pid)
	return err == nil && slices.ContainsFunc(threads, func(thread procfs.Proc) bool {
		stat, err := thread.Stat()
		return err == nil && stat.State == "R"
	})
}

// collect collects the garbage of the page and its workers, several times: what one collection finds dead, the next
// may free.
func (p *plain) collect(t testing.TB) {
	t.Helper()
	for range 2 {
		check.Err(t, p.page.tab.Collect(t.Context()))
		for _, s := range p.Attached() {
			worker, ok := s.(*chrome.Source)
			if !ok || worker.Role != "worker" {
				continue
			}
			ctx, cancel := engine.Within(worker.Ctx, t.Context())
			check.Err(t, chromedp.Do(worker.Ctx))
			_, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{})
			check.Err(t, err)
			cancel()
		}
	}
}

// read reads the wanted sources, each with its description.
func (p *plain) read(t testing.TB, some []sample.Source, wanted func(record.Source) bool,
	got func(record.Source, record.Sample)) {
	t.Helper()
	for _, s := range some {
		d := s.Describe()
		if !wanted(d) {
			continue
		}
		r := record.NewSample()
		err := s.Read(t.Context(), &r)
		if errors.Is(err, sample.ErrGone) && p.page.lost() == nil {
			continue
		}
		if err != nil {
			t.Fatalf("reading %s of the %s: %v", d.Method, d.Role, err)
		}
		got(d, r)
	}
}

// processes reads the memory of the browser's processes by the system and the GPU drivers, each and in sum.
func (p *plain) processes(t testing.TB) truth.Reading {
	t.Helper()
	reading := truth.Reading{}
	// smaps_rollup has everything that statm has, exact to the page.
	ofProcess := func(d record.Source) bool { return d.PID != 0 && !d.Waits && d.Method != record.MethodStatm }
	p.read(t, p.Attached(), ofProcess, func(d record.Source, r record.Sample) {
		for figure, v := range map[string]int64{"RSS": r.RSS, "PSS": r.PSS, "USS": r.USS, "VMS": r.VMS} {
			if v != record.Absent {
				reading[d.Role+"/"+figure] += float64(v) / truth.MiB
				reading[truth.EveryProcess+"/"+figure] += float64(v) / truth.MiB
			}
		}
		reading.Add(d.Role, truth.GPUMemory, r)
	})
	p.read(t, p.cards, func(record.Source) bool { return true },
		func(_ record.Source, r record.Sample) { reading.Add(truth.EveryGPU, truth.DeviceMemory, r) })
	return reading
}

// inside reads the figures of the page and its worker themselves.
func (p *plain) inside(t testing.TB) truth.Reading {
	t.Helper()
	reading := truth.Reading{}
	used, err := Call[float64](t.Context(), p.page, "performance.memory?.usedJSHeapSize ?? -1")
	check.Err(t, err)
	if used >= 0 {
		reading["page/performance.memory"] = used / truth.MiB
	}
	for _, last := range []bool{false, true} { // sources that collect garbage
		wanted := func(d record.Source) bool { return d.Waits && (d.Method == MethodUserAgent) == last }
		p.read(t, p.Attached(), wanted, func(d record.Source, r record.Sample) {
			for _, v := range r.Values {
				if strings.HasSuffix(v.Name, "_bytes") {
					reading[d.Role+"/"+d.Method+"."+v.Name] = v.Value / truth.MiB
				}
			}
		})
	}
	return reading
}
