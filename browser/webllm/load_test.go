package webllm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"llmparity/assets/bundle"
	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/sample"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// keeping is a probe that also keeps pushed samples.
type keeping struct {
	enginetest.Probe
	mu     sync.Mutex
	pushed []record.Sample // from the ledger
}

func (k *keeping) Attach(s sample.Source) func() {
	if p, ok := s.(sample.Pusher); ok {
		p.Pushes(func(r record.Sample) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.pushed = append(k.pushed, r)
		})
	}
	return k.Probe.Attach(s)
}

// take returns the samples that the ledger has pushed since the last call.
func (k *keeping) take() []record.Sample {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() { k.pushed = nil }()
	return k.pushed
}

// private returns a process's private memory.
func (k *keeping) private(t *testing.T, role string) int64 {
	t.Helper()
	for _, source := range k.Attached() {
		sample := record.NewSample()
		if source.Describe().Role != role {
			continue
		}
		check.Err(t, source.Read(t.Context(), &sample))
		if sample.USS != record.Absent {
			return sample.USS
		}
	}
	t.Fatalf("no source reads the private memory of the %s", role)
	return 0
}

// The tiny model's KV cache: layers, KV heads, head size, bytes per number.
const tinyKV = 2 * 2 * 2 * 32 * 4

// The ledger splits WebGPU memory by the package, for any window, and nothing is left after Unload.
func TestLedgerSplitsTheModelsMemory(t *testing.T) {
	m := tinyModel(t)
	s, probe := idle(t)
	loads(t, s, m)
	checkParts(t, s, probe, files.pack, window)
	unloadFrees(t, s, probe)

	// The window is not a multiple of the page size, and the library claims to be for GPUs.
	p, err := pack(t.TempDir(), 100, func(s string) { t.Log(s) })
	check.Err(t, err)
	p.Library.Kernels = GPUKernels
	s, _ = idle(t)
	s.webllm.pack, m.Context = packaged(p), 100
	warned := len(probe.Warnings())
	loads(t, s, m)
	if w := probe.Warnings()[warned:]; len(w) != 1 || w[0].Code != "library-for-another-adapter" ||
		!strings.Contains(w[0].Text, "gpu kernels") {
		t.Errorf("warnings %+v", w)
	}
	checkParts(t, s, probe, p, 100)
}

// unloadFrees allocates much memory. WebGPU frees destroyed buffers later, but Unload must wait for it.
func unloadFrees(t *testing.T, s *session, probe *keeping) {
	t.Helper()
	const size = 200 << 20
	if _, err := browser.Call[any](watched(t), s.Page, fmt.Sprintf(`navigator.gpu.requestAdapter().then(async (a) => {
		const d = await a.requestDevice({ requiredLimits: { maxBufferSize: %d } });
		const b = d.createBuffer({ size: %[1]d, usage: GPUBufferUsage.COPY_DST });
		const part = new Uint8Array(4 << 20).fill(1);
		for (let at = 0; at < b.size; at += part.length) d.queue.writeBuffer(b, at, part);
		await d.queue.onSubmittedWorkDone();
	})`, size)); err != nil {
		t.Fatal(err)
	}
	full := probe.private(t, "gpu-process")
	unloaded(t, s, probe)
	if freed := full - probe.private(t, "gpu-process"); freed < size*9/10 {
		t.Errorf("%d MiB allocated, %d freed by Unload", size>>20, freed>>20)
	}
}

// unloaded unloads a model and checks that the ledger is empty.
func unloaded(t *testing.T, s *session, probe *keeping) {
	t.Helper()
	check.Err(t, s.Unload(watched(t)))
	role := s.Info().Policy["thread"]
	if got := probe.Figures(t, browser.MethodLedger, role); got["live_bytes"] != 0 || got["live_count"] != 0 {
		t.Errorf("after Unload the ledger has %.0f bytes in %.0f objects", got["live_bytes"], got["live_count"])
	}
}

