package ollama

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"llmparity/internal/record"
	"llmparity/native/logs"
)

// slot is what the log tells of a request: how many tokens its prompt had once it was cut to the context, and how many
// of them lay in the cache.
type slot struct{ prompt, used int }

// logReader reads the log of a server that we started, as it is written. The log is for people: what it does not say in
// the words of one of the versions that are known stays unsaid.
type logReader struct {
	mu    sync.Mutex
	slots []slot        // the requests that were told of and not yet asked for
	more  chan struct{} // closed with each
	lines logs.Lines
	sizes map[string]float64 // bytes
	boxes map[string]float64 // bytes of buffers that are made anew when they must be larger, by kind and backend
	kv    string             // the element type of the KV cache
	cells int                // tokens that it has room for: more than were asked for where Ollama rounds up
	flash string             // off, on
	cut   bool               // a prompt was cut, or a part of a text dropped, since it was last asked
}

func newLogReader() *logReader {
	r := &logReader{more: make(chan struct{}), sizes: map[string]float64{}, boxes: map[string]float64{}}
	r.lines = logs.Lines{Max: maxLine, Take: r.take}
	return r
}

// maxLine is how much of a line is kept: a prompt may be in it.
const maxLine = 8192

// Write never fails.
func (r *logReader) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines.Write(b)
}

// The lines that are read. Those of llama.cpp, which computes, have had several names over the years.
var (
	slotLine   = regexp.MustCompile(`^time=\S+ level=\S+ source=\S+ msg="loading cache slot" .*\bprompt=(\d+) used=(\d+) `)
	cutLine    = regexp.MustCompile(`^time=\S+ level=\S+ source=\S+ msg="(?:truncating input prompt|context limit hit - shifting)" `)
	bufferLine = regexp.MustCompile(`^\w+:\s+(\S.*?)\s+(model|KV|compute|output) buffer size\s*=\s*([0-9.]+) MiB`)
	cellsLine  = regexp.MustCompile(`^\w*kv_cache\w*: (?:kv_size = (\d+),|size = .* \(\s*(\d+) cells,)`)
	kvLine     = regexp.MustCompile(`^\w*kv_cache\w*: .*\btype_k = '(\w+)'`)
	kvSizeLine = regexp.MustCompile(`^\w+: .*\bK \((\w+)\):`)
	flashLine  = regexp.MustCompile(`^\w+: flash_attn\s*=\s*(0|1)`)
	loadLine   = regexp.MustCompile(`^load_tensors: loading model tensors`)
)

// take reads a line.
func (r *logReader) take(line string) {
	if m := cellsLine.FindStringSubmatch(line); m != nil {
		if n, err := strconv.Atoi(m[1] + m[2]); err == nil {
			r.cells = max(r.cells, n) // a model with a sliding window has two caches
		}
	}
	if m := slotLine.FindStringSubmatch(line); m != nil {
		prompt, err := strconv.Atoi(m[1])
		used, err2 := strconv.Atoi(m[2])
		if err == nil && err2 == nil && used <= prompt {
			r.slots = append(r.slots, slot{prompt, used})
			r.slots = r.slots[max(0, len(r.slots)-mostSlots):] // nobody has asked for long
			close(r.more)
			r.more = make(chan struct{})
		}
	} else if cutLine.MatchString(line) {
		r.cut = true
	} else if m := bufferLine.FindStringSubmatch(line); m != nil {
		r.size(m[1], m[2], m[3])
	} else if m := kvLine.FindStringSubmatch(line); m != nil {
		r.kv = m[1]
	} else if m := kvSizeLine.FindStringSubmatch(line); m != nil {
		r.kv = m[1]
	} else if m := flashLine.FindStringSubmatch(line); m != nil {
		r.flash = map[string]string{"0": "off", "1": "on"}[m[1]]
	} else if loadLine.MatchString(line) { // another load, of another runner
		r.sizes, r.boxes, r.kv, r.flash, r.cells = map[string]float64{}, map[string]float64{}, "", "", 0
	}
}

// size notes a buffer: a model and its KV cache may have several. Of the others a backend has one at a time.
func (r *logReader) size(backend, kind, text string) {
	mib, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return
	}
	name := map[string]string{"model": "weights_bytes", "KV": "kv_reserved_bytes", "compute": "compute_bytes",
		"output": "output_bytes"}[kind]
	size := math.Round(mib * record.MiB)
	if kind == "compute" || kind == "output" {
		r.sizes[name] -= r.boxes[kind+backend]
		r.boxes[kind+backend] = size
	}
	r.sizes[name] += size
}

// said is what a log says of a load; zero what it does not.
type said struct {
	sizes     map[string]float64 // bytes
	kv, flash string
	cells     int
}

// loaded gives what was said of the last load.
func (r *logReader) loaded() said {
	r.mu.Lock()
	defer r.mu.Unlock()
	sizes := maps.Clone(r.sizes)
	if c, ok := sizes["compute_bytes"]; ok {
		sizes["workspaces_bytes"] = c + sizes["output_bytes"]
	}
	return said{sizes, r.kv, r.flash, r.cells}
}

// forget empties what was said of requests: the next thing said is of the next request.
func (r *logReader) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots, r.cut = nil, false
}

// mostSlots is how much of what nobody asks for is kept.
const mostSlots = 1024

// logLag is how long the log's line of a request may take to reach us once the request has ended.
const logLag = time.Second

// await gives what was said of a request by its prompt's number of tokens; 0: whatever came last. What was said of
// others is left to them. Of several prompts of one length nobody knows which is which: where they differ, what came
// from the cache is untold.
func (r *logReader) await(prompt int) (slot, bool) {
	late := time.After(logLag)
	for {
		reported, ok, more := r.find(prompt)
		if ok {
			return reported, true
		}
		select {
		case <-more:
		case <-late:
			return slot{}, false
		}
	}
}

// find takes what was said out of the list; more is closed with what is said next.
func (r *logReader) find(prompt int) (reported slot, ok bool, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.slots); prompt == 0 && n > 0 {
		reported, r.slots = r.slots[n-1], nil
		return reported, true, nil
	}
	at := -1
	for i, s := range r.slots {
		switch {
		case s.prompt != prompt:
		case at < 0:
			at, reported = i, s
		case s.used != reported.used:
			reported.used = record.CacheUnknown
		}
	}
	if at < 0 {
		return slot{}, false, r.more
	}
	r.slots = slices.Delete(r.slots, at, at+1)
	return reported, true, nil
}

// wasCut tells, once, whether something was left out of a text since forget.
func (r *logReader) wasCut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	cut := r.cut
	r.cut = false
	return cut
}

var (
	timed   = regexp.MustCompile(`^time=\S+ level=(\w+) source=\S+ msg=`)
	request = regexp.MustCompile(`^\[GIN(-debug)?\]`)
)

// plain is a line without its time; empty where it says nothing of what went wrong.
func plain(line string) string {
	if request.MatchString(line) {
		return ""
	}
	m := timed.FindStringSubmatchIndex(line)
	if m == nil {
		return line
	}
	if level := line[m[2]:m[3]]; level == "DEBUG" || level == "TRACE" {
		return ""
	}
	return strings.TrimSpace(line[m[1]:])
}
