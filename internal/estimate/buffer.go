package estimate

import "fmt"

// Sizes of WebGPU's buffers.
const (
	// GrantedBuffer is WebGPU's own least bound on what a shader is bound to.
	GrantedBuffer = 1 << 27
	// SwiftShaderBuffer is how large SwiftShader's buffers and storage bindings may be, in Chromium's of these years.
	SwiftShaderBuffer = 1 << 30

	wishedBuffer   = 1 << 30 // what WebLLM asks for; where an adapter has less it makes do with the two below
	fallbackBuffer = 1 << 28
)

// Grants is what an adapter with these limits, of a buffer and of a storage binding, gives WebLLM.
func Grants(whole, bound int64) Room {
	room := Room{Free: wishedBuffer, How: "what WebLLM asks the adapter for"}
	if whole < wishedBuffer {
		room.Free = fallbackBuffer
	}
	if bound < wishedBuffer {
		room.Free = min(room.Free, GrantedBuffer)
	}
	limits := fmt.Sprintf("the adapter's maxBufferSize is %d and its maxStorageBufferBindingSize %d", whole, bound)
	switch {
	case whole < fallbackBuffer || bound < GrantedBuffer:
		room = Room{How: limits + ", with which WebLLM does not start"}
	case room.Free < wishedBuffer:
		room.How = limits + ", and WebLLM asks for less at once then"
	}
	return room
}

// LargestBuffer is what WebLLM has of an adapter that was not asked: SwiftShader's limit, or what it asks a GPU for.
func LargestBuffer(onGPU bool) Room {
	if onGPU {
		return Room{Free: wishedBuffer, How: "what WebLLM asks a GPU for, where the adapter grants it"}
	}
	return Room{Free: SwiftShaderBuffer, How: "SwiftShader's limit"}
}
