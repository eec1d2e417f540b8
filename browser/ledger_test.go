package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// sourced is who has sources attached: a test's probe, or a plain page.
type sourced interface{ Attached() []sample.Source }

// sourceOf finds an attached source by its method and its process's role.
func sourceOf(t *testing.T, probe sourced, method, role string) sample.Source {
	t.Helper()
	for _, s := range probe.Attached() {
		if d := s.Describe(); d.Method == method && d.Role == role {
			return s
		}
	}
	t.Fatalf("no source reads the %s by %s", role, method)
	return nil
}

// figures reads a source's values by name.
func figures(t *testing.T, probe sourced, method, role string) map[string]float64 {
	t.Helper()
	r := record.NewSample()
	if err := sourceOf(t, probe, method, role).Read(watched(t), &r); err != nil {
		t.Fatalf("%s of the %s: %v", method, role, err)
	}
	all := map[string]float64{}
	for _, v := range r.Values {
		all[v.Name] = v.Value
	}
	return all
}

// The tiny model's KV cache: layers, KV heads, their size, bytes of a number.
const tinyKV = 2 * 2 * 2 * 32 * 4

func TestLedgerPartsTheModelsMemory(t *testing.T) {
	_, m := tinyModel(t)
	for _, window := range []int{512, 256, 100} {
		t.Run(fmt.Sprintf("context %d", window), func(t *testing.T) {
			p := files.pack
			if window != m.Context {
				var err error
				if p, err = pack(t.TempDir(), window, func(s string) { t.Log(s) }); err != nil {
					t.Fatal(err)
				}
			}
			m := m
			m.Context = window
			s, probe := idle(t)
			s.webllm.config.Package = packaged(p)
			if err := s.Load(watched(t), m); err != nil {
				t.Fatal(err)
			}
			checkParts(t, s, probe, p, window)
			if err := s.Unload(watched(t)); err != nil {
				t.Fatal(err)
			}
			if got := figures(t, probe, MethodLedger, "page"); got["live_bytes"] != 0 || got["live_count"] != 0 {
				t.Errorf("after Unload the ledger has %.0f bytes in %.0f objects", got["live_bytes"], got["live_count"])
			}
		})
	}
}

// packaged is a way to a package that is there.
func packaged(p Package) func(context.Context, engine.Model, Target, func(string)) (Package, error) {
	return func(context.Context, engine.Model, Target, func(string)) (Package, error) { return p, nil }
}

// checkParts generates with the model that is loaded, and holds the ledger's parts to what the package says.
func checkParts(t *testing.T, s *session, probe *enginetest.Probe, p Package, window int) {
	t.Helper()
	var tokens int
	u, err := s.Generate(watched(t), engine.Request{Prompt: "the quick brown fox", MaxTokens: 9, IgnoreEOS: true},
		func(record.Token) { tokens++ })
	if err != nil {
		t.Fatal(err)
	}
	got := figures(t, probe, MethodLedger, string(s.tab.isolate.thread))
	// The last token that was sampled was never fed back.
	held := len(u.PromptIDs) + tokens - 1
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
		t.Errorf("the parts add up to %.0f, the ledger to %.0f", sum, got["live_bytes"])
	}
	if got["created_count"]-got["released_count"] != got["live_count"] || got["phase_peak_bytes"] < got["live_bytes"] {
		t.Errorf("the ledger contradicts itself: %v", got)
	}
}

// paramBytes is what the package says of its weights.
func paramBytes(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "tensor-cache.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cache struct {
		Metadata struct{ ParamBytes int } `json:"metadata"`
	}
	if err := json.Unmarshal(text, &cache); err != nil || cache.Metadata.ParamBytes == 0 {
		t.Fatalf("ParamBytes: %v", err)
	}
	return cache.Metadata.ParamBytes
}

func TestLedgerIsPushedWithTokens(t *testing.T) {
	s := loaded(t)
	var pushed []record.Sample
	s.tab.ledger.Pushes(func(r record.Sample) { pushed = append(pushed, r) })
	defer s.tab.ledger.Pushes(nil)
	if _, err := s.Generate(watched(t), engine.Request{Prompt: "the quick brown fox", MaxTokens: 9, IgnoreEOS: true},
		func(record.Token) {}); err != nil {
		t.Fatal(err)
	}
	var names []string
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
}

