package ollama

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
	"llmparity/native/logs"
)

// slot is what the log says about a request: the number of prompt tokens, after truncation to the context, and how
// many of them were cached.
type slot struct{ prompt, used int }

// logReader reads the log of a server that we started while it is written. The log is meant for people: only formats
// of known versions are recognised.
type logReader struct {
	*logs.Loads // what the runner prints

	mu    sync.Mutex
	slots []slot // reported requests that nobody has asked for
	cut   bool   // a prompt or text was truncated since the last call
}

func newLogReader() *logReader {
	r := &logReader{}
	r.Loads = logs.NewLoads(8192, r.see) // a line may contain a prompt
	return r
}

// Lines of the server.
var (
	slotLine   = regexp.MustCompile(`^time=\S+ level=\S+ source=\S+ msg="loading cache slot" .*\bprompt=(\d+) used=(\d+) `)
	layersLine = regexp.MustCompile(`^time=\S+ level=\S+ source=\S+ msg="(offloaded \d+/\d+ layers to GPU)"`)
	cutLine    = regexp.MustCompile(`^time=\S+ level=\S+ source=\S+ msg="(?:truncating input prompt|context limit hit - shifting)" `)
)

// see reads a line of the server, and passes on those of the runner.
func (r *logReader) see(line string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := slotLine.FindStringSubmatch(line); m != nil {
		prompt, err := strconv.Atoi(m[1])
		used, err2 := strconv.Atoi(m[2])
		if err == nil && err2 == nil && used <= prompt {
			r.slots = append(r.slots, slot{prompt, used})
			r.slots = r.slots[max(0, len(r.slots)-mostSlots):]
		}
	}
	r.cut = r.cut || cutLine.MatchString(line)
	if m := layersLine.FindStringSubmatch(line); m != nil {
		return "load: " + m[1] // as llama.cpp writes it
	}
	if timed.MatchString(line) || request.MatchString(line) {
		return ""
	}
	return line
}

// forget discards reported requests, so that the next report is about the next request.
func (r *logReader) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots, r.cut = nil, false
}

// mostSlots limits how many reports are kept.
const mostSlots = 1024

// logLag is how long the log line of a request may arrive after the request has ended.
const logLag = time.Second

// await returns the report of a request with this number of prompt tokens; 0: the latest report. Other reports stay.
// If several prompts of this length differ in their cached tokens, the cached tokens are unknown.
func (r *logReader) await(prompt int) (slot, bool) {
	for deadline := time.Now().Add(logLag); ; time.Sleep(time.Millisecond) { // it is usually there
		reported, ok := r.find(prompt)
		if ok || time.Now().After(deadline) {
			return reported, ok
		}
	}
}

// find removes a report from the list.
func (r *logReader) find(prompt int) (reported slot, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.slots); prompt == 0 && n > 0 {
		reported, r.slots = r.slots[n-1], nil
		return reported, true
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
		return slot{}, false
	}
	r.slots = slices.Delete(r.slots, at, at+1)
	return reported, true
}

// wasCut reports, once, whether something was truncated since forget.
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

// plain returns a line without its time; empty if it says nothing about a failure.
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

// apiPS is what Ollama reports about a model's memory.
func (c *client) apiPS(model string) *sample.Func {
	return &sample.Func{
		Values: func(ctx context.Context) (map[string]float64, error) {
			models, err := c.loaded(ctx)
			if m, ok := find(models, model); ok {
				return map[string]float64{"size_bytes": m.Size, "size_vram_bytes": m.VRAM}, err
			}
			return nil, err
		},
		Source: record.Source{Role: roleServer, Method: "api_ps", Waits: true,
			Sees:  "what Ollama reports for the model, in total and on GPUs: its own estimate from before the load",
			Blind: "what is really used, by which process, and the server itself"}}
}

// engineLog is what the runner's log says about its buffers, and the used part of the KV cache, calculated from the
// number of tokens in it (held; negative: unknown).
func engineLog(said logs.Load, held *atomic.Int64) *sample.Func {
	return &sample.Func{
		Values: func(context.Context) (map[string]float64, error) { return said.Totals(int(held.Load())), nil },
		Source: record.Source{Role: roleRunner, Method: logs.Method,
			Sees: "sizes of weights, KV cache and workspaces that the runner logged when it loaded the model (allocated); the used part of the KV " +
				"cache is calculated from Ollama's token counts",
			Blind: "how much of them is resident; everything else in the process"}}
}

