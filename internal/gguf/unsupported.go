package gguf

import (
	"regexp"
	"strings"

	"llmparity/internal/fault"
)

// unsupported returns an error about a valid file that cannot be used.
func (f *File) unsupported(format string, args ...any) error {
	return f.instead("choose a plain "+Llama+" or "+Qwen2+" model", format, args...)
}

// instead is unsupported with different advice.
func (f *File) instead(do, format string, args ...any) error {
	return f.fault(fault.UnknownArch, do, format, args)
}

// isModel refuses files without a model and other architectures.
func (f *File) isModel(name string) error {
	if err := f.Whole(); err != nil {
		return err
	}
	if name == Llama || name == Qwen2 {
		return nil
	}
	what := ""
	if traits := f.traits(name); traits != "" {
		what = " (" + traits + ")"
	}
	return f.unsupported("architecture %q%s is not supported; supported: %s, %s", name, what, Llama, Qwen2)
}

// Whole refuses files that are not a complete model, which no engine runs.
func (f *File) Whole() error {
	if kind, err := f.Text("general.type"); err == nil {
		switch kind {
		case "model":
		case "adapter":
			return f.instead("merge it into its base model", "a LoRA adapter, not a model")
		case "mmproj":
			return f.vision("a vision or audio encoder (general.type mmproj)")
		default:
			return f.instead("use the GGUF of the model", "general.type is %q, not a model", kind)
		}
	}
	if name, err := f.ArchitectureName(); err == nil && name == "clip" {
		return f.vision("a vision encoder (architecture clip)")
	}
	if n, err := f.Uint("split.count"); err == nil && n > 1 {
		return f.instead("merge the parts with llama.cpp's llama-gguf-split --merge",
			"one of %d parts of a split model", n)
	}
	return nil
}

func (f *File) vision(what string) error {
	return f.instead("use the GGUF of the text model that belongs to it", "%s, not a language model", what)
}

// traits describes a foreign architecture by its metadata.
func (f *File) traits(name string) string {
	var traits []string
	for _, t := range []struct{ key, what string }{
		{".expert_count", "mixture of experts"}, {".attention.kv_lora_rank", "latent attention (MLA)"},
		{".ssm.state_size", "state space layers"},
	} {
		if n, err := f.Uint(name + t.key); err == nil && n > 0 {
			traits = append(traits, t.what)
		}
	}
	return strings.Join(traits, ", ")
}

// plain refuses settings and tensors that the conversion would drop.
func (f *File) plain(a Architecture) error {
	for _, key := range []string{".attention.value_length", ".rope.dimension_count"} {
		key = a.Name + key
		if _, ok := f.Lookup(key); !ok {
			continue
		}
		n, err := f.count(key)
		if err != nil {
			return err
		}
		if n != a.HeadDim {
			return f.unsupported("%s is %d; supported: the head size, %d", key, n, a.HeadDim)
		}
	}
	for _, s := range settings {
		key := a.Name + "." + s.key
		if v, ok := f.Lookup(key); ok && !s.harmless(v) {
			return f.unsupported("%s is %s (%s), which is not supported", key, brief(v), s.what)
		}
	}
	if v, ok := f.Lookup(a.Name + ".vocab_size"); ok {
		if n, whole := unsigned(v); !whole || n != uint64(a.VocabSize) {
			return f.bad(again, "metadata %s.vocab_size is %s, but tokenizer.ggml.tokens has %d tokens", a.Name, brief(v),
				a.VocabSize)
		}
	}
	return f.known()
}

// setting is one that plain models lack, or have with a value without effect.
type setting struct {
	key, what string
	neutral   float64 // the value without effect, besides 0
}

func (s setting) harmless(v any) bool {
	if n, ok := unsigned(v); ok {
		return n == 0 || float64(n) == s.neutral
	}
	switch v := v.(type) {
	case float32:
		return v == 0 || float64(v) == s.neutral
	case float64:
		return v == 0 || v == s.neutral
	case bool:
		return v == (s.neutral == 1)
	}
	return false
}

var settings = []setting{
	{"expert_count", "mixture of experts", 0},
	{"attention.kv_lora_rank", "latent attention, MLA", 0},
	{"attention.q_lora_rank", "latent attention, MLA", 0},
	{"attention.sliding_window_pattern", "sliding window in some layers", 1},
	{"attention.causal", "attention to later tokens", 1},
	{"attention.scale", "custom attention scale", 0},
	{"attention.clamp_kqv", "clamped queries, keys and values", 0},
	{"attention.max_alibi_bias", "ALiBi positions", 0},
	{"attn_logit_softcapping", "attention softcapping", 0},
	{"final_logit_softcapping", "logit softcapping", 0},
	{"logit_scale", "scaled logits", 1},
	{"embedding_scale", "scaled embeddings", 1},
	{"residual_scale", "scaled residuals", 1},
	{"use_parallel_residual", "parallel attention and feed-forward", 0},
	{"rope.scaling.attn_factor", "scaled rotation", 1},
	{"nextn_predict_layers", "multi-token prediction", 0},
}

// foreign lists known kinds of tensors that plain models lack.
var foreign = []struct {
	name *regexp.Regexp
	what string
}{
	{regexp.MustCompile(`^(v|mm|a)\.`), "vision or audio encoder"},
	{regexp.MustCompile(`\.lora_[ab]$`), "LoRA adapter"},
	{regexp.MustCompile(`^blk\.\d+\.ffn_(gate_inp|.*_exps|.*_shexp)\b`), "mixture of experts"},
	{regexp.MustCompile(`^blk\.\d+\.ffn_(gate|up|down)\.\d+\.`), "mixture of experts, one tensor each"},
	{regexp.MustCompile(`^blk\.\d+\.attn_(kv|q)_(a|b|a_mqa|a_norm)\b`), "latent attention, MLA"},
	{regexp.MustCompile(`^blk\.\d+\.attn_output\.bias$`), "bias of the attention output"},
	{regexp.MustCompile(`^blk\.\d+\.ffn_(gate|up|down)\.bias$`), "feed-forward biases"},
	{regexp.MustCompile(`^blk\.\d+\.attn_[qk]_norm\.`), "normalised queries and keys"},
	{regexp.MustCompile(`^blk\.\d+\.attn_qkv\.`), "queries, keys and values in one tensor"},
	{regexp.MustCompile(`^blk\.\d+\.attn_sinks\b`), "attention sinks"},
	{regexp.MustCompile(`^(blk\.\d+\.)?rope_factors_(long|short)\b`), "LongRoPE factors"},
	{regexp.MustCompile(`\.(weight_)?scale$|\.input_scale$`), "weights with separate scales"},
}

// known refuses known but unsupported tensors. It runs before the check for missing tensors, because a model with
// experts lacks others and is not damaged.
func (f *File) known() error {
	for _, t := range f.Tensors {
		for _, k := range foreign {
			if k.name.MatchString(t.Name) {
				return f.unsupported("tensor %s is not supported: %s", t.Name, k.what)
			}
		}
	}
	return nil
}
