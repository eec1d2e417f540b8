package llamacpp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/machine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
	"llmparity/native/logs"
	"llmparity/native/place"
)

// Config is the configuration of llama.cpp. The zero value is ready. Package plan has validated the values.
type Config struct {
	Path  string // of llama-server; empty: search for it
	CLI   string // of the one-shot program; empty: search for it
	Cache string // cache folder, with our own builds in llamacpp/; empty: not searched

	// Threads is 1 unless set. On a machine with two cores a second thread drops to a tenth of its speed whenever
	// anything else runs, and during a measurement the sampler always does: threads spin at each layer's barrier while
	// the late one waits for a core. One thread also compares directly with another engine's software GPU.
	Threads      int
	BatchThreads int // for prefill; 0: same as Threads

	// Batch and UBatch are how many tokens of a prompt are handed over, and computed, at a time; 0: llama.cpp's own.
	Batch, UBatch int

	// KVType is the dtype of the KV cache, f32 unless set. CacheK and CacheV override it for keys and values.
	KVType         string
	CacheK, CacheV string

	// Slots is how many requests a server handles at a time, 1 unless set. Each slot has a whole context of its own,
	// which multiplies the KV cache. Concurrent requests are computed in one batch, so each is slower than alone.
	Slots int
	// PromptCache keeps a request's KV cache for the next prompt with the same beginning, as in a conversation.
	PromptCache bool

	FlashAttention string // off unless set: on, auto
	Mmap           string // on unless set; off: read the model into memory instead of mapping its file
	GPULayers      int    // layers on a GPU
	Fallback       bool   // GPU layers may be computed on the CPU

	in *place.Place // where llama-server runs; nil: on this machine
}

func (c Config) threads() int { return max(1, c.Threads) }

func (c Config) batchThreads() int { return cmp.Or(c.BatchThreads, c.threads()) }

func (c Config) slots() int { return max(1, c.Slots) }

func (c Config) cacheK() string { return cmp.Or(c.CacheK, c.KVType, "f32") }

func (c Config) cacheV() string { return cmp.Or(c.CacheV, c.KVType, "f32") }

func (c Config) flashAttention() string { return cmp.Or(c.FlashAttention, "off") }

// common returns the options that both programs share.
func (c Config) common(m models.Model) []flag {
	flags := []flag{{"-m", m.Path}, {"-t", strconv.Itoa(c.threads())}, {"-tb", strconv.Itoa(c.batchThreads())},
		{"-ngl", strconv.Itoa(c.GPULayers)}}
	if c.GPULayers == 0 {
		flags = append(flags, flag{"-dev", "none"})
	}
	flags = append(flags,
		// llama.cpp's defaults, an f16 KV cache and flash attention (another order of sums), flip close greedy
		// choices.
		flag{"-ctk", c.cacheK()}, flag{"-ctv", c.cacheV()}, flag{"-fa", c.flashAttention()})
	for _, size := range []struct {
		name  string
		value int
	}{{"-b", c.Batch}, {"-ub", c.UBatch}, {"-c", m.Context}} {
		if size.value > 0 {
			flags = append(flags, flag{size.name, strconv.Itoa(size.value)})
		}
	}
	if c.Mmap == "off" {
		flags = append(flags, flag{noMmap})
	}
	return append(flags,
		// No automatic fitting, no warm-up (the runner has a phase for it), no network. Of the levels that log buffer
		// sizes, 4 is the lowest; it logs nothing per token.
		flag{"-fit", "off"}, flag{"--no-warmup"}, flag{"--offline"}, flag{"--log-colors", "off"}, flag{"-lv", "4"})
}

// noMmap was renamed in newer versions.
const noMmap = "--no-mmap"

// server returns llama-server's options, without secrets. Its -c is the context of all slots together.
func (c Config) server(m models.Model, port int) []flag {
	m.Context *= c.slots()
	flags := append(c.common(m), flag{"--host", "127.0.0.1"}, flag{"--port", strconv.Itoa(port)},
		flag{"-np", strconv.Itoa(c.slots())})
	if !c.PromptCache { // every prefill starts from nothing
		flags = append(flags, flag{"--no-cache-prompt"})
	}
	// Only slots keep caches: predictions do not cover further copies in memory. No web page.
	return append(flags, flag{"-cram", "0"}, flag{"--no-webui"})
}

// oneShot returns the options of a run. prompt is a file; mark is printed once the text has ended.
func (c Config) oneShot(m models.Model, prompt, mark string, r engine.Request) []flag {
	flags := append(c.common(m), flag{"-f", prompt}, flag{"-n", strconv.Itoa(r.MaxTokens)},
		// print only the raw text as it is generated, and log the number of prompt tokens
		flag{"-no-cnv"}, flag{"--no-display-prompt"}, flag{"--simple-io"}, flag{"--no-escape"},
		flag{"--verbose-prompt"},
		// at the end of the text, print the mark and wait for input
		flag{"-i"}, flag{"--in-prefix", mark}, flag{"--temp", strconv.FormatFloat(max(0, r.Temperature), 'g', -1, 64)})
	if r.IgnoreEOS {
		flags = append(flags, flag{"--ignore-eos"})
	}
	// A single sampler: the largest logit at temperature 0, otherwise the whole distribution at that temperature.
	if r.Temperature <= 0 {
		return append(flags, flag{"--top-k", "1"})
	}
	return append(flags, flag{"--top-k", "0"}, flag{"--top-p", "1"}, flag{"--min-p", "0"})
}