// checkParts generates, and compares the ledger's parts with the package, and pushed figures with what is known.
func checkParts(t *testing.T, s *session, probe *keeping, p Package, window int) {
	t.Helper()
	probe.take()
	ids, u := says(t, s, 9)
	got := probe.Figures(t, browser.MethodLedger, s.Info().Policy["thread"])
	// The last sampled token is not in the cache.
	held := len(u.PromptIDs) + len(ids) - 1
	for name, want := range map[string]int{
		"weights_bytes":         paramBytes(t, p.Dir),
		"weights_padding_bytes": 0,
		"kv_reserved_bytes":     tinyKV * 16 * ((window+15)/16 + 1),
		"kv_used_bytes":         tinyKV * held,
		"unattributed_bytes":    0,
		"uncertain_count":       0,
		"refused_count":         0,
	} {
		if got[name] != float64(want) {
			t.Errorf("%s is %.0f, want %d", name, got[name], want)
		}
	}
	if sum := got["weights_bytes"] + got["kv_reserved_bytes"] + got["workspaces_bytes"] +
		got["unattributed_bytes"]; sum != got["live_bytes"] {
		t.Errorf("the parts sum up to %.0f, the ledger to %.0f", sum, got["live_bytes"])
	}
	if got["created_count"]-got["released_count"] != got["live_count"] || got["phase_peak_bytes"] < got["live_bytes"] {
		t.Errorf("inconsistent ledger: %v", got)
	}
	var names []string
	pushed := probe.take()
	for _, v := range pushed[len(pushed)-1].Values {
		names = append(names, v.Name)
		if v.Value <= 0 {
			t.Errorf("%s is %.0f", v.Name, v.Value)
		}
	}
	if want := []string{"live_bytes", "live_count", "peak_bytes", "created_count", "released_count",
		"kv_used_bytes"}; !slices.Equal(names, want) {
		t.Errorf("pushed %v, want %v", names, want)
	}
	// One token more than the context.
	long := engine.Request{Prompt: prompt, MaxTokens: window - len(u.PromptIDs) + 1, IgnoreEOS: true}
	_, err := s.Generate(watched(t), long, func(record.Token) { t.Error("unexpected token") })
	if fault.Of(err) != fault.PromptTooLong {
		t.Errorf("error %v, want PromptTooLong", err)
	}
}

// paramBytes returns the bytes of the package's weights.
func paramBytes(t *testing.T, dir string) int {
	t.Helper()
	text := check.Read(t, filepath.Join(dir, "tensor-cache.json"))
	var cache struct {
		Metadata struct{ ParamBytes int } `json:"metadata"`
	}
	if err := json.Unmarshal(text, &cache); err != nil || cache.Metadata.ParamBytes == 0 {
		t.Fatalf("ParamBytes: %v", err)
	}
	return cache.Metadata.ParamBytes
}

// The first load is delayed in several stages, which must be visible in each. Memory after an unload must not grow
// with further loads.
func TestRepeatedLoads(t *testing.T) {
	const library, weights, upload, shaders = 250 * time.Millisecond, 350 * time.Millisecond, 450 * time.Millisecond,
		550 * time.Millisecond
	var over atomic.Bool // the first load
	w, probe, m := packed(t, Config{Settings: browser.Settings{Adapter: "swiftshader"}}), &keeping{}, tinyModel(t)
	s, err := opened(watched(t), w, probe, answering(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case over.Load():
		case strings.HasSuffix(r.URL.Path, "/library.wasm"):
			time.Sleep(library)
		case strings.Contains(r.URL.Path, "params_shard_"):
			time.Sleep(weights)
		}
		next.ServeHTTP(w, r)
	}))
	check.Err(t, err)
	defer s.Close()
	// The first wait for the queue belongs to an upload; shaders are compiled to pipelines.
	_, err = browser.Call[any](watched(t), s.Page, `(() => {
		const hold = (prototype, name, ms) => {
			const original = prototype[name];
			prototype[name] = async function (...args) {
				prototype[name] = original;
				await new Promise((done) => setTimeout(done, ms));
				return original.apply(this, args);
			};
		};
		hold(GPUQueue.prototype, "onSubmittedWorkDone", 450);
		hold(GPUDevice.prototype, "createComputePipelineAsync", 550);
	})()`)
	check.Err(t, err)
	loads(t, s, m)
	over.Store(true)
	checkStages(t, probe.Spans(), map[string]time.Duration{"fetch": library, "download": weights, "upload": upload,
		"shaders": shaders})
	checkHistory(t, probe)
	retainsNothingMore(t, s, probe, m)
}

