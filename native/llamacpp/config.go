package llamacpp

import (
	"cmp"
	"fmt"
	"strconv"

	"llmparity/internal/engine"
	"llmparity/internal/gguf"
	"llmparity/internal/record"
	"llmparity/native/logs"
)

// Config is what a user may choose of llama.cpp. The zero value is ready. What is chosen is sound: package plan sees to
// that.
type Config struct {
	Path  string // of llama-server; empty: searched for
	CLI   string // of the one-shot program; empty: searched for
	Cache string // the cache folder, where a build of our own lies under llamacpp/; empty: not searched

	// Threads is 1 unless set. A second thread on a machine of two cores falls to a tenth of its speed whenever
	// anything else runs, and in a measurement the sampler always does: threads spin at every layer's barrier while the
	// late one waits for a core. One thread is also what another engine's software GPU can be held against without a
	// core count in between.
	Threads      int
	BatchThreads int // in prefill; 0: as many as Threads

	// Batch and UBatch are how many tokens of a prompt are handed over, and computed, at a time; 0: llama.cpp's own.
	Batch, UBatch int

	// KVType is the element type of both halves of the KV cache, f32 unless set: f16 goes with another engine's cache
	// of f16. CacheK and CacheV say it of one half.
	KVType         string
	CacheK, CacheV string

	// Slots is how many generations go on at a time in a server, 1 unless set. Each has a whole context of its own, so
	// that the KV cache is as many times as large. Those that go on together are computed in one batch: each of them is
	// slower than alone.
	Slots int
	// PromptCache leaves what a generation put into its slot's KV cache there for the next one whose prompt begins
	// alike, as a conversation's turns do.
	PromptCache bool

	FlashAttention string // off unless set: on, auto
	Mmap           string // on unless set; off: read the model into memory in place of mapping its file
	GPULayers      int    // how many layers a GPU holds
}

func (c Config) threads() int { return max(1, c.Threads) }

func (c Config) batchThreads() int { return cmp.Or(c.BatchThreads, c.threads()) }

func (c Config) slots() int { return max(1, c.Slots) }

func (c Config) cacheK() string { return cmp.Or(c.CacheK, c.KVType, "f32") }

func (c Config) cacheV() string { return cmp.Or(c.CacheV, c.KVType, "f32") }

func (c Config) flashAttention() string { return cmp.Or(c.FlashAttention, "off") }

// common are the options that llama.cpp's programs share.
func (c Config) common(m engine.Model) []flag {
	flags := []flag{{"-m", m.Path}, {"-t", strconv.Itoa(c.threads())}, {"-tb", strconv.Itoa(c.batchThreads())},
		{"-ngl", strconv.Itoa(c.GPULayers)}}
	if c.GPULayers == 0 {
		flags = append(flags, flag{"-dev", "none"})
	}
	flags = append(flags,
		// A KV cache of f16, llama.cpp's default, and flash attention, which sums in another order, both turn close
		// greedy choices.
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
		// No guessing, no warm-up of its own (the runner has a phase for it), no network, and buffers' sizes in the
		// log.
		flag{"-fit", "off"}, flag{"--no-warmup"}, flag{"--offline"}, flag{"--log-colors", "off"}, flag{"-lv", logLevel})
}

// logLevel is the lowest at which the log tells the sizes of buffers. It has no line a token.
const logLevel = "4"

// noMmap is an option that newer versions have under another name.
const noMmap = "--no-mmap"

// server are llama-server's options; there is no secret in them. Its context is that of all slots together.
func (c Config) server(m engine.Model, port int) []flag {
	m.Context *= c.slots()
	flags := append(c.common(m), flag{"--host", "127.0.0.1"}, flag{"--port", strconv.Itoa(port)},
		flag{"-np", strconv.Itoa(c.slots())})
	if !c.PromptCache { // nothing is kept from one prompt to the next: every prefill is whole
		flags = append(flags, flag{"--no-cache-prompt"})
	}
	// What is kept is kept in the slots alone: copies in memory beside them would be in no forecast. No page.
	return append(flags, flag{"-cram", "0"}, flag{"--no-webui"})
}

// whole is the model with a context, where several slots need one that can be multiplied: the model's own.
func (c Config) whole(m engine.Model) (engine.Model, error) {
	if c.slots() == 1 || m.Context > 0 {
		return m, nil
	}
	f, err := gguf.Open(m.Path)
	if err != nil {
		return m, &engine.Failure{Class: record.SetUp, Err: err}
	}
	defer f.Close()
	family, err := f.Text("general.architecture")
	if err != nil {
		return m, err
	}
	n, err := f.Uint(family + ".context_length")
	if err != nil {
		return m, err
	}
	m.Context = int(min(n, 1<<30))
	return m, nil
}

// policy is what of the configuration bears on figures or on ids, and what of it the log shows to have been done.
func (c Config) policy(m engine.Model, said logs.Load) map[string]string {
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
		"gpu_layers":      said.Layers(c.GPULayers),
		"repacking":       repacking(said),
		"warmup":          "off",
		"special_tokens":  "parsed in prompts; BOS as the model's own flag says",
	}
	for name, n := range map[string]int{"batch": said.Batch, "ubatch": said.UBatch} {
		if n > 0 {
			p[name] = strconv.Itoa(n)
		}
	}
	return p
}
