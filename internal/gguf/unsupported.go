package gguf

import (
	"regexp"
	"strings"

	"llmparity/internal/fault"
)

// unsupported is an error about a sound file that can't be used.
func (f *File) unsupported(format string, args ...any) error {
	return f.instead("choose a plain "+Llama+" or "+Qwen2+" model", format, args...)
}

// instead is unsupported with other advice.
func (f *File) instead(do, format string, args ...any) error {
	return f.fault(fault.UnknownArch, do, format, args)
}

// isModel refuses files of other kinds and of other architectures, each by its name.
func (f *File) isModel(name string) error {
	if err := f.Whole(); err != nil {
		return err
	}
	if name == Llama || name == Qwen2 {
		return nil
	}
	what := f.traits(name)
	if what != "" {
		what = ", " + what + ","
	}
	return f.unsupported("architecture %q%s is not supported; supported: %s, %s", name, what, Llama, Qwen2)
}

// Whole refuses files that are no whole model by themselves, which no engine runs.
func (f *File) Whole() error {
	if kind, err := f.Text("general.type"); err == nil {
		switch kind {
		case "model":
		case "adapter":
			return f.instead("merge it into its base model and take the merged model",
				"a LoRA adapter, which is no model by itself")
		case "mmproj":
			return f.vision("a vision or audio part (general.type mmproj)")
		default:
			return f.instead("take the model's own GGUF", "general.type is %q, which is no model", kind)
		}
	}
	if name, err := f.ArchitectureName(); err == nil && name == "clip" {
		return f.vision("a vision part (architecture clip)")
	}
	if n, err := f.Uint("split.count"); err == nil && n > 1 {
		return f.instead("merge the parts with llama.cpp's llama-gguf-split --merge",
			"one of the %d parts of a model that was split", n)
	}
	return nil
}

func (f *File) vision(what string) error {
	return f.instead("take the GGUF of the text model that it belongs to", "%s, which answers no text by itself", what)
}

// traits says what a foreign architecture's keys show of it.
func (f *File) traits(name string) string {
	var traits []string
	for _, t := range []struct{ key, what string }{
		{".expert_count", "a mixture of experts"}, {".attention.kv_lora_rank", "with latent attention (MLA)"},
		{".ssm.state_size", "with state space layers"},
	} {
		if n, err := f.Uint(name + t.key); err == nil && n > 0 {
			traits = append(traits, t.what)
		}
	}
	return strings.Join(traits, ", ")
}

// plain refuses the settings and the tensors that the conversion would leave out.
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
			return f.unsupported("%s is %d; supported: the head dimension, %d", key, n, a.HeadDim)
		}
	}
	for _, s := range settings {
		key := a.Name + "." + s.key
		if v, ok := f.Lookup(key); ok && !s.harmless(v) {
			return f.unsupported("%s is %s (%s); supported: none", key, brief(v), s.what)
		}
	}
	if v, ok := f.Lookup(a.Name + ".vocab_size"); ok {
		if n, whole := unsigned(v); !whole || n != uint64(a.VocabSize) {
			return f.bad(again, "metadata %s.vocab_size is %s, tokenizer.ggml.tokens has %d", a.Name, brief(v),
				a.VocabSize)
		}
	}
	return f.known()
}

// setting is one that a plain model has not, or has at a value that changes nothing.
type setting struct {
	key, what string
	neutral   float64 // what changes nothing; 0 does so always
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
	{"expert_count", "a mixture of experts", 0},
	{"attention.kv_lora_rank", "latent attention, MLA", 0},
	{"attention.q_lora_rank", "latent attention, MLA", 0},
	{"attention.sliding_window_pattern", "a sliding window in some layers", 1},
	{"attention.causal", "tokens that see later ones", 1},
	{"attention.scale", "a scale of attention of its own", 0},
	{"attention.clamp_kqv", "clamped queries, keys and values", 0},
	{"attention.max_alibi_bias", "positions as biases, ALiBi", 0},
	{"attn_logit_softcapping", "capped scores", 0},
	{"final_logit_softcapping", "capped logits", 0},
	{"logit_scale", "scaled logits", 1},
	{"embedding_scale", "scaled embeddings", 1},
	{"residual_scale", "scaled residuals", 1},
	{"use_parallel_residual", "attention and feed-forward part side by side", 0},
	{"rope.scaling.attn_factor", "a rotation that scales", 1},
	{"nextn_predict_layers", "layers that predict several tokens", 0},
}

// foreign tells tensors of known kinds that plain models lack.
var foreign = []struct {
	name *regexp.Regexp
	what string
}{
	{regexp.MustCompile(`^(v|mm|a)\.`), "a vision or audio part"},
	{regexp.MustCompile(`\.lora_[ab]$`), "a LoRA adapter"},
	{regexp.MustCompile(`^blk\.\d+\.ffn_(gate_inp|.*_exps|.*_shexp)\b`), "a mixture of experts"},
	{regexp.MustCompile(`^blk\.\d+\.ffn_(gate|up|down)\.\d+\.`), "a mixture of experts, stored one by one"},
	{regexp.MustCompile(`^blk\.\d+\.attn_(kv|q)_(a|b|a_mqa|a_norm)\b`), "latent attention, MLA"},
	{regexp.MustCompile(`^blk\.\d+\.attn_output\.bias$`), "a bias on attention's output"},
	{regexp.MustCompile(`^blk\.\d+\.ffn_(gate|up|down)\.bias$`), "biases in the feed-forward part"},
	{regexp.MustCompile(`^blk\.\d+\.attn_[qk]_norm\.`), "normalised queries and keys"},
	{regexp.MustCompile(`^blk\.\d+\.attn_qkv\.`), "queries, keys and values in one tensor"},
	{regexp.MustCompile(`^blk\.\d+\.attn_sinks\b`), "attention sinks"},
	{regexp.MustCompile(`^(blk\.\d+\.)?rope_factors_(long|short)\b`), "LongRoPE's factors"},
	{regexp.MustCompile(`\.(weight_)?scale$|\.input_scale$`), "weights with scales of their own"},
}

// known refuses tensors of kinds that are known and not supported. It comes before the check that all are there: a
// model that has experts lacks other tensors, and isn't damaged.
func (f *File) known() error {
	for _, t := range f.Tensors {
		for _, k := range foreign {
			if k.name.MatchString(t.Name) {
				return f.unsupported("tensor %s is of a kind that is not supported: %s", t.Name, k.what)
			}
		}
	}
	return nil
}
