package estimate

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"llmparity/internal/kit/words"
	"llmparity/internal/predict/layout"
)

// Memory of a browser while WebLLM loads a model. WebLLM reads the shards one after another from the browser's cache
// into array buffers and writes their tensors to WebGPU one by one. Measured with Chromium 156 and SwiftShader, these
// exist at the same time:
//   - the shard in the page: twice while it is read, then once until garbage collection, which comes late;
//   - memory shared by page and GPU process, as large as the largest tensor so far;
//   - WebGPU buffers; those below 4 MiB are rounded up to the next power of two.
//
// Sizes are in bytes.
const (
	shardLimit = 32 * mib // a shard of this size gets no further tensor
	wholeFrom  = 4 * mib  // buffers from this size on are not rounded up

	collectAfter = 64 * mib       // unused array buffers before garbage collection starts
	collectFor   = 3              // shards that arrive until it has finished
	rareShard    = 4 * shardLimit // a larger shard holds a single tensor: embedding or head

	pageItself   = 25 * mib // code and heaps
	pageToken    = 240      // per token of the vocabulary
	pageLoaded   = 6 * mib  // heaps after the load
	mappedFiles  = 12 * mib // programs and libraries
	mappedLater  = 4 * mib  // the driver's, when it compiles
	otherGrowth  = 4 * mib  // other browser processes while fetching
	driverItself = 20 * mib // compiled kernels and the driver
	compiling    = 14 * mib // temporarily, plus a share of the hidden size
	compilingTop = 23 * mib
)

// loading is the state of a simulated load.
type loading struct {
	page, shared, gpu int64 // held now
	highest           int64 // highest sum so far
	model             int64 // weights, KV cache and workspaces on the GPU at the end, not rounded
}

func (l *loading) look(page int64) { l.highest = max(l.highest, page+l.shared+l.gpu) }

// follow simulates the load of the shards.
func (e *Estimate) follow(shards [][]int64) loading {
	m := e.Model
	var l loading
	l.page = pageItself + pageToken*int64(m.Vocab) + mappedFiles + otherGrowth
	var read, since, last int64 // bytes of all shards so far; since the latest large shard; of that shard
	var recent []int64          // the latest shards, without single-tensor ones
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
	e.launches(&l)
	held := int64(0)
	if n := len(shards); n > 0 && sum(shards[n-1]) > collectAfter {
		held = sum(shards[n-1]) // a smaller one is collected before the last kernel is compiled
	}
	l.look(l.page - otherGrowth + pageLoaded + mappedLater + held)
	return l
}

// launches adds the allocations after all weights are loaded.
func (e *Estimate) launches(l *loading) {
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

// onDevice returns the main memory of a WebGPU buffer: none if the adapter is a GPU with its own memory.
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

// loads is the browser's memory beyond the model's own components.
func (e *Estimate) loads(weights int64) Component {
	shards, count := e.shards(weights)
	l := e.follow(shards)
	best := l.highest
	if !e.Setup.OnGPU {
		best -= l.model
	}
	largest := int64(0)
	for _, s := range shards {
		largest = max(largest, slices.Max(s))
	}
	c := Component{Name: Framework, Best: best, Confidence: Medium,
		Method: fmt.Sprintf("a simulation of the load (%s, largest tensor %s). It counts each shard twice while it is read, uncollected "+
			"garbage of %s and %d shards, a buffer shared with the GPU process, the page, kernels and the driver. "+
			"Its constants were fitted to Chromium 156 with SwiftShader", count,
			words.Size(largest), words.Size(collectAfter), collectFor)}
	c.Low, c.High = best*2/3, best*4/3+8*mib
	return c
}

// shards returns the tensor sizes of each shard: the package's own, or those of a package written from the weights.
func (e *Estimate) shards(weights int64) ([][]int64, string) {
	tensors, count := e.Model.Tensors, "%d shards"
	if e.packed != nil {
		tensors = e.packed
	}
	if total := sum(tensors); total == 0 || math.Abs(float64(total-weights)) > 0.01*float64(weights) {
		tensors, count = layout.Tensors(e.Model, weights, shardLimit), "%d shards (assumed)"
	}
	out := layout.Shards(tensors, shardLimit)
	return out, fmt.Sprintf(count, len(out))
}
