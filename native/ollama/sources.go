package ollama

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"llmparity/internal/machine"
	"llmparity/internal/record"
	"llmparity/native/logs"
)

// apiPS is what Ollama reports about a model's memory.
func (c *client) apiPS(model string) *logs.Source {
	return &logs.Source{
		Values: func(ctx context.Context) (map[string]float64, error) {
			models, err := c.loaded(ctx)
			if m, ok := find(models, model); ok {
				return map[string]float64{"size_bytes": m.Size, "size_vram_bytes": m.VRAM}, err
			}
			return nil, err
		},
		Is: record.Source{Role: roleServer, Method: "api_ps", Waits: true,
			Sees:  "what Ollama reports for the model, in total and on GPUs: its own estimate from before the load",
			Blind: "what is really used, by which process, and the server itself"}}
}

// engineLog is what the runner's log says about its buffers, and the used part of the KV cache, calculated from the
// number of tokens in it (held; negative: unknown).
func engineLog(said logs.Load, held *atomic.Int64) *logs.Source {
	return &logs.Source{
		Values: func(context.Context) (map[string]float64, error) { return said.Totals(int(held.Load())), nil },
		Is: record.Source{Role: roleRunner, Method: logs.Method,
			Sees: "sizes of weights, KV cache and workspaces that the runner logged when it loaded the model (allocated); the used part of the KV " +
				"cache is calculated from Ollama's token counts",
			Blind: "how much of them is resident; everything else in the process"}}
}

// device reports what computes, unless that was known before the load.
func (s *session) device(ctx context.Context, l *loaded) {
	if s.own != nil && !s.config.GPU {
		return
	}
	d := record.Device{Class: record.CPU, Name: machine.CPU()}
	if !s.local {
		d.Name = "the server's"
	}
	models, err := s.client.loaded(ctx)
	if m, ok := find(models, l.name); err == nil && ok && m.VRAM > 0 {
		d.Class, d.Name = record.GPU, "the server's"
		d.Detail = map[string]string{"size_vram_bytes": strconv.FormatFloat(m.VRAM, 'f', -1, 64),
			"size_bytes": strconv.FormatFloat(m.Size, 'f', -1, 64)}
	}
	s.probe.Event(record.Event{At: time.Now(), Device: &d})
}

// describe reports what is running: according to the runner's command line and log, else as requested, else unknown.
func (s *session) describe(l *loaded, r runner, digest string) *record.EngineInfo {
	kv, flash := r.kv, r.flash
	if s.own != nil {
		said := s.own.said.Said()
		kv = cmp.Or(said.KV, kv)
		flash = cmp.Or(map[string]string{"disabled": "off", "enabled": "on"}[said.Flash], flash)
		if asked := s.config.kvType(); kv != "" && kv != asked {
			s.warn("kv-type-differs", "Ollama made a KV cache of %[2]s instead of %[1]s: that needs flash attention, which this version has only on some GPUs", asked, kv)
		}
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
	cached := "on, but another text goes before each prompt, which clears it by Ollama's default policy; tokens still cached: unknown"
	switch {
	case !s.config.flushes() && s.own != nil:
		cached = "on; cached tokens are in the log"
	case !s.config.flushes():
		cached = "on; cached tokens: unknown"
	case s.own != nil:
		cached = "on, but another text goes before each prompt; tokens still cached are in the log"
	}
	return &record.EngineInfo{Name: Name, Version: s.version, Path: s.path, SHA256: s.sha256, Parts: parts,
		Args: s.args(), Policy: map[string]string{
			"weights_dtype": cmp.Or(l.dtype, "unknown"), "kv_dtype": cmp.Or(kv, "unknown"),
			"flash_attention": cmp.Or(flash, "unknown"), "mmap": cmp.Or(r.mmap, "unknown"),
			"threads": count(r.threads, s.config.Threads), "context": count(l.context, 0),
			"parallel":     count(r.parallel, 0),
			"prompt_cache": cached, "ignore_eos": "off: stops at end of text", "warmup": "off",
			"sampling":       "no penalties and no stop words; overrides the model's own parameters",
			"special_tokens": "parsed in prompts; BOS added if the model's flag says so",
		}}
}

// args returns the arguments and settings of our server, except for its folders and port, which always differ.
func (s *session) args() []string {
	if s.own == nil {
		return nil
	}
	return append([]string{"serve"}, s.config.variables()...)
}
