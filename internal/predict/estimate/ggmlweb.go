package estimate

import "fmt"

// ggmlWebRuntime is ggml in WebAssembly. It reads the file into a memory of its own, which ends at 4 GiB, repacks
// nothing, and has no more for the model than llama.cpp on a CPU has.
var ggmlWebRuntime = &Runtime{name: "ggml-web", gguf: true, device: device{flags: []string{"ram-gb"}, places: inWasm{}},
	kv: "f32", reserves: ggmlRuntime.reserves, rules: ggmlWeb{},
	settings: ggmlSettings("wllama")}

// inWasm has WebAssembly memory alone.
type inWasm struct{ anywhere }

// needs returns what WebAssembly memory must hold.
func (inWasm) needs(e Estimate) []Need {
	n := Need{Place: Wasm, Hard: true, What: e.Setup.Engine.Title + " with weights, KV cache and compute buffer"}
	for _, name := range []string{Weights, KVReserved, Activation} {
		n.add(1, e.Component(name))
	}
	n.Low, n.Best, n.High = n.Low+ggmlWebHeap, n.Best+ggmlWebHeap, n.High+ggmlWebHeap
	return []Need{n}
}

// ggmlWebHeap is what the program itself has of WebAssembly memory.
const ggmlWebHeap = 16 * mib

type ggmlWeb struct{ ggml }

func (ggmlWeb) choose(e *Estimate) {
	if e.Sequences > 1 {
		e.warn("%s processes one sequence at a time: %d requests wait for one another", e.Setup.Engine.Title, e.Sequences)
		e.Sequences = 1
	}
	Change(&e.Setup, func(g *GGMLSettings) { g.NoMmap, g.Repacks = true, nil })
}

func (ggmlWeb) itself(e *Estimate, weights int64) (Component, []string) {
	c, _ := usual{}.itself(e, weights)
	return c, []string{"weights read into WebAssembly memory", "the KV cache, zeroed at load", e.touched.how,
		fmt.Sprintf("%s itself: compiled code, workers, and the page", e.Setup.Engine.Title)}
}