// policy lists the settings that affect figures or ids, and what the log says was actually used.
func (c Config) policy(m models.Model, said logs.Load) map[string]string {
	kv := c.cacheK()
	if v := c.cacheV(); v != kv {
		kv = fmt.Sprintf("K %s, V %s", kv, v)
	}
	flash := c.flashAttention()
	if said.Flash != "" && flash == "auto" {
		flash = "auto: " + said.Flash
	}
	threads, batch := strconv.Itoa(c.threads()), strconv.Itoa(c.batchThreads())
	p := map[string]string{
		"weights_dtype":   m.DType,
		"kv_dtype":        kv,
		"flash_attention": flash,
		"threads":         threads,
		"threads_batch":   batch,
		"prompt_cache":    map[bool]string{false: "off", true: "on"}[c.PromptCache],
		"mmap":            cmp.Or(c.Mmap, "on"),
		"gpu_layers":      said.LayersText(c.GPULayers),
		"repacking":       repacking(said),
		"warmup":          "off",
		"special_tokens":  "special tokens in prompts are recognized; BOS is added if the model's file says so",
	}
	if c.slots() > 1 { // reserved memory is multiplied by it
		p["parallel"] = strconv.Itoa(c.slots())
	}
	c.in.Describe(p)
	for name, n := range map[string]int{"batch": said.Batch, "ubatch": said.UBatch} {
		if n > 0 {
			p[name] = strconv.Itoa(n)
		}
	}
	return p
}

// Settings returns the configured settings; what llama.cpp chooses is not known yet.
func (l *Engine) Settings(m models.Model) map[string]string {
	c := l.config
	s := c.policy(m, logs.Load{Offloaded: -1, Batch: c.Batch, UBatch: c.UBatch})
	delete(s, "repacking")           // known after the load
	if c.Batch > 0 || c.UBatch > 0 { // cannot compute more at a time than is submitted
		s["ubatch"] = strconv.Itoa(min(cmp.Or(c.Batch, 2048), cmp.Or(c.UBatch, 512))) // llama.cpp's defaults
	}
	if m.Context > 0 {
		s["context"] = strconv.Itoa(m.Context)
	}
	return s
}

// repacking reports whether weights were repacked for the processor into memory of their own.
func repacking(l logs.Load) string {
	switch {
	case len(l.Buffers["model"]) == 0:
		return "unknown"
	case l.Buffers["model"]["CPU_REPACK"] > 0:
		return "on"
	}
	return "off"
}

// fits refuses a program that lacks an option, or a device for GPU layers: it would silently compute on the CPU.
func (c Config) fits(ctx context.Context, b identity, flags []flag) error {
	if _, err := b.fitted(flags); err != nil || c.GPULayers == 0 || c.Fallback {
		return err
	}
	lines, err := b.program.Ask(ctx, b.path, "--list-devices", c.environment(""))
	if err == nil && !slices.ContainsFunc(lines, func(line string) bool { // a name, a colon and a description
		name, _, ok := strings.Cut(strings.TrimSpace(line), ": ")
		return ok && !strings.ContainsAny(name, " \t") && name != "BLAS" && name != "warning"
	}) {
		err = &engine.Failure{Class: record.Fallback, Err: fault.New(fault.Fallback, "use a llama.cpp build with GPU "+
			"support, omit --llamacpp-gpu-layers, or give --allow-fallback to measure the CPU",
			"%s: no GPU for %d layers (--list-devices shows none)", b.path, c.GPULayers)}
	}
	return err
}

// ran reports the device that holds the GPU layers, if any were requested, and what else was asked for and is in the
// log.
func (c Config) ran(p engine.Probe, said logs.Load) {
	const log = "llama.cpp's log"
	rows := []ran.Row{ran.With(ran.Threads, c.Threads, said.Threads, log),
		ran.As(ran.KV, c.cacheK(), said.KV, log)}
	if c.GPULayers > 0 {
		p.Event(record.Event{At: time.Now(), Device: new(c.device(said))})
		if said.All > 0 {
			rows = append(rows, ran.With("GPU layers", min(c.GPULayers, said.All), said.Offloaded, log))
		}
	}
	p.Event(record.Event{At: time.Now(), Ran: rows})
}

// device returns the device that holds the GPU layers, according to the log.
func (c Config) device(said logs.Load) record.Device {
	d := record.Device{Class: record.GPU, Name: strings.Join(said.Devices, ", "), Asked: string(record.GPU),
		Detail: map[string]string{"threads": strconv.Itoa(c.threads()), "gpu_layers": said.LayersText(c.GPULayers),
			"cpu": machine.CPU()}}
	switch {
	case said.OnCPU():
		d.Class, d.Name = record.CPU, machine.CPU()
	case said.Offloaded < 0: // must not be compared with any other
		d.Class, d.Name = "unknown", "unknown: llama.cpp's log does not say whether layers were put on a GPU"
	case d.Name == "":
		d.Name = "unknown: llama.cpp's log names no device"
	case record.SoftwareGPU(d.Name):
		d.Class = record.SoftwareAdapter
	}
	return d
}
