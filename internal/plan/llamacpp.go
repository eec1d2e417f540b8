package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// LlamaCpp is what a plan says of how llama.cpp computes. What is empty, or 0, is as the program takes it of itself.
type LlamaCpp struct {
	BatchThreads int `yaml:"batch_threads,omitempty"` // in prefill; 0: as many as threads
	// tokens of a prompt that are handed over at a time; 0: llama.cpp's own
	Batch          int    `yaml:"batch,omitempty"`
	UBatch         int    `yaml:"ubatch,omitempty"`          // and computed at a time
	CacheTypeK     string `yaml:"cache_type_k,omitempty"`    // empty: dtype
	CacheTypeV     string `yaml:"cache_type_v,omitempty"`    // empty: dtype
	FlashAttention string `yaml:"flash_attention,omitempty"` // off, on, auto
	Mmap           string `yaml:"mmap,omitempty"`            // on, off
	GPULayers      int    `yaml:"gpu_layers,omitempty"`
}

// CacheTypes are the element types that llama.cpp's KV cache can have.
func CacheTypes() []string {
	return []string{"f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"}
}

// Coarse tells whether llama.cpp computes otherwise than in single precision and one sum after another: what a model
// says may then be something else. That the cache has dtype's numbers by default is the plan's to look at.
func (l *LlamaCpp) Coarse() bool {
	if l == nil {
		return false
	}
	plain := func(value, of string) bool { return value == "" || value == of }
	return !plain(l.CacheTypeK, "f32") || !plain(l.CacheTypeV, "f32") || !plain(l.FlashAttention, "off") ||
		l.GPULayers > 0
}

// validate looks at a section that is there.
func (l *LlamaCpp) validate() error {
	if l == nil {
		return nil
	}
	for _, c := range []struct {
		field string
		value int
		zero  string
	}{
		{"batch_threads", l.BatchThreads, "as many as threads"}, {"batch", l.Batch, "llama.cpp's own"},
		{"ubatch", l.UBatch, "llama.cpp's own"},
		{"gpu_layers", l.GPULayers, "none"},
	} {
		if c.value < 0 {
			return fmt.Errorf("llamacpp.%s: %d, use a positive number, or 0: %s", c.field, c.value, c.zero)
		}
	}
	for _, c := range []struct {
		field, value string
		known        []string
	}{
		{"cache_type_k", l.CacheTypeK, CacheTypes()}, {"cache_type_v", l.CacheTypeV, CacheTypes()},
		{"flash_attention", l.FlashAttention, []string{"off", "on", "auto"}}, {"mmap", l.Mmap, []string{"on", "off"}},
	} {
		if last := len(c.known) - 1; c.value != "" && !slices.Contains(c.known, c.value) {
			return fmt.Errorf("llamacpp.%s: %q, use %s or %s", c.field, c.value, strings.Join(c.known[:last], ", "),
				c.known[last])
		}
	}
	plain := []string{"", "f32", "f16", "bf16"}
	if !slices.Contains(plain, l.CacheTypeV) && cmp.Or(l.FlashAttention, "off") == "off" {
		return fmt.Errorf("llamacpp.cache_type_v: %s needs flash attention; add flash_attention: on (--llamacpp-flash-attention on)", l.CacheTypeV)
	}
	return nil
}
