package estimate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/mlc"
)

// What a browser takes while WebLLM loads a model, step by step. WebLLM reads one shard after another from the
// browser's cache into an array buffer, and writes its tensors to WebGPU one by one. So there are at the same time,
// each measured with Chromium 156 and SwiftShader:
//   - the shard in the page: twice while it is read, once from then on, until garbage is collected, which comes late;
//   - memory that page and GPU process share, through which a tensor passes: as much as the largest so far, and it
//     stays;
//   - WebGPU's buffers: those of less than 4 MiB as large as the next power of two.
//
// Sizes are in bytes.
const (
	shardLimit = 32 * mib // beyond which a shard gets no further tensor
	wholeFrom  = 4 * mib  // buffers of that size and more are not rounded up

	collectAfter = 64 * mib       // array buffers that nobody needs any more before the page begins to collect them,
	collectFor   = 3              // and shards that come until it has done so
	rareShard    = 4 * shardLimit // more than this in one shard is one tensor of its kind: embedding or head

	pageItself   = 25 * mib // code and heaps, and bytes a token of the vocabulary
	pageToken    = 240
	pageLoaded   = 6 * mib  // heaps, once all is loaded
	mappedFiles  = 12 * mib // of programs and libraries
	mappedLater  = 4 * mib  // of the driver's, once it compiles
	otherGrowth  = 4 * mib  // of the browser's other processes, while they fetch
	driverItself = 20 * mib // compiled kernels, and the driver's own
	compiling    = 20 * mib // for a moment, and a share of the hidden state's size
	compilingTop = 23 * mib
)

// loading is a load that is followed.
type loading struct {
	page, shared, gpu int64 // what is held now
	highest           int64 // of all together
	model             int64 // of the GPU's, at the end: weights, KV cache and workspaces, not rounded
}

func (l *loading) look(page int64) { l.highest = max(l.highest, page+l.shared+l.gpu) }

// follow goes through the shards.
func (e *Estimate) follow(shards [][]int64) loading {
	m := e.Model
	var l loading
	fixed := int64(mappedFiles + otherGrowth)
	l.page = pageItself + pageToken*int64(m.Vocab) + fixed
	var read, since, last int64 // bytes of all shards so far, since the latest large one, and of that one
	var recent []int64          // the latest, without those of rare size
	for _, tensors := range shards {
		size := sum(tensors)
		dead := min(read, collectAfter+sum(recent))
		if last > 0 && since <= collectAfter {
			dead = max(dead, last+since)
		}
		l.look(l.page + dead + 2*size)
		for _, n := range tensors {
			l.shared = max(l.shared, n)
			l.gpu += e.onDevice(n)
			l.model += n
			l.look(l.page + dead + size)
		}
		if read, since = read+size, since+size; size > collectAfter {
			last, since = size, 0
		}
		if size <= rareShard {
			recent = append(recent[max(0, len(recent)+1-collectFor):], size)
		}
	}
	e.computes(&l)
	held := int64(0)
	if n := len(shards); n > 0 && sum(shards[n-1]) > collectAfter {
		held = sum(shards[n-1]) // a small one is collected before the last kernel is compiled
	}
	l.look(l.page - otherGrowth + pageLoaded + mappedLater + held)
	return l
}

// computes adds what comes once all weights are there.
func (e *Estimate) computes(l *loading) {
	layers := int64(0)
	for _, c := range e.Model.Caches {
		layers += int64(c.Layers)
	}
	cache, working := e.Component(KVReserved).Best, e.Component(Activation).Best
	if layers > 0 {
		l.gpu += layers * e.onDevice(cache/layers)
	}
	l.gpu += driverItself + compiling + min(compilingTop, int64(e.Model.Hidden)*mib/24)
	if !e.Setup.OnGPU {
		l.gpu += working
	}
	l.model += cache + working
}

// onDevice is what a buffer takes of the machine's memory: none where a graphics card has its own.
func (e *Estimate) onDevice(n int64) int64 {
	switch {
	case e.Setup.OnGPU || n <= 0:
		return 0
	case n >= wholeFrom:
		return n
	}
	return 1 << bits.Len64(uint64(n-1))
}

func sum(sizes []int64) int64 {
	total := int64(0)
	for _, n := range sizes {
		total += n
	}
	return total
}

