package resolve

import (
	"context"

	"llmparity/internal/estimate"
	"llmparity/internal/machine"
	"llmparity/internal/sample/gpu"
)

// Bounds that hold in every browser of these years, and on every machine.
const (
	wasmBound = 4 << 30 // addresses of 32 bits
	cage      = 4 << 30 // V8 keeps the objects of a page, and pointers to them, within so much
)

// Rooms is what is free on this machine, place by place; what is not known is left out.
func Rooms(ctx context.Context, e estimate.Estimate, gpus *gpu.Monitor) map[string]estimate.Room {
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
	if largest, sum, ok := gpus.Free(ctx); ok {
		rooms[estimate.VRAM] = estimate.Room{Free: largest, How: "free on the GPU that has most"}
		if e.Setup.GPULayers > 0 || e.Setup.TensorParallel > 1 {
			rooms[estimate.VRAM] = estimate.Room{Free: sum, How: "free on all GPUs, over which the model is spread"}
		}
	}
	return rooms
}
