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

// apiPS is what Ollama says of a model's memory.
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
			Sees:  "what Ollama itself says that the model takes, in all and on GPUs: its own estimate, made before the load",
			Blind: "what is really taken, by whom, and the server itself"}}
}

// engineLog is what the runner's log told of its buffers, and, by formula, how much of the KV cache is in use. held is
// how many tokens it holds; negative: not known.
func engineLog(said logs.Load, held *atomic.Int64) *logs.Source {
	return &logs.Source{
		Values: func(context.Context) (map[string]float64, error) { return said.Totals(int(held.Load())), nil },
		Is: record.Source{Role: roleRunner, Method: logs.Method,
			Sees: "the sizes of weights, KV cache and workspaces that the runner printed when it loaded the model: what it asked for; of the KV " +
				"cache the part in use, by the tokens that Ollama counted",
			Blind: "what of them is resident; everything else in the process"}}
}

// device tells what computes, where that was not known before the load.
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

// describe tells what runs: what the runner's command line and log say, else what was asked for, else that it is not
// told.
func (s *session) describe(l *loaded, r runner, digest string) *record.EngineInfo {
	kv, flash := r.kv, r.flash
	if s.own != nil {
		said := s.own.said.Said()
		kv = cmp.Or(said.KV, kv)
		flash = cmp.Or(map[string]string{"disabled": "off", "enabled": "on"}[said.Flash], flash)
		if asked := s.config.kvType(); kv != "" && kv != asked {
			s.warn("kv-type-differs", "Ollama was asked for a KV cache of %s and made one of %s: another takes flash attention, which this version has on some GPUs alone", asked, kv)
		}
	}
	count := func(reported, asked int) string {
		if n := cmp.Or(reported, asked); n > 0 {
			return strconv.Itoa(n)
		}
		return "not told"
	}
	parts := map[string]string{"model": l.name, "model_digest": digest}
	if len(r.args) > 0 {
		parts["runner"] = strings.Join(r.args, " ")
	}
	cached := "on, with another text before each prompt, which takes it out of a cache of Ollama's default policy; how many tokens still come from it is not told"
	switch {
	case !s.config.flushes() && s.own != nil:
		cached = "on; the tokens that come from it are told by the log"
	case !s.config.flushes():
		cached = "on; how many tokens come from it is not told"
	case s.own != nil:
		cached = "on, with another text before each prompt; the tokens that still come from it are told by the log"
	}
	return &record.EngineInfo{Name: Name, Version: s.version, Path: s.path, SHA256: s.sha256, Parts: parts,
		Args: s.args(), Policy: map[string]string{
			"weights_dtype": cmp.Or(l.dtype, "not told"), "kv_dtype": cmp.Or(kv, "not told"),
			"flash_attention": cmp.Or(flash, "not told"), "mmap": cmp.Or(r.mmap, "not told"),
			"threads": count(r.threads, s.config.Threads), "context": count(l.context, 0),
			"parallel":     count(r.parallel, 0),
			"prompt_cache": cached, "ignore_eos": "off: a text ends where the model ends it", "warmup": "off",
			"sampling":       "no penalties, no words that stop it: the model's own parameters are overruled",
			"special_tokens": "parsed in prompts; BOS as the model's own flag says",
		}}
}

// args are what a server of ours was told, but for its places, which are others each time.
func (s *session) args() []string {
	if s.own == nil {
		return nil
	}
	return append([]string{"serve"}, s.config.variables()...)
}
