package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"llmparity/browser"
	"llmparity/internal/estimate"
	"llmparity/internal/machine"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
)

// judge says whether what was foretold of a cell fits into what is free now.
func (f *foretelling) judge(ctx context.Context, p record.Prediction, gpus *gpu.Monitor) record.Risk {
	if p.Absent != "" { // whoever still looks for it isn't waited for
		return estimate.Unjudged("nothing is foretold: " + p.Absent)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.by[p.Cell]
	if !ok {
		return estimate.Unjudged("how much the engine takes in all is not foretold")
	}
	rooms := here(ctx, e, gpus)
	if w, ok := f.engines[browser.Name].(*browser.WebLLM); ok && e.Setup.Engine == estimate.WebLLM {
		for _, n := range e.Needs() {
			if n.Place != estimate.Buffer {
				continue
			}
			if room, ok := f.buffer(ctx, w, n.Best); ok {
				rooms[n.Place] = room
			}
		}
	}
	return e.Risk(rooms)
}

// Bounds that hold in every browser of these years, and on every machine.
const (
	wasmBound = 4 << 30 // addresses of 32 bits
	cage      = 4 << 30 // V8 keeps the objects of a page, and pointers to them, within so much
	granted   = 1 << 27 // WebGPU's own least bound on what a shader is bound to
	// what WebLLM asks for; where an adapter has less it makes do with granted, and fallback for buffers
	wished   = 1 << 30
	fallback = 1 << 28
)

// here is what is free on this machine; what nobody tells is left out.
func here(ctx context.Context, e estimate.Estimate, gpus *gpu.Monitor) map[string]estimate.Room {
	rooms := map[string]estimate.Room{
		estimate.Wasm:     {Free: wasmBound, How: "WebAssembly's addresses have 32 bits"},
		estimate.Renderer: {Free: cage, How: "V8's cage"},
	}
	if free, how, ok := machine.Room(ctx); ok {
		rooms[estimate.RAM] = estimate.Room{Free: free, How: how}
	}
	if gpus == nil {
		return rooms
	}
	if largest, sum, ok := freeVRAM(ctx, gpus); ok {
		rooms[estimate.VRAM] = estimate.Room{Free: largest, How: "free on the GPU that has most"}
		if e.Setup.GPULayers > 0 || e.Setup.TensorParallel > 1 {
			rooms[estimate.VRAM] = estimate.Room{Free: sum, How: "free on all GPUs, over which the model is spread"}
		}
	}
	return rooms
}

// buffer is how large a buffer of WebGPU's may be. The browser is asked for its adapter only where that can matter, and
// once, whatever comes of it: before the next cell it would fail in the same way, and take as long.
func (f *foretelling) buffer(ctx context.Context, w *browser.WebLLM, need int64) (estimate.Room, bool) {
	if need <= granted {
		return estimate.Room{Free: granted, How: "every WebGPU adapter has buffers of so much"}, true
	}
	room, asked := f.bounds[w.Name()]
	if !asked {
		if d, err := w.Device(ctx, func(string) {}); err == nil { // an error is the launch's to tell
			room, _ = bufferOf(d)
		}
		f.bounds[w.Name()] = room
	}
	return room, room.Free > 0
}

// bufferOf is what WebLLM will have of an adapter.
func bufferOf(d record.Device) (estimate.Room, bool) {
	whole, err := strconv.ParseInt(d.Detail["maxBufferSize"], 10, 64)
	bound, err2 := strconv.ParseInt(d.Detail["maxStorageBufferBindingSize"], 10, 64)
	if err != nil || err2 != nil {
		return estimate.Room{}, false
	}
	return grants(whole, bound), true
}

// grants is what an adapter with these limits, of a buffer and of a storage binding, gives WebLLM.
func grants(whole, bound int64) estimate.Room {
	room := estimate.Room{Free: wished, How: "what WebLLM asks the adapter for"}
	if whole < wished {
		room.Free = fallback
	}
	if bound < wished {
		room.Free = min(room.Free, granted)
	}
	limits := fmt.Sprintf("the adapter's maxBufferSize is %d and its maxStorageBufferBindingSize %d", whole, bound)
	switch {
	case whole < fallback || bound < granted:
		room = estimate.Room{How: limits + ", with which WebLLM does not start"}
	case room.Free < wished:
		room.How = limits + ", and WebLLM asks for less at once then"
	}
	return room
}

// freeVRAM is what is free on the GPU that has most, and on all together.
func freeVRAM(ctx context.Context, gpus *gpu.Monitor) (largest, sum int64, ok bool) {
	parts := map[string]bool{} // GPUs that are divided: their parts have the memory
	for _, g := range gpus.GPUs() {
		if whole, _, part := strings.Cut(g.Role, "."); part {
			parts[whole] = true
		}
	}
	for _, s := range gpus.Sources() {
		d := s.Describe()
		if number, ok := strings.CutPrefix(d.Role, "gpu"); !ok || number == "" || number[0] < '0' || number[0] > '9' ||
			parts[d.Role] {
			continue // processors' energy, sums over GPUs
		}
		r := record.NewSample()
		if err := s.Read(ctx, &r); err != nil {
			continue
		}
		values := map[string]float64{}
		for _, v := range r.Values {
			values[v.Name] = v.Value
		}
		free, told := values["memory_free_bytes"]
		if total, has := values["memory_total_bytes"]; !told && has {
			var used float64
			if used, told = values["memory_used_bytes"]; told {
				free = total - used
			}
		}
		if told {
			largest, sum, ok = max(largest, int64(free)), sum+int64(free), true
		}
	}
	return largest, sum, ok
}