// checkStages checks that all stages are present, consecutive and not too short.
func checkStages(t *testing.T, spans []record.Span, least map[string]time.Duration) {
	t.Helper()
	if len(spans) != len(stages)+1 || spans[len(stages)].Name != record.BlockIn("load") {
		t.Fatalf("%d stages and a block, want %d: %+v", len(spans)-1, len(stages), spans)
	}
	for i, s := range spans[:len(stages)] {
		if s.Name != stages[i].Name {
			t.Errorf("stage %d is %s, want %s", i, s.Name, stages[i].Name)
		}
		if i > 0 && !s.Begin.Equal(spans[i-1].End) {
			t.Errorf("stage %s begins %v after the end of the previous one", s.Name, s.Begin.Sub(spans[i-1].End))
		}
		if took := s.End.Sub(s.Begin); took < least[s.Name] {
			t.Errorf("%s took %v, less than its delay of %v", s.Name, took, least[s.Name])
		}
	}
}

// checkHistory checks a load's history of live WebGPU memory.
func checkHistory(t *testing.T, probe *keeping) {
	t.Helper()
	live := probe.Figures(t, browser.MethodLedger, "page")["live_bytes"]
	history := probe.take()
	if len(history) < 3 || history[0].Values[0].Value != 0 || history[len(history)-1].Values[0].Value != live {
		t.Fatalf("%d samples, from %v to %v; live is %v", len(history), history[0].Values,
			history[len(history)-1].Values, live)
	}
	for i, h := range history[1:] {
		if h.End.Before(history[i].End) {
			t.Errorf("sample %d at %v follows one at %v", i+1, h.End, history[i].End)
		}
	}
}

// retainsNothingMore compares what is left after each load. Garbage is collected first, so heaps are exact to some
// tens of KiB; processes keep caches and vary.
func retainsNothingMore(t *testing.T, s *session, probe *keeping, m models.Model) {
	t.Helper()
	var ids []int
	var first, last map[string]float64
	const again = 2
	for i := range again + 1 { // the first model is already loaded
		if i > 0 {
			loads(t, s, m)
		}
		said, _ := says(t, s, 4)
		if ids == nil {
			ids = said
		}
		if len(said) != 4 || !slices.Equal(said, ids) {
			t.Errorf("load %d: ids %v instead of %v", i+1, said, ids)
		}
		unloaded(t, s, probe)
		last = map[string]float64{
			"wasm":        probe.Figures(t, browser.MethodWasm, "page")["memory_bytes"],
			"heap":        probe.Figures(t, browser.MethodHeap, "page")["used_bytes"],
			"arrays":      probe.Figures(t, browser.MethodHeap, "page")["backing_storage_bytes"],
			"renderer":    float64(probe.private(t, "renderer")),
			"gpu-process": float64(probe.private(t, "gpu-process")),
		}
		t.Log(last)
		if i == 0 {
			first = last // code is compiled and caches filled
		}
	}
	for what, most := range map[string]float64{"wasm": 0, "heap": 128 << 10, "arrays": 64 << 10,
		"renderer": 3 << 20, "gpu-process": 2 << 20} {
		if slope := (last[what] - first[what]) / again; slope > most {
			t.Errorf("%s: every load retains %.0f bytes more, at most %.0f allowed", what, slope, most)
		}
	}
	// WebLLM keeps the memory of its tokenizer, but no library's.
	if got := probe.Figures(t, browser.MethodWasm, "page")["memory_count"]; got != 1 {
		t.Errorf("%.0f WebAssembly memories are left instead of only the tokenizer's", got)
	}
	for _, w := range probe.Warnings() {
		t.Errorf("warning: %s: %s", w.Code, w.Text)
	}
}

