package llamacpp

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
	"llmparity/native/logs"
)

// load is what llama.cpp's log tells of a load. The log is for people: what it does not say in the words of one of the
// versions that are known stays unsaid.
type load struct {
	buffers   map[string]map[string]float64 // bytes by kind (model, KV, RS, compute, output) and backend
	caches    []kvCache
	context   int // in tokens, as it was made
	batch     int
	ubatch    int
	flash     string // flash attention: enabled, disabled
	offloaded int    // layers on a GPU; -1: unsaid
	all       int    // layers that a GPU could hold
	devices   []string
	noGPU     bool // it says that it found none
}

// kvCache is one of a model's KV caches: most have one, those with a sliding window two.
type kvCache struct {
	bytes float64
	cells int // tokens that it holds, of all slots together
}

func (l load) layers(asked int) string {
	if l.offloaded < 0 || asked == 0 && l.offloaded == 0 {
		return strconv.Itoa(asked)
	}
	return fmt.Sprintf("%d of %d", l.offloaded, l.all)
}

// logReader reads the log as it is written.
type logReader struct {
	mu    sync.Mutex
	lines logs.Lines
	said  load
}

// newLogReader makes one; on sees every line, without its prefix; nil: nobody does.
func newLogReader(on func(line string)) *logReader {
	r := &logReader{said: load{buffers: map[string]map[string]float64{}, offloaded: -1}}
	r.lines = logs.Lines{Max: maxLine, Take: func(line string) {
		line = strings.TrimRight(prefix.ReplaceAllString(line, ""), "\r")
		r.said.take(line)
		if on != nil {
			on(line)
		}
	}}
	return r
}

// maxLine is how much of a line is kept: the sizes' lines are short.
const maxLine = 4096

// Write never fails.
func (r *logReader) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines.Write(b)
}

// load gives what was said so far.
func (r *logReader) load() load {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.said
	l.buffers = map[string]map[string]float64{}
	for kind, of := range r.said.buffers {
		l.buffers[kind] = maps.Clone(of)
	}
	l.caches = append([]kvCache(nil), r.said.caches...)
	l.devices = append([]string(nil), r.said.devices...)
	return l
}

// The lines that are read. Functions have had several names over the years; what follows them has changed little.
var (
	bufferLine  = regexp.MustCompile(`^\s*(\w+):\s+(\S.*?)\s+(?:(model|KV|RS|compute|output) )?buffer size\s*=\s*([0-9.]+) MiB`)
	cacheLine   = regexp.MustCompile(`: size\s*=\s*([0-9.]+) MiB \(\s*([0-9]+) cells,(?:.*?/([0-9]+) seqs)?`)
	numberLine  = regexp.MustCompile(`^\s*\w+: (n_ctx|n_batch|n_ubatch)\s*=\s*([0-9]+)$`)
	flashLine   = regexp.MustCompile(`(?i)^\s*\w+: (?:flash_attn\s*=\s*|flash attention (?:(?:was auto|not supported), set to )?)(enabled|disabled|0|1)\b`)
	layersLine  = regexp.MustCompile(`: offloaded ([0-9]+)/([0-9]+) layers to GPU`)
	devicesLine = regexp.MustCompile(`: using device (\S+ \(.+?\))(?: |$)`)
)

// take reads a line.
func (l *load) take(line string) {
	if m := bufferLine.FindStringSubmatch(line); m != nil {
		kind := m[3]
		if kind == "" && strings.HasSuffix(m[1], "load_tensors") {
			kind = "model"
		}
		l.buffer(kind, m[2], mebibytes(m[4]))
	} else if m := cacheLine.FindStringSubmatch(line); m != nil {
		size, cells, parts := mebibytes(m[1]), number(m[2]), 1
		if m[3] != "" { // each slot has so many cells of its own
			parts = number(m[3])
		}
		if size > 0 && cells > 0 && parts > 0 && parts < 1<<16 {
			l.caches = append(l.caches, kvCache{size, cells * parts})
		}
	} else if m := numberLine.FindStringSubmatch(line); m != nil {
		*map[string]*int{"n_ctx": &l.context, "n_batch": &l.batch, "n_ubatch": &l.ubatch}[m[1]] = number(m[2])
	} else if m := flashLine.FindStringSubmatch(line); m != nil {
		l.flash = cmp.Or(map[string]string{"0": "disabled", "1": "enabled"}[m[1]], m[1])
	} else if m := layersLine.FindStringSubmatch(line); m != nil {
		l.offloaded, l.all = number(m[1]), number(m[2])
	} else if m := devicesLine.FindStringSubmatch(line); m != nil {
		l.again()
		if !slices.Contains(l.devices, m[1]) {
			l.devices = append(l.devices, m[1])
		}
	} else if strings.Contains(line, "no usable GPU found") {
		l.noGPU = true
	}
}

// again forgets a load behind which another begins: the first was a trial of what fits.
func (l *load) again() {
	if len(l.buffers["KV"])+len(l.buffers["RS"])+len(l.buffers["compute"])+len(l.buffers["output"]) > 0 {
		l.buffers, l.caches, l.devices = map[string]map[string]float64{}, nil, nil
	}
}

// buffer notes a buffer. The device of a load, and its model's buffer, come before all others. The KV caches of one
// model are several buffers; of the others a backend has one at a time, and makes it anew when it must be larger.
func (l *load) buffer(kind, backend string, size float64) {
	if kind == "" || size < 0 {
		return
	}
	if kind == "model" {
		l.again()
	}
	if l.buffers[kind] == nil {
		l.buffers[kind] = map[string]float64{}
	}
	if kind == "compute" || kind == "output" {
		l.buffers[kind][backend] = 0
	}
	l.buffers[kind][backend] += size
}

// mebibytes gives bytes; -1 where that is no number.
func mebibytes(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return -1
	}
	return math.Round(v * record.MiB)
}

// number gives -1 for one that is too large.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// kvUsed is the part of the KV caches that so many tokens lie in: of each cache as many cells, which are all of one
// size.
func (l load) kvUsed(tokens int) float64 {
	used := 0.0
	for _, c := range l.caches {
		used += c.bytes / float64(c.cells) * float64(min(tokens, c.cells))
	}
	return math.Round(used)
}

// values are the sizes in bytes. tokens is how many the KV cache holds; -1: not known.
func (l load) values(tokens int) map[string]float64 {
	v := map[string]float64{}
	for kind, name := range map[string]string{"model": "weights", "KV": "kv_reserved", "RS": "recurrent_state",
		"compute": "compute", "output": "output"} {
		if len(l.buffers[kind]) == 0 {
			continue
		}
		for backend, size := range l.buffers[kind] {
			v[name+"_bytes"] += size
			v[name+"."+strings.Join(strings.Fields(backend), "-")+"_bytes"] = size
		}
	}
	if _, ok := v["compute_bytes"]; ok {
		v["workspaces_bytes"] = v["compute_bytes"] + v["output_bytes"]
	}
	if len(l.caches) > 0 {
		cells := 0
		for _, c := range l.caches {
			cells = max(cells, c.cells)
		}
		v["kv_cells_count"] = float64(cells)
		if tokens >= 0 {
			v["kv_used_bytes"] = l.kvUsed(tokens)
		}
	}
	return v
}
