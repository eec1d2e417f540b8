package logs

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"llmparity/internal/record"
)

// Load is what the log of a ggml program says about a load. The log is meant for people: only formats of known
// versions are recognised.
type Load struct {
	Buffers   map[string]map[string]float64 // bytes by kind (model, KV, RS, compute, output) and backend
	Context   int                           // in tokens
	Batch     int
	UBatch    int
	Flash     string // flash attention: enabled, disabled
	KV        string // dtype of the KV cache
	Cells     int    // tokens that fit in the KV cache, over all slots; 0: unknown
	Offloaded int    // layers on a GPU; -1: unknown
	All       int    // layers that a GPU could hold
	Devices   []string
	NoGPU     bool // the log says that there is no usable GPU
	Threads   int  // 0: unknown
	Vector    int  // bits of the widest vectors that the CPU's kernels were built for; 0: unknown

	caches []kvCache
}

// kvCache is one of a model's KV caches. Most models have one; those with a sliding window have two.
type kvCache struct {
	bytes float64
	cells int // tokens that fit, over all slots
}

// Layers says how many layers are on a GPU; nil: unknown, or none was asked for and none is.
func (l Load) Layers(asked int) *record.Layers {
	if l.Offloaded < 0 || asked == 0 && l.Offloaded == 0 {
		return nil
	}
	return &record.Layers{GPU: l.Offloaded, All: l.All}
}

// LayersText is Layers for people: the number that was asked for, if it is nil.
func (l Load) LayersText(asked int) string {
	if n := l.Layers(asked); n != nil {
		return fmt.Sprintf("%d of %d", n.GPU, n.All)
	}
	return strconv.Itoa(asked)
}

// OnCPU reports whether the log says that no layer is on a GPU. Some versions count layers as offloaded without a GPU,
// so the buffers of the weights count, too.
func (l Load) OnCPU() bool {
	onDevice := func(backend string) bool {
		host := strings.HasPrefix(backend, "CPU") || strings.HasSuffix(backend, "_Host") || backend == "AMX"
		return !host && l.Buffers["model"][backend] > 0
	}
	weights := slices.Collect(maps.Keys(l.Buffers["model"]))
	return l.NoGPU || l.Offloaded == 0 || len(weights) > 0 && !slices.ContainsFunc(weights, onDevice)
}

// Loads reads a log while it is written.
type Loads struct {
	mu    sync.Mutex
	lines Lines
	said  Load
}

// NewLoads keeps up to most bytes of a line. see gets each line and returns what is to be parsed here.
func NewLoads(most int, see func(line string) string) *Loads {
	r := &Loads{said: Load{Buffers: map[string]map[string]float64{}, Offloaded: -1}}
	r.lines = Lines{Max: most, Take: func(line string) { r.said.take(see(line)) }}
	return r
}

// Write never fails.
func (r *Loads) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines.Write(b)
}

// Said returns what the log has said so far.
func (r *Loads) Said() Load {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.said
	l.Buffers = map[string]map[string]float64{}
	for kind, of := range r.said.Buffers {
		l.Buffers[kind] = maps.Clone(of)
	}
	l.caches, l.Devices = slices.Clone(l.caches), slices.Clone(l.Devices)
	return l
}

// Functions have been renamed over the years, but the rest of these lines has changed little.
var (
	bufferLine  = regexp.MustCompile(`^\s*(\w+):\s+(\S.*?)\s+(?:(model|KV|RS|compute|output) )?buffer size\s*=\s*([0-9.]+) MiB`)
	cacheLine   = regexp.MustCompile(`^\s*\w+: size\s*=\s*([0-9.]+) MiB \(\s*([0-9]+) cells,(?:.*?/([0-9]+) seqs)?`)
	cellsLine   = regexp.MustCompile(`^\s*\w+: kv_size = ([0-9]+),`)
	kvLine      = regexp.MustCompile(`^\s*\w+: .*(?:\btype_k = '(\w+)'|\bK \((\w+)\):)`)
	numberLine  = regexp.MustCompile(`^\s*\w+: (n_ctx|n_batch|n_ubatch)\s*=\s*([0-9]+)$`)
	flashLine   = regexp.MustCompile(`(?i)^\s*\w+: (?:flash_attn\s*=\s*|flash attention (?:(?:was auto|not supported), set to )?)(enabled|disabled|0|1)\b`)
	layersLine  = regexp.MustCompile(`: offloaded ([0-9]+)/([0-9]+) layers to GPU`)
	threadsLine = regexp.MustCompile(`\bn_threads = ([0-9]+)\b`)
	systemLine  = regexp.MustCompile(`\bsystem_info: .*\| *CPU : (.*)`)
	devicesLine = regexp.MustCompile(`: using device (\S+ \(.+?\))(?: |$)`)
)