// A worker has its own clock, heap, ledger and WebGPU; tokens and counts equal the page's.
func TestWorkerIsMeasured(t *testing.T) {
	s, probe := fresh(t, Config{Settings: browser.Settings{Thread: string(browser.WorkerThread)}})
	loads(t, s, tinyModel(t))
	here, _ := says(t, s, 64)
	if page, _ := says(t, loaded(t), 64); len(here) != 64 || !slices.Equal(here, page) {
		t.Errorf("in the worker %v, on the page %v", here, page)
	}
	checkParts(t, s, probe, files.pack, window)
	for role, methods := range map[string][]string{"worker": {browser.MethodHeap, browser.MethodWasm},
		"page": {browser.MethodHeap, browser.MethodPerformance, browser.MethodUserAgent}} {
		for _, method := range methods {
			if len(probe.Figures(t, method, role)) == 0 {
				t.Errorf("the %s is not read by %s", role, method)
			}
		}
	}
	unloaded(t, s, probe)
	var clocks []string
	for _, e := range probe.Events() {
		if e.Clock != nil {
			clocks = append(clocks, e.Clock.Isolate+" "+e.Clock.When)
		}
	}
	if want := []string{"worker start", "worker end"}; !slices.Equal(clocks, want) {
		t.Errorf("clocks %v, want %v", clocks, want)
	}
	if thread := probe.Engine().Policy["thread"]; thread != "worker" {
		t.Errorf("the recorded thread is %q", thread)
	}
	for _, w := range probe.Warnings() {
		t.Errorf("warning: %s: %s", w.Code, w.Text)
	}
	// WebGPU reports this error to no promise; the call continues.
	_, err := browser.Call[any](watched(t), s.Page,
		`navigator.gpu.requestAdapter().then((a) => a.requestDevice()).then(async (d) => {
		d.createBuffer({ size: 2 ** 40, usage: GPUBufferUsage.STORAGE });
		await d.queue.onSubmittedWorkDone();
		await new Promise(() => {});
	})`)
	if err == nil || !strings.Contains(err.Error(), "GPUValidationError") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line with GPUValidationError", err)
	}
}

// Each defect of a package or its transfer gives a one-line error, and the same page can then load a valid one.
func TestBrokenPackages(t *testing.T) {
	m, right := tinyModel(t), files.pack
	noWasm := right
	noWasm.Library.Path = filepath.Join(t.TempDir(), "library.wasm")
	check.Err(t, os.WriteFile(noWasm.Library.Path, []byte("this is no wasm"), 0o600))
	noWeights, noName := copyOf(t, right), copyOf(t, right)
	check.Err(t, os.Remove(filepath.Join(noWeights.Dir, "params_shard_0.bin")))
	rename(t, filepath.Join(noName.Dir, "tensor-cache.json"), "model.norm.weight", "model.form.weight")
	s, _ := idle(t)
	defer shards.Store(nil)
	const another = `import("./engine/web-llm.js").then((m) => {
		const reload = m.MLCEngine.prototype.reload;
		globalThis.restore = () => { m.MLCEngine.prototype.reload = reload; };
		m.MLCEngine.prototype.reload = async function (id) {
			await reload.call(this, id);
			this.loadedModelIdToPipeline.get(id).processNextToken = undefined;
		};
	})`
	for _, x := range []struct {
		pack   Package
		server answers // for shards of weights
		script string
		class  record.Class
		say    string
	}{
		{pack: noWasm, class: record.Other, say: "WebAssembly"},
		{pack: noWeights, class: record.Download, say: "params_shard_0.bin"},
		// TVM's message before the wasm aborts
		{pack: noName, class: record.Crash, say: "Cannot find parameter in cache: model.norm.weight"},
		{pack: right, server: replies(http.StatusNotFound), class: record.Download, say: "Request failed"},
		{pack: right, server: replies(http.StatusInternalServerError), class: record.Download, say: "Request failed"},
		{pack: right, server: cut, class: record.Download, say: "network error"},
		{pack: right, server: changed(func(b []byte) []byte { return b[:len(b)/2] }), class: record.Download,
			say: "exceeds shard size"},
		{pack: right, script: another, class: record.Other, say: "processNextToken"},
	} {
		s.webllm.packages[keyOf(m)] = x.pack
		shards.Store(&x.server)
		if x.script != "" {
			_, err := browser.Call[any](watched(t), s.Page, x.script)
			check.Err(t, err)
		}
		err := s.Load(watched(t), m)
		enginetest.OneLine(t, err, fault.Of(err), x.class, x.say, bundle.Version)
	}
	_, err := browser.Call[any](watched(t), s.Page, "restore()")
	check.Also(t, err)
	s.webllm.packages[keyOf(m)] = right
	shards.Store(nil)
	loads(t, s, m)
}

func copyOf(t *testing.T, p Package) Package {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "package")
	check.Err(t, os.CopyFS(dir, os.DirFS(p.Dir)))
	p.Dir = dir
	return p
}

func rename(t *testing.T, path, from, to string) {
	t.Helper()
	text := check.Read(t, path)
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s does not contain %s", path, from)
	}
	check.Err(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), from, to)), 0o600))
}
