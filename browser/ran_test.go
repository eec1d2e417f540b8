package browser

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"llmparity/browser/find"
	"llmparity/browser/serve"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// withoutGPU skips a test on a machine that has a GPU.
func withoutGPU(t *testing.T) {
	if !Auto.Software() {
		t.Skip("there is a GPU here")
	}
}

// Every way is tried for real. What answers is called by its name, and is no GPU.
func TestNoWayHasAGPU(t *testing.T) {
	withoutGPU(t)
	p, _ := fresh(t, Config{Adapter: GPU})
	d, err := p.Device(watched(t))
	check.Err(t, err)
	told := d.Detail
	if d.Class != record.SoftwareAdapter || d.Name != "SwiftShader" || !d.Missed() || told["way"] != "no flags" ||
		told["backend"] != "vulkan" || told["type"] != "CPU" || !strings.Contains(told["driver"], "SwiftShader") {
		t.Errorf("%+v", d)
	}
	want := []string{"no flags: SwiftShader (software-adapter, vulkan)", "Vulkan: SwiftShader (software-adapter, vulkan)"}
	tried := d.Tried()
	if len(tried) != 4 || !slices.Equal(tried[:2], want) || !strings.HasPrefix(tried[2], "a window: ") {
		t.Errorf("tried %q", tried)
	}
	_, err = engine.Asked(d, false)
	enginetest.OneLine(t, err, fault.Fallback, record.Fallback, "asks for gpu", "tried no flags: SwiftShader",
		"; Vulkan: ")
	if roles, err := p.Roles(watched(t)); err != nil || len(roles) == 0 {
		t.Errorf("the page that is left: %v, %v", roles, err)
	}
}

// For an engine that computes on the CPU no GPU is looked for, which takes several starts.
func TestNoGPUForTheCPU(t *testing.T) {
	s, err := Start(watched(t), Config{Adapter: GPU}, computing{cpu: true}, &enginetest.Probe{})
	check.Err(t, err)
	defer func() { check.Also(t, s.Close()) }()
	if d := s.Adapter; d.Asked != "" || d.Detail[record.DetailWay] != "" || len(d.Tried()) > 0 {
		t.Errorf("%+v", d)
	}
}

// Lavapipe in SwiftShader's place tells who it is, and is no GPU either.
func TestLavapipeIsNoGPU(t *testing.T) {
	withoutGPU(t)
	path, err := find.Lavapipe()
	if err != nil {
		t.Skip(err)
	}
	p, _ := fresh(t, Config{Adapter: GPU, Chrome: path})
	d, err := p.Device(watched(t))
	check.Err(t, err)
	if d.Class != record.SoftwareAdapter || !strings.Contains(d.Name, "llvmpipe") || !d.Missed() ||
		d.Detail["backend"] != "vulkan" || d.Detail["type"] != "CPU" || !strings.Contains(d.Detail["driver"], "Mesa") {
		t.Errorf("%+v", d)
	}
	_, err = engine.Asked(d, false)
	enginetest.OneLine(t, err, fault.Fallback, record.Fallback, "asks for gpu", "llvmpipe")
}

// dispatching is an engine that computes on WebGPU if it is told to, else in the page.
const dispatching = `
import { host } from "../host.js";
let device, pipeline, gpu;
export async function load(options) {
	gpu = options.gpu;
	host.mark("model");
	device = await (await navigator.gpu.requestAdapter()).requestDevice();
	const code = "@compute @workgroup_size(64) fn main() { var x = 0.5; for (var i = 0; i < 1000; i++) { x = x * x + 0.1; } }";
	pipeline = device.createComputePipeline({ layout: "auto", compute: { module: device.createShaderModule({ code }) } });
}
export async function generate() {
	const end = performance.now() + 300;
	if (!gpu) while (performance.now() < end);
	for (let i = 0; gpu && i < 8; i++) {
		const encoder = device.createCommandEncoder(), pass = encoder.beginComputePass();
		pass.setPipeline(pipeline);
		pass.dispatchWorkgroups(64);
		pass.end();
		device.queue.submit([encoder.finish()]);
		await device.queue.onSubmittedWorkDone();
	}
	host.token(1);
	return { promptIDs: [1], text: "a", finish: "length" };
}
export const interrupt = () => {};
export const unload = async () => {};
`

// computing is the runtime of that engine.
type computing struct {
	gpu   bool
	apart bool // without the headers that allow threads
	cpu   bool // says that it needs no adapter
	offer Offer
}