// browserOwn is what the browser takes beyond the model's own components.
func (e *Estimate) browserOwn(w weighed) Component {
	shards, words := e.shards(w.whole.Best)
	l := e.follow(shards)
	best := l.highest
	if !e.Setup.OnGPU {
		best -= l.model
	}
	largest := int64(0)
	for _, s := range shards {
		for _, n := range s {
			largest = max(largest, n)
		}
	}
	c := Component{Name: Framework, Best: best, Confidence: Medium,
		Method: fmt.Sprintf("the load, step by step: %s, the largest tensor %s; each shard twice in the page "+
			"while it is read, %s and %d shards that wait to be collected, the largest tensor in memory shared by page and GPU process, the page, kernels and "+
			"driver. Rules of Chromium 156 with SwiftShader, beyond the browser's baseline", words, sized(largest),
			sized(collectAfter), collectFor)}
	c.Low, c.High = best*2/3, best*4/3+8*mib
	return c
}

// shards are the sizes of the tensors in each: as the package has them, or as a package would be written.
func (e *Estimate) shards(weights int64) ([][]int64, string) {
	tensors, words := e.Model.Tensors, "%d shards"
	if total := sum(tensors); total == 0 || math.Abs(float64(total-weights)) > 0.01*float64(weights) {
		tensors, words = e.guessed(weights), "%d shards, as a package of these weights would have them"
	}
	var out [][]int64
	size := int64(0)
	for _, n := range tensors {
		if len(out) == 0 || size+n > shardLimit {
			out, size = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], n)
		size += n
	}
	return out, fmt.Sprintf(words, len(out))
}

// mostTensors bounds what is followed one by one; models have some hundred.
const mostTensors = 1 << 16

// guessed are the tensors of a package by the architecture's weights. WebLLM's packages have queries, keys and values
// in one tensor, and so the two projections up.
func (e *Estimate) guessed(weights int64) []int64 {
	values, layers := int64(0), int64(max(e.Model.Layers, 1))
	lumped := false
	for _, w := range e.Model.Weights {
		values, lumped = values+w.Values(), lumped || w.Name == allLayers
	}
	if values == 0 || lumped || layers*int64(len(e.Model.Weights)) > mostTensors {
		return e.unnamed(weights)
	}
	scale := float64(weights) / float64(values)
	sizes := map[place]float64{}
	for n, w := range e.Model.Weights {
		at := placeOf(w.Name, n)
		each, times := scale*float64(w.Values()), int64(1)
		if w.Times > 1 { // the same in each layer
			each, times = each/float64(layers), layers
		}
		for layer := range times {
			if times > 1 {
				at.layer = layer
			}
			sizes[at] += each
		}
	}
	var out []int64
	for _, at := range slices.SortedFunc(maps.Keys(sizes), place.compare) {
		out = append(out, int64(sizes[at]))
	}
	return out
}

// unnamed are the tensors where only their sum is known: the embedding, and the rest in whole shards.
func (e *Estimate) unnamed(weights int64) []int64 {
	var out []int64
	if m := e.Model; m.Parameters > 0 {
		share := float64(m.Vocab) * float64(m.Hidden) / float64(m.Parameters)
		out = append(out, int64(min(share, 1)*float64(weights)))
	}
	for rest := weights - sum(out); rest > 0; rest -= shardLimit {
		out = append(out, min(rest, shardLimit))
	}
	return out
}

// place is where in a package a tensor stands; what has one place is one tensor there.
type place struct {
	layer       int64
	part, which int
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.layer, o.layer), cmp.Compare(p.part, o.part), cmp.Compare(p.which, o.which))
}

// placeOf goes by the names of a GGUF, and of transformers.
func placeOf(name string, which int) place {
	at := place{part: 4, which: which}
	switch {
	case strings.HasPrefix(name, "token_embd") || strings.Contains(name, "embed"):
		at.layer = -1
	case strings.HasPrefix(name, "output") || strings.Contains(name, "lm_head"):
		at.layer = math.MaxInt64
	default:
		_, _ = fmt.Sscanf(name, "blk.%d.", &at.layer)
	}
	for part, names := range [][]string{{"attn_q.", "attn_k.", "attn_v.", "q_proj", "k_proj", "v_proj"},
		{"attn_output.", "o_proj"},
		{"ffn_gate", "ffn_up", "gate_proj", "up_proj"}, {"ffn_down", "down_proj"}} {
		if slices.ContainsFunc(names, func(s string) bool { return strings.Contains(name, s) }) {
			at.part, at.which = part, 0
		}
	}
	return at
}