// device reports what computes, unless that was known before the load.
func (s *session) device(ctx context.Context, l *loaded) {
	if s.own != nil && !s.config.GPU {
		return
	}
	models, err := s.client.loaded(ctx)
	m, ok := find(models, l.name)
	said := logs.Load{Offloaded: -1}
	if s.own != nil {
		said = s.own.said.Said()
	}
	d := deviceOf(m, said)
	switch {
	case s.own != nil:
		if d.Asked = string(record.GPU); !ok || err != nil {
			d.Class, d.Name = "unknown", "unknown: Ollama does not list the model"
		}
	case s.family.tree == nil && d.Class == record.CPU:
		d.Name = "the server's"
	}
	s.probe.Event(record.Event{At: time.Now(), Device: &d})
}

// deviceOf is what a model runs on: what the runner's log says about layers, else Ollama's estimate for its list.
func deviceOf(m listed, said logs.Load) record.Device {
	if said.Offloaded == 0 || said.NoGPU || said.Offloaded < 0 && m.VRAM <= 0 {
		return record.Device{Class: record.CPU, Name: machine.CPU()}
	}
	d := record.Device{Class: record.GPU, Name: cmp.Or(strings.Join(said.Devices, ", "), "the server's"),
		Detail: map[string]string{"size_vram_bytes": strconv.FormatFloat(m.VRAM, 'f', -1, 64),
			"size_bytes": strconv.FormatFloat(m.Size, 'f', -1, 64)}}
	if said.Offloaded > 0 {
		d.Detail["gpu_layers"] = said.LayersText(said.All)
	}
	if record.SoftwareGPU(d.Name) {
		d.Class = record.SoftwareAdapter
	}
	return d
}

// ran reports what was asked for and what the runner does. A quantized KV cache needs flash attention, which some
// versions have only on some GPUs; then Ollama silently makes another one.
func (s *session) ran(r runner) {
	const line = "the runner's command line"
	rows := []ran.Row{ran.With(ran.Threads, s.config.Threads, r.threads, line)}
	if s.own != nil {
		said := s.own.said.Said()
		rows[0] = ran.With(ran.Threads, s.config.Threads, cmp.Or(r.threads, said.Threads), line+" or log")
		rows = append(rows, ran.As(ran.KV, s.config.kvType(), cmp.Or(said.KV, r.kv), line+" or log"))
		if s.config.GPU && said.Offloaded >= 0 {
			rows = append(rows, ran.As("GPU layers", "", said.LayersText(said.Offloaded), "the runner's log"))
		}
	}
	s.probe.Event(record.Event{At: time.Now(), Ran: rows})
}

// describe reports what is running: according to the runner's command line and log, else as requested, else unknown.
func (s *session) describe(l *loaded, r runner, digest string) *record.EngineInfo {
	kv, flash := r.kv, r.flash
	if s.own != nil {
		said := s.own.said.Said()
		kv = cmp.Or(said.KV, kv)
		flash = cmp.Or(map[string]string{"disabled": "off", "enabled": "on"}[said.Flash], flash)
	}
	count := func(reported, asked int) string {
		if n := cmp.Or(reported, asked); n > 0 {
			return strconv.Itoa(n)
		}
		return "unknown"
	}
	parts := map[string]string{"model": l.name, "model_digest": digest}
	if len(r.args) > 0 {
		parts["runner"] = strings.Join(r.args, " ")
	}
	var args []string // without its folders and port, which always differ
	cached, known := "on", "unknown"
	if s.config.flushes() {
		cached = "on, but another text goes before each prompt"
	}
	if s.own != nil {
		known, args = "in the log", append([]string{"serve"}, s.config.variables()...)
	}
	return &record.EngineInfo{Name: Name, Version: s.version, Path: s.path, SHA256: s.sha256, Parts: parts,
		Computes: "ggml", Args: args, Policy: map[string]string{
			"weights_dtype": cmp.Or(l.dtype, "unknown"), "kv_dtype": cmp.Or(kv, "unknown"),
			"flash_attention": cmp.Or(flash, "unknown"), "mmap": cmp.Or(r.mmap, "unknown"),
			"threads": count(r.threads, s.config.Threads), "context": count(l.context, 0),
			"parallel":     count(r.parallel, 0),
			"prompt_cache": cached + "; tokens still cached: " + known,
			"ignore_eos":   "off: stops at end of text", "warmup": "off",
			"sampling":       "no penalties and no stop words; overrides the model's own parameters",
			"special_tokens": "special tokens in prompts are recognized; BOS is added if the model's file says so",
		}}
}