// onDevice runs a script with a device of its own in a page without an engine, and gives what the ledger then says
// beyond before.
func onDevice(t *testing.T, p *tab, script string) (before, after ledgerReading) {
	t.Helper()
	const setUp = `globalThis.device ??= await (await navigator.gpu.requestAdapter()).requestDevice();
		const { STORAGE, COPY_DST, COPY_SRC, MAP_READ, MAP_WRITE, UNIFORM } = GPUBufferUsage;`
	read := func(script string) ledgerReading {
		r, err := call[ledgerReading](watched(t),
			p, fmt.Sprintf("(async () => { %s\n%s\nawait device.queue.onSubmittedWorkDone(); return llmparityLedger.read(); })()", setUp, script))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	return read(""), read(script)
}

func TestLedgerIsExact(t *testing.T) {
	p, _ := blank(t)
	for _, x := range []struct {
		name, script                   string
		bytes, count, created, refused int64
	}{
		{"buffers of any size and usage", `globalThis.keep = [
			device.createBuffer({ size: 1, usage: STORAGE }), device.createBuffer({ size: 12345, usage: UNIFORM | COPY_DST, label: "twelve" }),
			device.createBuffer({ size: 4, usage: MAP_READ | COPY_DST }), device.createBuffer({ size: 8 << 20, usage: STORAGE, mappedAtCreation: true })]`,
			1 + 12345 + 4 + 8<<20, 4, 4, 0},
		{"destroyed once, however often it is asked for",
			`for (const b of keep.splice(0)) { b.destroy(); b.destroy(); }`, -(1 + 12345 + 4 + 8<<20), -4, 0, 0},
		{"a size that is no whole number", `keep.push(device.createBuffer({ size: 64.9, usage: STORAGE }))`, 64, 1,
			1, 0},
		{"over the limit", `device.pushErrorScope("validation");
			device.createBuffer({ size: device.limits.maxBufferSize + 4, usage: STORAGE });
			if (!(await device.popErrorScope())) throw new Error("no error")`, 0, 0, 0, 1},
		{"against the rules", `device.pushErrorScope("validation");
			device.createBuffer({ size: 4, usage: 0 }); device.createBuffer({ size: 4, usage: MAP_READ | STORAGE });
			device.createBuffer({ size: 4, usage: MAP_WRITE | COPY_DST }); keep.push(device.createBuffer({ size: 32, usage: STORAGE }));
			if (!(await device.popErrorScope())) throw new Error("no error")`, 32, 1, 1, 3},
		{"what throws", `try { device.createBuffer({ size: 5, usage: STORAGE, mappedAtCreation: true }); throw 1 } catch (e) { if (e === 1) throw new Error("no error") }`, 0, 0, 0, 0},
		{"within the page's own scopes",
			`for (const f of ["out-of-memory", "validation", "internal"]) device.pushErrorScope(f);
			keep.push(device.createBuffer({ size: 2 << 20, usage: STORAGE | COPY_SRC | COPY_DST }));
			for (const e of await Promise.all([1, 2, 3].map(() => device.popErrorScope()))) if (e) throw e`, 2 << 20, 1, 1, 0},
		{"textures", `keep.push(device.createTexture({ size: [100, 50], format: "rgba8unorm", mipLevelCount: 3, usage: 4 }),
			device.createTexture({ size: [16, 16, 6], format: "r16float", usage: 4 }),
			device.createTexture({ size: [9, 7, 5], dimension: "3d", format: "rgba32float", usage: 4 }),
			device.createTexture({ size: [8, 8], format: "rgba8unorm", sampleCount: 4, usage: 16 }))`,
			(100*50+50*25+25*12)*4 + 16*16*6*2 + 9*7*5*16 + 8*8*4*4, 4, 4, 0},
		{"a texture that is refused", `device.pushErrorScope("validation"); device.createTexture({ size: [1 << 20, 1], format: "rgba8unorm", usage: 4 });
			if (!(await device.popErrorScope())) throw new Error("no error"); await new Promise(setTimeout)`, 0, 0, 0, 1},
		{"query sets", `keep.push(device.createQuerySet({ type: "occlusion", count: 12 }))`, 0, 1, 1, 0},
		{"all that is left, with its device",
			`device.destroy(); await device.lost; globalThis.device = undefined; return llmparityLedger.read()`,
			-(64 + 32 + 2<<20 + (100*50+50*25+25*12)*4 + 16*16*6*2 + 9*7*5*16 + 8*8*4*4), -8, 0, 0},
	} {
		before, after := onDevice(t, p, x.script)
		if got := after.Bytes - before.Bytes; got != x.bytes {
			t.Errorf("%s: %d bytes more, want %d", x.name, got, x.bytes)
		}
		if got := after.Count - before.Count; got != x.count {
			t.Errorf("%s: %d objects more, want %d", x.name, got, x.count)
		}
		if got := after.Created - before.Created; got != x.created {
			t.Errorf("%s: %d created, want %d", x.name, got, x.created)
		}
		if got := after.Refused - before.Refused; got != x.refused {
			t.Errorf("%s: %d refused, want %d", x.name, got, x.refused)
		}
		if after.Uncertain != 0 || after.Bytes != after.BufferBytes+after.TextureBytes {
			t.Errorf("%s: %+v", x.name, after)
		}
	}
}

// Outside of all scopes an error reaches the page as it would without the ledger, once.
func TestLedgerLeavesErrorsToThePage(t *testing.T) {
	p, _ := blank(t)
	for name, script := range map[string]string{
		"a buffer":  `d.createBuffer({ size: d.limits.maxBufferSize + 4, usage: 128 })`,
		"a texture": `d.createTexture({ size: [1 << 20, 1], format: "rgba8unorm", usage: 4 })`,
	} {
		seen, err := call[[]string](watched(t), p, `(async () => {
			const d = await (await navigator.gpu.requestAdapter()).requestDevice();
			const seen = [];
			d.addEventListener("uncapturederror", (e) => { seen.push(e.error.constructor.name); });
			`+script+`;
			await d.queue.onSubmittedWorkDone();
			await new Promise((done) => setTimeout(done, 50));
			return seen;
		})()`)
		if err != nil || !slices.Equal(seen, []string{"GPUValidationError"}) {
			t.Errorf("%s: the page sees %v (%v)", name, seen, err)
		}
	}
}

func TestLedgerSeesWhatIsDropped(t *testing.T) {
	p, _ := blank(t)
	before, after := onDevice(t, p, `for (let i = 0; i < 50; i++) device.createBuffer({ size: 1000, usage: STORAGE });`)
	if after.Bytes-before.Bytes != 50000 {
		t.Errorf("%d bytes were counted, want 50000", after.Bytes-before.Bytes)
	}
	settled := ledgerReading{}
	for range 20 {
		collect(t, p)
		if _, settled = onDevice(t, p, ""); settled.Dropped == 50 {
			break
		}
	}
	if settled.Dropped != 50 || settled.Bytes != before.Bytes {
		t.Errorf("of 50 buffers that nobody holds any more %d were dropped; %d bytes are left", settled.Dropped,
			settled.Bytes)
	}
}

func TestPeaksAreThePhases(t *testing.T) {
	p, probe := blank(t)
	source := sourceOf(t, probe, MethodLedger, "page").(sample.Peaker)
	spike := func(mib int) {
		onDevice(t, p, fmt.Sprintf("device.createBuffer({ size: %d << 20, usage: STORAGE }).destroy()", mib))
	}
	spike(8)
	if got := figures(t, probe, MethodLedger, "page")["phase_peak_bytes"]; got != 8<<20 {
		t.Errorf("a peak of %.0f, want 8 MiB", got)
	}
	if err := source.ResetPeak(watched(t)); err != nil {
		t.Fatal(err)
	}
	spike(3)
	got := figures(t, probe, MethodLedger, "page")
	if got["phase_peak_bytes"] != 3<<20 || got["page_peak_bytes"] != 8<<20 {
		t.Errorf("after a reset: %.0f, and %.0f since the start", got["phase_peak_bytes"], got["page_peak_bytes"])
	}
}

func TestAttributionLeavesWhatItDoesNotKnow(t *testing.T) {
	l := layout{params: []int64{100, 100, 4096}, kvToken: 8, layers: 2, pages: 2}
	a := l.attribute([]ledgerGroup{
		{Stage: "upload", Kind: "buffer", Bytes: 112, Count: 3},      // padded, and one too many
		{Stage: "upload", Kind: "buffer", Bytes: 4096 * 2, Count: 1}, // nobody's
		{Stage: "pipeline", Kind: "buffer", Bytes: 256, Count: 3},    // a workspace is as large as a layer's cache
		{Stage: "end", Kind: "buffer", Bytes: 4096, Count: 1},        // as large as a parameter, and too late
		{Stage: "device", Kind: "buffer", Bytes: 5, Count: 1},
		{Stage: "end", Kind: "texture", Bytes: 7, Count: 2},
	}, 3)
	want := attribution{Weights: 224, Padding: 24, KVReserved: 512, KVUsed: 48, Workspaces: 256 + 4096,
		Unattributed: 112 + 8192 + 5 + 14, Params: 2, KVLayers: 2}
	if a != want {
		t.Errorf("%+v, want %+v", a, want)
	}
	if a := l.attribute(nil, -1); a.KVUsed != record.Absent || a.KVReserved != 0 {
		t.Errorf("of nothing it says %+v", a)
	}
	// An engine at work without buffers as large as its KV cache, or with too few of them: the cache is there, its size
	// is not known.
	for _, n := range []int64{0, 1} {
		a := l.attribute([]ledgerGroup{
			{Stage: "pipeline", Kind: "buffer", Bytes: 512, Count: 2},
			{Stage: "pipeline", Kind: "buffer", Bytes: 256, Count: n}}, 3)
		if a.KVReserved != record.Absent || a.KVUsed != record.Absent || a.KVLayers != 0 || a.Workspaces != 1024+n*256 {
			t.Errorf("with %d buffers of the cache's size: %+v", n, a)
		}
		for _, v := range a.values() {
			if strings.HasPrefix(v.Name, "kv_") {
				t.Errorf("with %d buffers of the cache's size: %s is %g", n, v.Name, v.Value)
			}
		}
	}
}