// tensorsOf are the sizes of a package's weights, in order.
func tensorsOf(weights []mlc.Weight) []int64 {
	out := make([]int64, 0, len(weights))
	for _, w := range weights {
		out = append(out, w.Bytes)
	}
	return out
}

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

// page is what a browser bounds: a buffer of WebGPU's, the memory of WebAssembly, and what a renderer may hold.
func (e Estimate) page() []Need {
	m := e.Model
	largest, what := e.largest(), largestTensor
	layers := 0
	for _, c := range m.Caches {
		layers += c.Layers
	}
	if layers > 0 {
		if n := e.Component(KVReserved).Best / int64(layers); n > largest {
			largest, what = n, "the KV cache of a layer"
		}
	}
	if m.Stated != nil {
		largest, what = m.Stated.Buffer, "what "+m.Stated.By+" states"
	}
	wasm := int64(49*mib + 72*m.Vocab)
	staged := e.Component(Framework)
	out := []Need{{Place: Wasm, Best: wasm, High: wasm + wasm/2, Hard: true,
		What: e.Setup.Engine.Title + "'s runtime and the tokenizer"},
		{Place: Renderer, Best: staged.Best, High: staged.High, Hard: true,
			What: "the page, and copies of weights on their way"}}
	if largest > 0 {
		out = append(out, Need{Place: Buffer, Best: largest, High: largest, Hard: true, What: what})
	}
	return out
}

const largestTensor = "the largest tensor"

// largest is what WebLLM's largest tensor takes: as the package says, or by the share that it has in its model.
// Packages have both gates in one tensor, and queries, keys and values in one.
func (e Estimate) largest() int64 {
	m := e.Model
	if m.Largest > 0 {
		return m.Largest
	}
	var all, most float64
	for _, w := range m.Weights {
		all += float64(w.Values())
		if w.Name != allLayers {
			most = max(most, float64(w.Rows)*float64(w.Cols))
		}
	}
	if h := float64(m.Hidden); m.Active == 0 { // a mixture's experts are more than a token passes
		most = max(most, 2*h*float64(m.Inter), h*float64((m.Heads+2*m.KVHeads)*m.HeadDim))
	}
	if all == 0 {
		return 0
	}
	return int64(float64(e.Component(Weights).Best) * min(most/all, 1))
}

// pageWorkspaces are what the KV cache has for a chunk of the prompt, and what the library's functions say that they
// use.
func (e *Estimate) pageWorkspaces() Component {
	m := e.Model
	h, i, q, kv := m.sizes()
	chunk, b := float64(e.Setup.PrefillChunk), width(e.DTypes.Activations)
	cache := chunk*((2*q+2*kv)*b+8*float64(m.Heads)) + tables
	of := fmt.Sprintf("queries, keys, values and output of a chunk of %.0f tokens, the cache's tables, and ", chunk)
	if l := m.Library; l != nil && len(l.MemoryUsage) > 0 {
		sum, most := usage(l)
		c := scaled(Activation, cache+1.05*float64(most), 1, 1, e.DTypes.Activations,
			of+"the largest function's memory_usage, as the library says it", Medium)
		c.Low, c.High = int64(cache), int64(cache+float64(sum)+1.1*float64(most))
		if l.Own == nil { // those of MLC's keep more
			c.High, c.Confidence = int64(2.5*float64(c.Best)), Low
		}
		return c
	}
	own := chunk*b*(h+2*i) + 4*float64(m.Vocab)
	return scaled(Activation, cache+1.05*own, 0.7, 2.5, e.DTypes.Activations,
		of+"its hidden state, the feed-forward part, and logits (no library tells its memory_usage)", Low)
}

// tables are what the KV cache of WebLLM has for its own bookkeeping, whatever the model.
const tables = 548 * kib

func usage(l *mlc.Library) (sum, most int64) {
	for _, n := range l.MemoryUsage {
		n = min(max(n, 0), 1<<44)
		sum, most = sum+n, max(most, n)
	}
	return sum, most
}

// NeedsF16 tells whether the WebGPU adapter must have shader-f16.
func (e Estimate) NeedsF16() bool { return e.runs(engine.MLC) && e.DTypes.Activations == "f16" }
