package resolve

import (
	"context"

	"llmparity/internal/estimate"
	"llmparity/internal/machine"
	"llmparity/internal/sample/gpu"
)

// Limits of all current browsers.
const (
	wasmBound = 4 << 30 // 32-bit addresses
	cage      = 4 << 30 // size of V8's pointer compression cage
)

// Rooms returns the available memory of each place; unknown ones are left out.
func Rooms(ctx context.Context, e estimate.Estimate, gpus *gpu.Monitor) map[string]estimate.Room {
	rooms := map[string]estimate.Room{
		estimate.Wasm:     {Free: wasmBound, How: "limit of 32-bit WebAssembly"},
		estimate.Renderer: {Free: cage, How: "limit of V8's heap"},
	}
	if free, how, ok := machine.Room(ctx); ok {
		rooms[estimate.RAM] = estimate.Room{Free: free, How: how}
	}
	if gpus == nil {
		return rooms
	}
	if largest, sum, ok := gpus.Free(ctx); ok {
		rooms[estimate.VRAM] = estimate.Room{Free: largest, How: "free on the GPU with the most free memory"}
		if e.Setup.GPULayers > 0 || e.Setup.TensorParallel > 1 {
			rooms[estimate.VRAM] = estimate.Room{Free: sum, How: "free on all GPUs together"}
		}
	}
	return rooms
}