// take parses a line.
func (l *Load) take(line string) {
	if m := kvLine.FindStringSubmatch(line); m != nil {
		l.KV = m[1] + m[2]
	}
	if m := threadsLine.FindStringSubmatch(line); m != nil {
		l.Threads = number(m[1])
	}
	if m := cellsLine.FindStringSubmatch(line); m != nil {
		l.Cells = number(m[1])
	}
	if m := bufferLine.FindStringSubmatch(line); m != nil {
		kind := m[3]
		if kind == "" && strings.HasSuffix(m[1], "load_tensors") {
			kind = "model"
		}
		l.buffer(kind, m[2], mebibytes(m[4]))
	} else if m := cacheLine.FindStringSubmatch(line); m != nil {
		size, cells, parts := mebibytes(m[1]), number(m[2]), 1
		if m[3] != "" { // each slot has this many cells
			parts = number(m[3])
		}
		if size > 0 && cells > 0 && parts > 0 && parts < 1<<16 {
			l.caches = append(l.caches, kvCache{size, cells * parts})
			l.Cells = max(l.Cells, cells*parts)
		}
	} else if m := numberLine.FindStringSubmatch(line); m != nil {
		*map[string]*int{"n_ctx": &l.Context, "n_batch": &l.Batch, "n_ubatch": &l.UBatch}[m[1]] = number(m[2])
	} else if m := flashLine.FindStringSubmatch(line); m != nil {
		l.Flash = cmp.Or(map[string]string{"0": "disabled", "1": "enabled"}[m[1]], m[1])
	} else if m := layersLine.FindStringSubmatch(line); m != nil {
		l.Offloaded, l.All = number(m[1]), number(m[2])
	} else if m := devicesLine.FindStringSubmatch(line); m != nil {
		l.again()
		if !slices.Contains(l.Devices, m[1]) {
			l.Devices = append(l.Devices, m[1])
		}
	} else if m := systemLine.FindStringSubmatch(line); m != nil {
		l.Vector = vector(m[1])
	} else if strings.Contains(line, "no usable GPU found") {
		l.NoGPU = true
	}
}

// vector returns the bits of the widest vectors among a ggml build's features, as "SSE3 = 1 | AVX = 1".
func vector(features string) (bits int) {
	for feature := range strings.SplitSeq(features, "|") {
		name, value, _ := strings.Cut(feature, "=")
		n := number(strings.TrimSpace(value))
		switch strings.TrimSpace(name) {
		case "SSE3", "SSSE3", "NEON", "WASM_SIMD", "VSX", "VXE":
			bits = max(bits, 128*min(n, 1))
		case "AVX", "AVX2":
			bits = max(bits, 256*min(n, 1))
		case "AVX512":
			bits = max(bits, 512*min(n, 1))
		case "SVE_CNT": // in bytes
			bits = max(bits, 8*n)
		}
	}
	return bits
}

// again forgets the first of two loads, which was a trial of what fits.
func (l *Load) again() {
	if len(l.Buffers["KV"])+len(l.Buffers["RS"])+len(l.Buffers["compute"])+len(l.Buffers["output"]) > 0 {
		l.Buffers, l.caches, l.Devices, l.Cells = map[string]map[string]float64{}, nil, nil, 0
	}
}

// buffer notes a buffer. A load's device and model buffer come first. A model's KV caches are several buffers; of the
// others a backend has one at a time, which it reallocates to grow.
func (l *Load) buffer(kind, backend string, size float64) {
	if kind == "" || size < 0 {
		return
	}
	if kind == "model" {
		l.again()
	}
	if l.Buffers[kind] == nil {
		l.Buffers[kind] = map[string]float64{}
	}
	if kind == "compute" || kind == "output" {
		l.Buffers[kind][backend] = 0
	}
	l.Buffers[kind][backend] += size
}

// mebibytes returns bytes; -1 for an invalid number.
func mebibytes(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return -1
	}
	return math.Round(v * record.MiB)
}

// number returns -1 if the number is too large.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// kvUsed returns the size of the cells that a number of tokens uses in each cache.
func (l Load) kvUsed(tokens int) float64 {
	caches, used := l.caches, 0.0
	if len(caches) == 0 && l.Cells > 0 { // older versions report only the total
		caches = []kvCache{{cells: l.Cells}}
		for _, size := range l.Buffers["KV"] {
			caches[0].bytes += size
		}
	}
	for _, c := range caches {
		used += c.bytes / float64(c.cells) * float64(min(tokens, c.cells))
	}
	return math.Round(used)
}

// kinds maps buffers to their names in records.
var kinds = map[string]string{"model": "weights", "KV": "kv_reserved", "RS": "recurrent_state", "compute": "compute",
	"output": "output"}

// Totals returns the sizes in bytes. tokens is how many are in the KV cache; -1: unknown.
func (l Load) Totals(tokens int) map[string]float64 {
	v := map[string]float64{}
	for kind, name := range kinds {
		for _, size := range l.Buffers[kind] {
			v[name+"_bytes"] += size
		}
	}
	if _, ok := v["compute_bytes"]; ok {
		v["workspaces_bytes"] = v["compute_bytes"] + v["output_bytes"]
	}
	if l.Cells > 0 && tokens >= 0 && v["kv_reserved_bytes"] > 0 {
		v["kv_used_bytes"] = l.kvUsed(tokens)
	}
	return v
}

// Values returns the totals and the sizes by backend.
func (l Load) Values(tokens int) map[string]float64 {
	v := l.Totals(tokens)
	for kind, name := range kinds {
		for backend, size := range l.Buffers[kind] {
			v[name+"."+strings.Join(strings.Fields(backend), "-")+"_bytes"] = size
		}
	}
	if l.Cells > 0 {
		v["kv_cells_count"] = float64(l.Cells)
	}
	return v
}

// Method is the method of sizes from an engine's log.
const Method = "engine_log"
