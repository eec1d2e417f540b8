package gguf

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
)

// unsupported returns an error about a valid file that cannot be used.
func (f *File) unsupported(format string, args ...any) error {
	names := Supported()
	last := len(names) - 1
	return f.fault(fault.UnknownArch, "choose a plain "+strings.Join(names[:last], ", ")+" or "+names[last]+" model",
		format, args)
}

// isModel refuses files without a model and other architectures.
func (f *File) isModel(a *Architecture) error {
	err := f.Whole()
	if _, ok := architectures[a.Name]; err == nil && !ok {
		err = f.unsupported("architecture %q is not supported", a.Name)
	}
	return err
}

// Whole refuses files that are not a complete model, which no engine runs.
func (f *File) Whole() error {
	refuse := func(do, format string, args ...any) error { return f.fault(fault.UnknownArch, do, format, args) }
	kind, _ := f.Text("general.type")
	name, _ := f.ArchitectureName()
	switch {
	case kind == "adapter":
		return refuse("merge it into its base model", "a LoRA adapter, not a model")
	case kind == "mmproj" || name == "clip":
		return refuse("use the GGUF of the text model that belongs to it",
			"a vision or audio encoder, not a language model")
	case kind != "" && kind != "model":
		return refuse("use the GGUF of the model", "general.type is %q, not a model", kind)
	}
	return nil
}

// plain refuses settings that the conversion would drop.
func (f *File) plain(a *Architecture) error {
	for key, want := range map[string]int{".attention.value_length": a.HeadDim, ".rope.dimension_count": a.Rotated()} {
		key = a.Name + key
		n, err := f.optional(key, want)
		if err != nil {
			return err
		}
		if n != want {
			return f.unsupported("%s is %d; supported: the head size, %d", key, n, want)
		}
	}
	understood := a.Traits().understood
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		key := a.Name + "." + name
		if v, ok := f.Lookup(key); ok && !slices.Contains(understood, name) && !harmless(v, settings[name]) {
			return f.unsupported("%s is %s, which is not supported", key, brief(v))
		}
	}
	if v, ok := f.Lookup(a.Name + ".vocab_size"); ok {
		if n, whole := unsigned(v); !whole || n != uint64(a.VocabSize) {
			return f.bad(again, "metadata %s.vocab_size is %s, but tokenizer.ggml.tokens has %d tokens", a.Name, brief(v),
				a.VocabSize)
		}
	}
	return nil
}

// settings are those that plain models lack, or have with a value without effect: 0, or the one here.
var settings = map[string]float64{
	"expert_count": 0, "nextn_predict_layers": 0, "use_parallel_residual": 0,
	"attention.kv_lora_rank": 0, "attention.q_lora_rank": 0, keyPattern: 1, keyLocalBase: 0,
	"attention.causal": 1, "attention.scale": 0, "attention.clamp_kqv": 0, "attention.max_alibi_bias": 0,
	keyAttentionCap: 0, keyOutputCap: 0, "logit_scale": 1, "embedding_scale": 1, "residual_scale": 1, keyMagnitude: 1,
}

// harmless reports whether a setting has no effect.
func harmless(v any, neutral float64) bool {
	switch r := reflect.ValueOf(v); {
	case r.Kind() == reflect.Bool:
		return r.Bool() == (neutral == 1)
	case r.CanFloat():
		return r.Float() == 0 || r.Float() == neutral
	}
	n, ok := unsigned(v)
	return ok && (n == 0 || float64(n) == neutral)
}
