package estimate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/check"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/modelsize"
)

// tensor is one of zeros.
func tensor(name string, shape ...uint64) gguf.Weights {
	n := uint64(1)
	for _, size := range shape {
		n *= size
	}
	return gguf.Weights{Name: name, Shape: shape, Values: make([]float32, n)}
}

// written is a GGUF of these tensors and metadata.
func written(t *testing.T, name string, tensors []gguf.Weights, entries ...gguf.Entry) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	check.Err(t, err)
	defer f.Close()
	check.Err(t, gguf.Write(f, entries, tensors))
	return path
}

// shapedFile is a GGUF of one small tensor with the metadata that an architecture has.
func shapedFile(t *testing.T, name, architecture string, sizes map[string]any, more ...gguf.Entry) string {
	t.Helper()
	entries := append([]gguf.Entry{{Key: "general.architecture", Value: architecture}}, more...)
	for key, value := range sizes {
		entries = append(entries, gguf.Entry{Key: architecture + "." + key, Value: value})
	}
	return written(t, name, []gguf.Weights{tensor("token_embd.weight", 64, 32)}, entries...)
}

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
		for key, value := range c.more {
			sizes[key] = value
		}
		m, err := modelsize.Open(shapedFile(t, "x.gguf", c.architecture, sizes))
		check.Err(t, err)
		e := of(t, m, Setup{Engine: LlamaCPP, Context: c.context})
		if kv := e.Component(KVReserved); kv.Best != 2*c.values || kv.Confidence != c.trust {
			t.Errorf("%s: %d bytes of trust %s, %d of %s are right (%v)", name, kv.Best, kv.Confidence, 2*c.values,
				c.trust, m.Notes)
		}
	}
}

// Of a split model any part stands for all, which must lie beside it.
func TestSplitModels(t *testing.T) {
	sizes := map[string]any{"block_count": uint32(2), "embedding_length": uint32(64), "attention.head_count": uint32(4)}
	split := gguf.Entry{Key: "split.count", Value: uint16(2)}
	first := shapedFile(t, "big-00001-of-00002.gguf", "llama", sizes, split)
	second := filepath.Join(filepath.Dir(first), "big-00002-of-00002.gguf")
	if _, err := modelsize.Open(first); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), second) {
		t.Errorf("one of two parts: %v", err)
	}
	check.Err(t, os.Rename(written(t, "x.gguf", []gguf.Weights{tensor("output.weight", 64, 32)}, split), second))
	for _, path := range []string{first, second} {
		m, err := modelsize.Open(path)
		check.Err(t, err)
		w := of(t, m, Setup{Context: 64}).Component(Weights)
		if w.Best != 2*4*64*32 || w.Confidence != High || m.Layers != 2 || m.Parameters != 2*64*32 ||
			len(m.Notes) != 0 {
			t.Errorf("%s: %+v, %d layers, %v", path, w, m.Layers, m.Notes)
		}
	}
	alone := filepath.Join(t.TempDir(), "renamed.gguf")
	check.Err(t, os.Rename(first, alone))
	if _, err := modelsize.Open(alone); fault.Of(err) != fault.BadModel {
		t.Errorf("a renamed part: %v", err)
	}
}
