package browser

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/chromedp"

	"llmparity/assets/page"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// plain is a page with the ledger and without WebLLM, in a browser of its own, whose sources are attached.
type plain struct {
	tab      *tab
	server   *server
	probe    *enginetest.Probe
	warnings []record.Warning
}

func openPlain(ctx context.Context) (_ *plain, err error) {
	text, err := fs.ReadFile(page.Files(), "ledger.js")
	if err != nil {
		return nil, err
	}
	files := fstest.MapFS{
		"index.html": {Data: []byte(`<!doctype html><title>bare</title><script type="module" src="bare.js"></script>`)},
		"bare.js": {Data: []byte(`import "./ledger.js";
			globalThis.llmparity = { started: Promise.resolve(), held: () => -1 };
			globalThis.llmparityPage = llmparity;`)},
		"ledger.js": {Data: text},
		"worker.js": {Data: []byte(`import "./ledger.js";
			onmessage = async ({ data: bytes }) => {
				const device = await (await navigator.gpu.requestAdapter()).requestDevice();
				globalThis.kept = [new Uint8Array(bytes).fill(1), device.createBuffer({ size: bytes, usage: GPUBufferUsage.STORAGE })];
				postMessage(llmparityLedger.read());
			};`)},
	}
	p := &plain{probe: &enginetest.Probe{}}
	if p.server, err = serve(files, nil); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	path, err := FindChrome("")
	if err != nil {
		return nil, err
	}
	if p.tab, err = openTab(ctx, path, Config{}, p.server, func(w record.Warning) { p.warnings = append(p.warnings, w) }); err != nil {
		return nil, err
	}
	p.tab.clock = pageClock{anchor: time.Now()}
	if err := p.tab.attach(ctx, p.probe); err != nil {
		return nil, err
	}
	return p, p.tab.attachPage(ctx, p.probe)
}

func (p *plain) close() error {
	if p == nil {
		return nil
	}
	var err error
	if p.tab != nil {
		p.tab.processes.detach()
		err = p.tab.chrome.close()
	}
	for _, w := range p.warnings {
		err = errors.Join(err, fmt.Errorf("warning of the plain page: %s: %s", w.Code, w.Text))
	}
	return errors.Join(err, p.server.close())
}

