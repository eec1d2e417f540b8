package estimate

import (
	"maps"
	"slices"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/modelsize"
)

// Layers without keys and values, with windows, and with other sizes within the window, by architecture.
func TestCachesByKeys(t *testing.T) {
	u := func(n int) uint32 { return uint32(n) }
	pattern := func(times int, list ...bool) []bool { return slices.Repeat(list, times) }
	for name, c := range map[string]struct {
		architecture string
		layers       int
		kv, size     int
		more         map[string]any
		context      int
		values       int64 // reserved
		trust        Confidence
	}{
		"unknown architecture": {"foooo", 48, 2, 256, nil, 8192, 48 * 8192 * 2 * 512, Low},
		"plain":                {"qwen3", 48, 2, 256, nil, 8192, 48 * 8192 * 2 * 512, High},
		"recurrent": {"qwen3next", 48, 2, 256,
			map[string]any{"full_attention_interval": u(4), "ssm.conv_kernel": u(4)}, 8192, 12 * 8192 * 2 * 512, Low},
		"recurrent, by default": {"qwen3next", 48, 2, 256, map[string]any{"ssm.conv_kernel": u(4)}, 8192,
			12 * 8192 * 2 * 512, Low},
		"a state beside": {"falcon-h1", 24, 2, 128, map[string]any{"ssm.state_size": u(128)}, 8192,
			24 * 8192 * 2 * 256, Low},
		"chunks": {"llama4", 48, 8, 128, nil, 32768, (12*32768 + 36*(8192+512)) * 8 * 256, High},
		"chunks that are off": {"llama4", 48, 8, 128, map[string]any{"attention.sliding_window": u(0)}, 32768,
			48 * 32768 * 8 * 256, High},
		"shared": {"gemma3n", 35, 2, 256,
			map[string]any{"attention.sliding_window": u(512), "attention.shared_kv_layers": u(15),
				"attention.sliding_window_pattern": pattern(7, true, true, true, true, false)}, 8192,
			(4*8192 + 16*1024) * 2 * 512, High},
		"other sizes in the window": {"gemma4", 30, 2,
			512, map[string]any{"attention.sliding_window": u(1024), "attention.key_length_swa": u(256),
				"attention.value_length_swa": u(256), "rope.freq_base_swa": float32(1e4),
				"attention.sliding_window_pattern": pattern(5, true, true, true, true, true, false)}, 8192,
			5*8192*2*1024 + 25*1536*2*512, High},
		"a key that nobody knows": {"gemma4", 30, 2, 512, map[string]any{"attention.head_count_kv_swa": u(4)}, 8192,
			30 * 8192 * 2 * 1024, Low},
	} {
		sizes := map[string]any{"block_count": u(c.layers), "embedding_length": u(2048), "feed_forward_length": u(4096),
			"context_length":       u(1 << 18),
			"attention.head_count": u(16), "attention.head_count_kv": u(c.kv), "attention.key_length": u(c.size),
			"attention.value_length": u(c.size)}
		maps.Copy(sizes, c.more)
		entries := []gguf.Entry{{Key: "general.architecture", Value: c.architecture}}
		for key, value := range sizes {
			entries = append(entries, gguf.Entry{Key: c.architecture + "." + key, Value: value})
		}
		f, err := gguf.Sketch("x.gguf", entries, []gguf.Weights{{Name: "token_embd.weight", Shape: []uint64{64, 32}}})
		check.Err(t, err)
		m, err := modelsize.FromGGUF(f)
		check.Err(t, err)
		e := of(t, m, Setup{Engine: LlamaCPP, Context: c.context})
		if kv := e.Component(KVReserved); kv.Best != 2*c.values || kv.Confidence != c.trust {
			t.Errorf("%s: %d bytes of trust %s, %d of %s are right (%v)", name, kv.Best, kv.Confidence, 2*c.values,
				c.trust, m.Notes)
		}
	}
}
