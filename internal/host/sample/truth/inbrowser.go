package truth

// InBrowser is the table of a browser page. assets/page/truth.js allocates its kinds.
func InBrowser() Table {
	t := Table{Title: "A page in a browser", Kinds: []Kind{
		{ID: "arrays", Name: "JS arrays"},
		{ID: "buffers", Name: "ArrayBuffers"},
		{ID: "worker-buffers", Name: "a worker's ArrayBuffers"},
		{ID: "wasm", Name: "WebAssembly memory"},
		{ID: "wasm-shared", Name: "WebAssembly memory of threads"},
		{ID: "wasm-untouched", Name: "WebAssembly memory, untouched"},
		{ID: "gpu-buffers", Name: "WebGPU buffers", gpu: true},
		{ID: "gpu-buffers-untouched", Name: "WebGPU buffers, untouched", gpu: true},
		{ID: "gpu-textures", Name: "WebGPU textures", gpu: true},
	}}
	type wants = map[string]want
	onGPU := wants{"gpu-buffers": exact, "gpu-buffers-untouched": exact, "gpu-textures": exact}
	t.Rows = []Row{
		{ID: "page/performance.memory", Who: "page", Figure: "performance.memory (not recorded)",
			wants: wants{"arrays": all, "buffers": all}},
		{ID: "page/heap_usage.used_bytes", Who: "page", Figure: "heap_usage used_bytes", wants: wants{"arrays": all}},
		{ID: "page/performance_metrics.js_heap_used_bytes", Who: "page",
			Figure: "performance_metrics js_heap_used_bytes",
			wants:  wants{"arrays": all}},
		{ID: "page/heap_usage.backing_storage_bytes", Who: "page", Figure: "heap_usage backing_storage_bytes",
			wants: wants{"buffers": all}},
		{ID: "worker/heap_usage.backing_storage_bytes", Who: "worker", Figure: "heap_usage backing_storage_bytes",
			wants: wants{"worker-buffers": all}},
		{ID: "page/user_agent_memory.total_bytes", Who: "page", Figure: "user_agent_memory total_bytes",
			wants: wants{"arrays": all, "buffers": all, "worker-buffers": all, "wasm-shared": all}},
		{ID: "page/wasm_memory.memory_bytes", Who: "page", Figure: "wasm_memory memory_bytes",
			wants: wants{"wasm": exact, "wasm-shared": exact, "wasm-untouched": exact}},
		{ID: "page/webgpu_ledger.live_bytes", Who: "page", Figure: "webgpu_ledger live_bytes", wants: onGPU},
	}
	inRenderer := wants{"arrays": all, "buffers": all, "worker-buffers": all, "wasm": all, "wasm-shared": all}
	// in the GPU process, which computes on the CPU
	onSoftware := wants{"gpu-buffers": all, "gpu-buffers-untouched": all, "gpu-textures": all}
	everything := wants{}
	for _, of := range []wants{inRenderer, onSoftware} {
		for kind := range of {
			everything[kind] = between(0.97, 1.03) // other memory moves, too
		}
	}
	for _, p := range []struct {
		who   string
		wants wants
	}{{"renderer", inRenderer}, {"gpu-process", onSoftware}, {"browser", wants{}}, {EveryProcess, everything}} {
		for _, figure := range []string{"USS", "PSS", "RSS"} {
			t.Rows = append(t.Rows, Row{ID: p.who + "/" + figure, Who: p.who, Figure: figure, wants: p.wants,
				where: onLinux})
		}
		// No expectation: browsers reserve more than they use, and keep it.
		t.Rows = append(t.Rows, Row{ID: p.who + "/VMS", Who: p.who, Figure: "VMS"})
	}
	// GPU memory as the driver reports it, if there is a GPU.
	t.Rows = append(t.Rows,
		Row{ID: "gpu-process/" + GPUMemory, Who: "gpu-process", Figure: GPUMemory},
		Row{ID: EveryGPU + "/" + DeviceMemory, Who: EveryGPU, Figure: DeviceMemory})
	return t
}

// Names of GPU figures.
const (
	GPUMemory    = "gpu_memory_bytes"
	DeviceMemory = "memory_used_bytes"
	EveryGPU     = "all GPUs"
)

// EveryProcess is the sum over all processes of a browser.
const EveryProcess = "all processes"