// bare is a plain page of the test's own.
func bare(t *testing.T) (*tab, *enginetest.Probe) {
	t.Helper()
	p, err := openPlain(watched(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return p.tab, p.probe
}

// sharedPlain is for tests that leave nothing behind that a new page in the same browser would have.
var sharedPlain struct {
	once  sync.Once
	plain *plain
	err   error
}

// blank is a plain page that was just opened, in a browser that others had before.
func blank(t *testing.T) (*tab, *enginetest.Probe) {
	t.Helper()
	s := &sharedPlain
	s.once.Do(func() { s.plain, s.err = openPlain(context.Background()) }) // the browser outlives the test
	if s.err != nil {
		t.Fatal(s.err)
	}
	p := s.plain.tab
	ctx, cancel := p.within(watched(t))
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(p.server.base+"/")); err != nil {
		t.Fatal(err)
	}
	return p, s.plain.probe
}

// collect makes the page collect all its garbage.
func collect(t *testing.T, p *tab) {
	t.Helper()
	ctx, cancel := p.within(watched(t))
	defer cancel()
	if _, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
}

// took is how much every kind of memory is asked for.
const took = 64 << 20

// kinds of memory, and how a page takes them. Each keeps what it took in globalThis.kept, all touched.
var kinds = []struct{ name, take string }{
	{"JS arrays", `for (let i = 0; i < 16; i++) kept.push(new Array(took / 64).fill(7));`}, // 4 bytes an element, with compressed pointers
	{"ArrayBuffer", `for (let i = 0; i < 16; i++) kept.push(new Uint8Array(took / 16).fill(7));`},
	{"WASM memory", `kept.push(new WebAssembly.Memory({ initial: took / 65536 })); new Uint8Array(kept[0].buffer).fill(7);`},
	{"WebGPU buffer", `for (let i = 0; i < 4; i++) {
		const buffer = device.createBuffer({ size: took / 4, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST });
		for (let at = 0; at < buffer.size; at += part.length) device.queue.writeBuffer(buffer, at, part);
		await device.queue.onSubmittedWorkDone();
		kept.push(buffer);
	}`},
}

// giveBack frees what was taken.
const giveBack = `for (const k of kept.splice(0)) k.destroy?.();
	device.queue.submit([]); // buffers are freed behind it
	await device.queue.onSubmittedWorkDone();`

// cell says where a source's change must lie, in MiB.
type cell struct{ least, most float64 }

const near = 0.03 * 64

var (
	all  = cell{64 - near, 64 + near}
	none = cell{-3, 3}
)

// between is for what a written WebGPU buffer's way leaves behind: memory that the renderer and the GPU process share.
func between(least, most float64) cell { return cell{least, most} }

// truths is what each source sees of each kind, in the order of kinds.
var truths = []struct {
	source string
	want   [4]cell
}{
	{"performance.memory", [4]cell{all, all, none, none}},
	{"heap_usage used_bytes", [4]cell{all, none, none, none}},
	{"performance_metrics js_heap_used_bytes", [4]cell{all, none, none, none}},
	{"heap_usage backing_storage_bytes", [4]cell{none, all, none, none}},
	{"user_agent_memory total_bytes", [4]cell{all, all, none, none}},
	{"webgpu_ledger live_bytes", [4]cell{none, none, none, {64, 64}}},
	{"wasm_memory memory_bytes", [4]cell{none, none, {64, 64}, none}},
	{"renderer USS", [4]cell{all, all, all, none}},
	{"renderer PSS", [4]cell{all, all, all, between(-3, 32+3)}},
	{"renderer RSS", [4]cell{all, all, all, between(-3, 64+3)}},
	{"gpu-process USS", [4]cell{none, none, none, all}},
	{"gpu-process PSS", [4]cell{none, none, none, between(64-near, 64+32+3)}},
	{"gpu-process RSS", [4]cell{none, none, none, between(64-near, 64+64+3)}},
}

// TestEverySourceSeesWhatItClaims takes memory of each kind, by itself, and compares what every source makes of it.
func TestEverySourceSeesWhatItClaims(t *testing.T) {
	moved := make([][4]float64, len(truths))
	// The browser's own code is in files, whose pages are private or shared by whether another browser runs: one does all the time.
	bare(t)
	for k, kind := range kinds {
		p, probe := bare(t)
		run := func(script string) {
			t.Helper()
			if _, err := call[any](watched(t), p, fmt.Sprintf("(async () => { const took = %d; %s })()", took, script)); err != nil {
				t.Fatalf("%s: %v", kind.name, err)
			}
		}
		run(`globalThis.kept = []; globalThis.part = new Uint8Array(1 << 20).fill(7);
			globalThis.device = await (await navigator.gpu.requestAdapter()).requestDevice();`)
		run(kind.take) // once for all that grows at the first time
		var before, after map[string]float64
		for n := 0; ; n++ {
			run(giveBack)
			others := browsers(t, p)
			before = settled(t, p, probe)
			run(kind.take)
			after = settled(t, p, probe)
			if slices.Equal(others, browsers(t, p)) {
				break
			}
			if n == 20 {
				t.Fatal("other browsers come and go, which changes what processes share: end them and test again")
			}
		}
		for i, truth := range truths {
			moved[i][k] = after[truth.source] - before[truth.source]
			if got, want := moved[i][k], truth.want[k]; math.IsNaN(got) || got < want.least || got > want.most {
				t.Errorf("%s moved by %.2f MiB for 64 MiB of %s, want %.2f to %.2f", truth.source, got, kind.name, want.least, want.most)
			}
		}
		p.chrome.close()
	}
	table := fmt.Sprintf("%-40s", "MiB for 64 MiB of")
	for _, kind := range kinds {
		table += fmt.Sprintf("%14s", kind.name)
	}
	for i, truth := range truths {
		table += fmt.Sprintf("\n%-40s", truth.source)
		for k := range kinds {
			table += fmt.Sprintf("%14.2f", moved[i][k])
		}
	}
	t.Log("\n" + table)
}

// browsers lists the processes on this machine that run p's browser's program.
func browsers(t *testing.T, p *tab) []int {
	t.Helper()
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.chrome.pid))
	if err != nil {
		t.Fatal(err)
	}
	links, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is well formed
	var pids []int
	for _, l := range links {
		if other, err := os.Readlink(l); err == nil && other == program {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(l))) // a number, by the pattern
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// settled reads every source, in MiB, when processes have come to rest: garbage is collected and the kernel's figures stay.
func settled(t *testing.T, p *tab, probe *enginetest.Probe) map[string]float64 {
	t.Helper()
	var before map[string]float64
	for quiet, n := 0, 0; quiet < 3 && n < 40; n++ {
		if quiet == 0 {
			collect(t, p)
		}
		time.Sleep(100 * time.Millisecond)
		now := map[string]float64{}
		for _, role := range []string{"renderer", "gpu-process"} {
			r := record.NewSample()
			if err := sourceOf(t, probe, record.MethodSmapsRollup, role).Read(watched(t), &r); err != nil {
				t.Fatal(err)
			}
			now[role+" USS"], now[role+" PSS"], now[role+" RSS"] = mebi(r.USS), mebi(r.PSS), mebi(r.RSS)
		}
		rest := before != nil
		for name, v := range now {
			rest = rest && math.Abs(v-before[name]) < 0.25
		}
		quiet++
		if !rest {
			quiet = 0
		}
		before = now
	}
	// What is inside the page comes after: measuring the user agent's memory collects garbage too.
	used, err := call[float64](watched(t), p, "performance.memory.usedJSHeapSize")
	if err != nil {
		t.Fatal(err)
	}
	before["performance.memory"] = used / (1 << 20)
	for _, method := range []string{MethodHeap, MethodPerformance, MethodLedger, MethodWasm, MethodUserAgent} {
		for name, v := range figures(t, probe, method, "page") {
			before[method+" "+name] = v / (1 << 20)
		}
	}
	return before
}

