package browser

import (
	"fmt"
	"slices"
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/sample"
	"llmparity/internal/kit/check"
)

// onDevice runs a script with its own device in a page without an engine, and returns how the ledger changed.
func onDevice(t *testing.T, p *Page, script string) (before, after map[string]int64) {
	t.Helper()
	const setUp = `globalThis.device ??= await (await navigator.gpu.requestAdapter()).requestDevice();
		const { STORAGE, COPY_DST, COPY_SRC, MAP_READ, MAP_WRITE, UNIFORM } = GPUBufferUsage;`
	read := func(script string) map[string]int64 {
		r, err := Call[ledgerReading](watched(t),
			p, fmt.Sprintf("(async () => { %s\n%s\nawait device.queue.onSubmittedWorkDone(); return llmparityLedger.read(); })()", setUp, script))
		check.Err(t, err)
		return r.Figures
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
		for figure, want := range map[string]int64{"live_bytes": x.bytes, "live_count": x.count,
			"created_count": x.created, "refused_count": x.refused, "uncertain_count": 0} {
			if got := after[figure] - before[figure]; got != want {
				t.Errorf("%s: %s grew by %d instead of %d", x.name, figure, got, want)
			}
		}
		if after["live_bytes"] != after["buffer_bytes"]+after["texture_bytes"] {
			t.Errorf("%s: %+v", x.name, after)
		}
	}
}

// Outside of scopes, an error reaches the page once, as it would without the ledger.
func TestLedgerLeavesErrorsToThePage(t *testing.T) {
	p, _ := blank(t)
	for name, script := range map[string]string{
		"a buffer":  `d.createBuffer({ size: d.limits.maxBufferSize + 4, usage: 128 })`,
		"a texture": `d.createTexture({ size: [1 << 20, 1], format: "rgba8unorm", usage: 4 })`,
	} {
		seen, err := Call[[]string](watched(t), p, `(async () => {
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

func TestLedgerCountsDroppedBuffers(t *testing.T) {
	p, _ := blank(t)
	before, after := onDevice(t, p, `for (let i = 0; i < 50; i++) device.createBuffer({ size: 1000, usage: STORAGE });`)
	if after["live_bytes"]-before["live_bytes"] != 50000 {
		t.Errorf("%d bytes instead of 50000", after["live_bytes"]-before["live_bytes"])
	}
	settled := map[string]int64{}
	for range 20 {
		check.Err(t, p.tab.Collect(watched(t)))
		if _, settled = onDevice(t, p, ""); settled["dropped_count"] == 50 {
			break
		}
	}
	if settled["dropped_count"] != 50 || settled["live_bytes"] != before["live_bytes"] {
		t.Errorf("of 50 unreferenced buffers %d were dropped; %d bytes are left",
			settled["dropped_count"], settled["live_bytes"])
	}
}

func TestPhasePeak(t *testing.T) {
	p, probe := blank(t)
	source := enginetest.Source(t, probe.Attached(), MethodLedger, "page").(sample.Peaker)
	spike := func(mib int) {
		onDevice(t, p, fmt.Sprintf("device.createBuffer({ size: %d << 20, usage: STORAGE }).destroy()", mib))
	}
	spike(8)
	if got := probe.Figures(t, MethodLedger, "page")["phase_peak_bytes"]; got != 8<<20 {
		t.Errorf("a peak of %.0f, want 8 MiB", got)
	}
	check.Err(t, source.ResetPeak(watched(t)))
	spike(3)
	got := probe.Figures(t, MethodLedger, "page")
	if got["phase_peak_bytes"] != 3<<20 || got["page_peak_bytes"] != 8<<20 {
		t.Errorf("after a reset: %.0f, since the start: %.0f", got["phase_peak_bytes"], got["page_peak_bytes"])
	}
}
