package hffolder

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/safetensors"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
)

// written writes a random model and its folder.
func written(t *testing.T, spec tiny.Spec) (f *gguf.File, dir string, same record.Sameness) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	check.Err(t, tiny.WriteRandomFile(t.Context(), path, spec))
	f, err := gguf.Open(path)
	check.Err(t, err)
	t.Cleanup(func() { f.Close() })
	dir = filepath.Join(t.TempDir(), "folder")
	same, err = Write(t.Context(), path, dir)
	check.Err(t, err)
	return f, dir, same
}

// back turns a folder into a GGUF.
func back(t *testing.T, dir, name string) (*gguf.File, *GGUF) {
	t.Helper()
	g, err := AsGGUF(dir, name)
	check.Err(t, err)
	path := filepath.Join(t.TempDir(), "back.gguf")
	check.Err(t, g.Write(t.Context(), path))
	check.Err(t, g.Intact(t.Context()))
	f, err := gguf.Open(path)
	check.Err(t, err)
	t.Cleanup(func() { f.Close() })
	return f, g
}

// A GGUF that becomes a folder and a GGUF again has the same values, description and tokenizer.
func TestRoundTrip(t *testing.T) {
	for _, feature := range tinytest.Features() {
		t.Run(feature.Name, func(t *testing.T) {
			was, dir, same := written(t, feature.Spec)
			name, err := was.Text("general.name")
			check.Err(t, err)
			is, g := back(t, dir, name)
			want, err := was.Architecture()
			check.Err(t, err)
			got, err := is.Architecture()
			check.Err(t, err)
			if feature.Spec.Fused && got.Name != gguf.Phi3 { // a folder has separate tensors
				got.FusedQKV = true
			}
			other := got.Name != want.Name
			if got.Name == gguf.Qwen2 { // transformers' llama lacks its biases
				got.Name = want.Name
			}
			gemma := want.Traits().GELU // whose norms are rounded where they are small, as they seldom are
			if g.Same == record.OtherValues || same == record.OtherValues && !gemma {
				t.Errorf("%s to the folder, %s back", same, g.Same)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v\nwant %+v", got, want)
			}
			v, err := was.Vocabulary()
			check.Err(t, err)
			w, err := is.Vocabulary()
			check.Err(t, err)
			v.Scores, w.Scores = nil, nil // only their order counts
			if !reflect.DeepEqual(v, w) {
				t.Errorf("tokenizer: %.300v\nwant %.300v", w, v)
			}
			if feature.Spec.Fused || other || same == record.OtherValues { // in another order
				return
			}
			words, err := gguf.Difference(t.Context(), was.Unquantised(), is.Unquantised())
			if words != "" || err != nil {
				t.Errorf("weights: %s %v", words, err)
			}
		})
	}
}

// changed rewrites fields of a JSON file; nil removes one.
func changed(t *testing.T, dir, file string, fields map[string]any) {
	t.Helper()
	path, all := filepath.Join(dir, file), map[string]any{}
	check.Err(t, json.Unmarshal(check.Read(t, path), &all))
	for name, value := range fields {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	text, err := json.Marshal(all)
	check.Err(t, err)
	check.Err(t, os.WriteFile(path, text, 0o600))
}

// Published configurations have other forms than ours.
func TestForms(t *testing.T) {
	t.Run("transformers 5", func(t *testing.T) {
		_, dir, _ := written(t, tiny.Spec{Heads: 4, KVHeads: 2, HeadDim: 32, RopeBase: 5e5})
		changed(t, dir, "config.json", map[string]any{"rope_theta": nil, "dtype": "bfloat16", "torch_dtype": nil,
			"rope_parameters": map[string]any{"rope_theta": 5e5, "rope_type": "llama3", "factor": 8,
				"low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 64}})
		f, _ := back(t, dir, "x")
		a, err := f.Architecture()
		if err != nil || a.RopeBase != 5e5 || len(a.RopeFactors) != 16 || a.RopeFactors[0] != 1 ||
			a.RopeFactors[15] != 8 {
			t.Errorf("%+v, %v", a, err)
		}
	})
	t.Run("gemma3's two rotations", func(t *testing.T) {
		_, dir, _ := written(t, tiny.Spec{Architecture: gguf.Gemma3, Layers: 7, Heads: 4, KVHeads: 2, HeadDim: 48,
			Window: 24})
		changed(t, dir, "config.json", map[string]any{"rope_theta": nil, "rope_local_base_freq": nil,
			"layer_types":            nil,
			"sliding_window_pattern": 6, "rope_parameters": map[string]any{
				"full_attention":    map[string]any{"rope_theta": 1e6, "rope_type": "linear", "factor": 8},
				"sliding_attention": map[string]any{"rope_theta": 10000, "rope_type": "default"}}})
		f, _ := back(t, dir, "x")
		a, err := f.Architecture()
		if err != nil || a.RopeBase != 1e6 || a.LocalBase != 10000 || a.RopeFactors[0] != 8 || len(a.LocalLayers) != 6 {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// What a GGUF cannot express is refused in a line.
func TestRefusals(t *testing.T) {
	_, dir, _ := written(t, tiny.Spec{Heads: 4, KVHeads: 2, HeadDim: 32})
	config := check.Read(t, filepath.Join(dir, "config.json"))
	for _, c := range []struct {
		fields map[string]any
		words  string
	}{
		{map[string]any{"model_type": "mamba"}, `its model_type is "mamba"`},
		{map[string]any{"quantization_config": map[string]any{"quant_method": "gptq"}}, "its weights are quantized"},
		{map[string]any{"num_hidden_layers": 3}, "weight model.layers.2.input_layernorm.weight is missing"},
		{map[string]any{"hidden_size": 64}, "weight model.embed_tokens.weight has the shape"},
		{map[string]any{"num_hidden_layers": 1}, "does not belong to a plain llama model"},
		{map[string]any{"hidden_act": "relu"}, "its activation is relu"},
		{map[string]any{"rope_scaling": map[string]any{"rope_type": "yarn", "factor": 4}}, `type "yarn"`},
	} {
		check.Err(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600))
		changed(t, dir, "config.json", c.fields)
		_, err := AsGGUF(dir, "x")
		if err == nil || fault.Of(err) != fault.UnknownArch || !strings.Contains(err.Error(), c.words) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want one line with %s", c.fields, err, c.words)
		}
	}
	check.Err(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600))
	check.Err(t, os.Remove(filepath.Join(dir, "tokenizer.json")))
	if _, err := AsGGUF(dir, "x"); err == nil || !strings.Contains(err.Error(), "it has no tokenizer.json") {
		t.Errorf("%v", err)
	}
	path := filepath.Join(dir, safetensors.File)
	check.Err(t, os.WriteFile(path, check.Read(t, path)[:5000], 0o600))
	if _, err := AsGGUF(dir, "x"); fault.Of(err) != fault.BadModel {
		t.Errorf("%v", err)
	}
}