func mebi(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// A worker is an isolate of its own: the page's figures leave it out.
func TestAWorkerIsASourceOfItsOwn(t *testing.T) {
	p, probe := bare(t)
	before := figures(t, probe, MethodHeap, "page")
	ledger, err := call[ledgerReading](watched(t), p, fmt.Sprintf(`new Promise((done) => {
		globalThis.worker = new Worker("worker.js", { type: "module" });
		worker.onmessage = ({ data }) => done(data);
		worker.postMessage(%d);
	})`, took))
	if err != nil {
		t.Fatal(err)
	}
	if ledger.Bytes != took || ledger.Count != 1 {
		t.Errorf("the worker's ledger has %d bytes in %d objects, want %d in 1", ledger.Bytes, ledger.Count, took)
	}
	if err := p.attach(watched(t), probe); err != nil {
		t.Fatal(err)
	}
	if err := p.attach(watched(t), probe); err != nil { // no second time
		t.Fatal(err)
	}
	workers := 0
	for _, s := range probe.Attached() {
		if s.Describe().Role == "worker" {
			workers++
		}
	}
	if workers != 1 {
		t.Errorf("%d sources read the worker, want 1", workers)
	}
	for range 3 { // every read is as good as the first
		if got := figures(t, probe, MethodHeap, "worker")["backing_storage_bytes"]; math.Abs(got-took) > 1<<20 {
			t.Errorf("the worker's array buffers take %.0f bytes, want %d", got, took)
		}
	}
	after := figures(t, probe, MethodHeap, "page")
	if moved := after["backing_storage_bytes"] - before["backing_storage_bytes"]; math.Abs(moved) > 1<<20 {
		t.Errorf("the page's array buffers moved by %.0f bytes", moved)
	}
	// A worker that has ended is gone, which is no error.
	if _, err := call[any](watched(t), p, "worker.terminate()"); err != nil {
		t.Fatal(err)
	}
	source := sourceOf(t, probe, MethodHeap, "worker")
	for n := 0; ; n++ {
		ctx, cancel := context.WithTimeout(watched(t), 3*time.Second) // a read that was just too early is never answered
		r := record.NewSample()
		err := source.Read(ctx, &r)
		cancel()
		if errors.Is(err, sample.ErrGone) {
			break
		}
		if n == 10 {
			t.Fatalf("reading a worker that has ended: %v, want %v", err, sample.ErrGone)
		}
	}
}

// A page that comes back may come back in another process.
func TestThePagesProcessIsMappedAgain(t *testing.T) {
	p, probe := bare(t)
	old := int(p.processes.renderer.Load())
	visit := func(address string) {
		t.Helper()
		ctx, cancel := p.within(watched(t))
		defer cancel()
		if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
			t.Fatal(err)
		}
	}
	visit("chrome://version/") // never in a page's process
	visit(p.server.base + "/")
	if err := p.attach(watched(t), probe); err != nil {
		t.Fatal(err)
	}
	if now := int(p.processes.renderer.Load()); now == old {
		t.Fatalf("the page is still taken to be in process %d", old)
	}
	// Whose memory grows is the page's.
	before := settled(t, p, probe)
	if _, err := call[any](watched(t), p, fmt.Sprintf("globalThis.kept = new Uint8Array(%d).fill(7), 0", took)); err != nil {
		t.Fatal(err)
	}
	after := settled(t, p, probe)
	if moved := after["renderer RSS"] - before["renderer RSS"]; math.Abs(moved-64) > near {
		t.Errorf("the process that is taken for the page's grew by %.2f MiB for 64 MiB", moved)
	}
	renderers, pages := 0, 0
	for _, s := range probe.Attached() {
		switch d := s.Describe(); {
		case d.Role == "renderer" && d.Method == record.MethodSmapsRollup:
			renderers++
		case d.Role == "page" && d.Method == MethodHeap:
			pages++
		}
	}
	if renderers != 1 || pages != 1 {
		t.Errorf("%d renderers and %d pages are sampled, want one each", renderers, pages)
	}
}
