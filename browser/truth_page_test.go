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
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/chromedp"

	"llmparity/assets/page"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/gpu"
	"llmparity/internal/truth"
)

// FindTruth makes a page allocate size bytes of every kind of memory, repeats times each, and reads all sources of a
// run before and after. Of the configuration it only uses how to start the browser and the adapter.
func FindTruth(ctx context.Context, c Config, size int64, repeats int) (_ truth.Part, err error) {
	p, err := openPlain(ctx, c)
	if err != nil {
		return truth.Part{}, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	device, err := p.page.Device(ctx)
	if err != nil {
		return truth.Part{}, err
	}
	if _, err := Call[any](ctx, p.page, "llmparity.prepare()"); err != nil {
		return truth.Part{}, fmt.Errorf("preparing the page: %w", err)
	}
	platform := truth.Platform{OS: runtime.GOOS, Software: device.Class == record.SoftwareAdapter}
	if p.page.chrome.pid == 0 {
		platform.OS = "" // not on this machine
	}
	m, err := truth.Measure(ctx, truth.InBrowser(), p, platform, size, repeats)
	return truth.Part{Matrix: m, Warnings: append(p.Warnings(), p.page.Unmet(device)...), Facts: []truth.Fact{
		{Name: "browser", Value: p.page.chrome.version.Product},
		{Name: "window", Value: p.page.chrome.policy["window"]},
		{Name: "WebGPU adapter", Value: fmt.Sprintf("%s (%s)", device.Name, device.Class)},
	}}, err
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
	site := Site{Handler: Files(page.Files()), Page: page.Truth}
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

// Take allocates memory in the page.
func (p *plain) Take(ctx context.Context, kind string, bytes int64) error {
	_, err := Call[any](ctx, p.page, fmt.Sprintf("llmparity.take(%q, %d)", kind, bytes))
	return err
}

// GiveBack frees it.
func (p *plain) GiveBack(ctx context.Context) error {
	_, err := Call[any](ctx, p.page, "llmparity.giveBack()")
	return err
}

// Others lists this machine's other processes of the browser's program. The pages of its executable are private or
// shared depending on them.
func (p *plain) Others() []int {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.page.chrome.pid))
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
// also collects garbage.
func (p *plain) Rest(ctx context.Context) (truth.Reading, error) {
	if err := p.page.Attach(ctx, p); err != nil { // new processes
		return nil, err
	}
	reading, err := truth.Rest(ctx, pageRest, func() error { return p.collect(ctx) },
		func() (truth.Reading, error) { return p.processes(ctx) })
	if err != nil {
		return nil, err
	}
	inside, err := p.inside(ctx)
	maps.Copy(reading, inside)
	return reading, err
}

// collect collects the garbage of the page and its workers, several times: what one collection finds dead, the next
// may free.
func (p *plain) collect(ctx context.Context) error {
	for range 2 {
		if err := p.page.collect(ctx); err != nil {
			return err
		}
		for _, s := range p.Attached() {
			worker, ok := s.(*pageSource)
			if !ok || worker.Role != "worker" {
				continue
			}
			wctx, cancel := engine.Within(worker.ctx, ctx)
			err := openTarget(wctx, worker.ctx)
			if err == nil {
				_, err = chromedp.Call(wctx, heapprofiler.CollectGarbage, cdp.Empty{})
			}
			cancel()
			if err != nil {
				return fmt.Errorf("collecting the worker's garbage: %w", p.page.errorOf(ctx, err))
			}
		}
	}
	return nil
}

// read reads the wanted sources, each with its description.
func (p *plain) read(ctx context.Context, some []sample.Source, wanted func(record.Source) bool,
	got func(record.Source, record.Sample)) error {
	for _, s := range some {
		d := s.Describe()
		if !wanted(d) {
			continue
		}
		r := record.NewSample()
		err := s.Read(ctx, &r)
		if errors.Is(err, sample.ErrGone) && p.page.lost() == nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %s of the %s: %w", d.Method, d.Role, err)
		}
		got(d, r)
	}
	return nil
}

// processes reads the memory of the browser's processes by the system and the GPU drivers, each and in sum.
func (p *plain) processes(ctx context.Context) (truth.Reading, error) {
	reading := truth.Reading{}
	// smaps_rollup has everything that statm has, exact to the page.
	ofProcess := func(d record.Source) bool { return d.PID != 0 && !d.Waits && d.Method != record.MethodStatm }
	err := p.read(ctx, p.Attached(), ofProcess, func(d record.Source, r record.Sample) {
		for figure, v := range map[string]int64{"RSS": r.RSS, "PSS": r.PSS, "USS": r.USS, "VMS": r.VMS} {
			if v != record.Absent {
				reading[d.Role+"/"+figure] += float64(v) / truth.MiB
				reading[truth.EveryProcess+"/"+figure] += float64(v) / truth.MiB
			}
		}
		reading.Add(d.Role, truth.GPUMemory, r)
	})
	if err != nil {
		return nil, err
	}
	everyone := func(record.Source) bool { return true }
	err = p.read(ctx, p.cards, everyone,
		func(_ record.Source, r record.Sample) { reading.Add(truth.EveryGPU, truth.DeviceMemory, r) })
	return reading, err
}

// inside reads the figures of the page and its worker themselves.
func (p *plain) inside(ctx context.Context) (truth.Reading, error) {
	reading := truth.Reading{}
	used, err := Call[float64](ctx, p.page, "performance.memory?.usedJSHeapSize ?? -1")
	if err != nil {
		return nil, err
	}
	if used >= 0 {
		reading["page/performance.memory"] = used / truth.MiB
	}
	for _, last := range []bool{false, true} { // sources that collect garbage
		wanted := func(d record.Source) bool { return d.Waits && (d.Method == MethodUserAgent) == last }
		err := p.read(ctx, p.Attached(), wanted, func(d record.Source, r record.Sample) {
			for _, v := range r.Values {
				if strings.HasSuffix(v.Name, "_bytes") {
					reading[d.Role+"/"+d.Method+"."+v.Name] = v.Value / truth.MiB
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return reading, nil
}