func (c computing) Page() Served {
	scripts := fstest.MapFS{"engine.js": {Data: []byte(dispatching)}}
	return Served{OnCPU: c.cpu, Scripts: scripts, Info: record.EngineInfo{Name: "computing", Version: "1",
		Parts: map[string]string{}, Policy: map[string]string{}},
		Stages: []Stage{{Name: "model", How: "page clock"}},
		Site: Site{Title: "the stub", Imports: "nothing", Do: "mend it", Handler: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				if c.apart {
					w.Header().Del("Cross-Origin-Opener-Policy")
				}
				serve.Files(scripts).ServeHTTP(w, r)
			})}}
}

func (c computing) Offer(context.Context, models.Model, record.Device) (*Offer, error) {
	o := c.offer
	o.Options, o.Policy = map[string]any{"gpu": c.gpu}, map[string]string{}
	return &o, nil
}

func (computing) Close() error { return nil }

// What computed is seen from outside: by the dispatches, and on a software adapter by the CPU time of the GPU process.
func TestBackendIsSeen(t *testing.T) {
	withoutGPU(t)
	for _, c := range []struct {
		gpu    bool
		asked  string
		got    string
		missed bool
	}{{true, WebGPU, WebGPU, false}, {false, WebGPU, WASM, true}, {true, WASM, WebGPU, true}} {
		r := computing{gpu: c.gpu, offer: Offer{Backend: c.asked, Context: 9, Threads: 2,
			Got: []ran.Row{ran.As(ran.DType, "f16", "f16", "the file")}}}
		probe := &enginetest.Probe{}
		s, err := Start(watched(t), Config{Adapter: SwiftShader}, r, probe)
		check.Err(t, err)
		check.Err(t, s.Load(watched(t), models.Model{}))
		for range 2 {
			_, err = s.Generate(watched(t), engine.Request{Prompt: "p", MaxTokens: 1}, func(record.Token) {})
			check.Err(t, err)
		}
		rows := (&record.Attempt{Events: probe.Events()}).Ran()
		check.Err(t, s.Close())
		what := []string{}
		for _, r := range rows {
			what = append(what, r.What)
		}
		if !slices.Equal(what, []string{ran.Device, ran.DType, ran.Backend}) {
			t.Fatalf("rows of %v", what)
		}
		row := rows[2]
		dispatches := map[bool]string{true: "8 WebGPU dispatches", false: "0 WebGPU dispatches"}[c.gpu]
		if row.Got != c.got || row.Missed != c.missed || !strings.Contains(row.Evidence, dispatches) ||
			!strings.Contains(row.Evidence, "CPU time: GPU process ") {
			t.Errorf("asked for %s: %+v", c.asked, row)
		}
		_, err = engine.AskedAlso(rows, false)
		if c.missed {
			enginetest.OneLine(t, err, fault.Fallback, record.Fallback, "asks for backend "+c.asked, c.got)
		} else {
			check.Err(t, err)
		}
		t.Log(row)
	}
}

// On a software adapter the GPU process's CPU time decides where the ledger sees nothing.
func TestEvidenceOfABackend(t *testing.T) {
	const second = 1e9
	for _, c := range []struct {
		work
		software bool
		got      string
	}{
		{work{9, -1, -1}, false, WebGPU}, {work{0, -1, -1}, false, WASM}, {work{-1, -1, -1}, false, ""},
		{work{-1, 24 * second, second}, true, WebGPU}, {work{0, 24 * second, second}, true, WebGPU},
		{work{-1, 0, second}, true, WASM}, {work{0, second / 100, second}, true, WASM},
		{work{5, 0, second}, true, WebGPU}, {work{-1, 0, second}, false, ""},
	} {
		if r := c.row(WebGPU, c.software); r.Got != c.got || r.Missed != (c.got == WASM) {
			t.Errorf("%+v: %+v", c.work, r)
		}
	}
}

// Without shared memory there are no threads.
func TestThreadsNeedSharedMemory(t *testing.T) {
	for _, apart := range []bool{false, true} {
		probe := &enginetest.Probe{}
		r := computing{apart: apart, offer: Offer{Threads: 4}}
		s, err := Start(watched(t), Config{Adapter: SwiftShader}, r, probe)
		check.Err(t, err)
		check.Also(t, s.Load(watched(t), models.Model{}))
		rows := (&record.Attempt{Events: probe.Events()}).Ran()[1:] // behind the device
		check.Also(t, s.Close())
		want := []ran.Row{{What: "threads", Asked: "4", Got: "1", Evidence: "the page has no SharedArrayBuffer",
			Missed: true}}
		if !apart {
			want = nil // the engine knows better
		}
		if !slices.Equal(rows, want) {
			t.Errorf("without shared memory: %v: %+v", apart, rows)
		}
	}
}
