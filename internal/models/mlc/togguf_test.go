package mlc

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc/vocab"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
)

// back converts a package to a GGUF, and opens that.
func back(t *testing.T, dir, name string) (*gguf.File, *GGUF) {
	t.Helper()
	g, err := AsGGUF(dir, name)
	check.Err(t, err)
	path := filepath.Join(t.TempDir(), "back.gguf")
	check.Err(t, g.Write(t.Context(), path))
	f, err := gguf.Open(path)
	check.Err(t, err)
	t.Cleanup(func() { f.Close() })
	return f, g
}

// sameTensors checks that two files have the same tensors, byte for byte.
func sameTensors(t *testing.T, name string, got, want *gguf.File) {
	t.Helper()
	if len(got.Tensors) != len(want.Tensors) {
		t.Errorf("%s: %d tensors, want %d", name, len(got.Tensors), len(want.Tensors))
	}
	for _, w := range want.Tensors {
		g, ok := got.Tensor(w.Name)
		if !ok || g.Type != w.Type || !reflect.DeepEqual(g.Shape, w.Shape) {
			t.Errorf("%s: tensor %+v, want %+v", name, g, w)
			continue
		}
		if !bytes.Equal(dataOf(t, got, g), dataOf(t, want, w)) {
			t.Errorf("%s: tensor %s differs", name, w.Name)
		}
	}
}

// A GGUF that becomes a package and a GGUF again has the same tensors and says the same of the model.
func TestRoundTrip(t *testing.T) {
	for _, feature := range tinytest.Features() {
		if feature.Spec.Fused && feature.Spec.Architecture != gguf.Phi3 {
			continue // packages do not say that the file's queries, keys and values were one tensor
		}
		was, p := packageOf(t, feature.Spec, Options{})
		name, err := was.Text("general.name")
		check.Err(t, err)
		is, g := back(t, p.Dir, name)
		if feature.Spec.RopeScaling != tiny.Long { // of which a package has the factors for its context
			sameTensors(t, feature.Name, is, was)
			want, err := was.Architecture()
			check.Err(t, err)
			if got, err := is.Architecture(); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, want %+v (%v)", feature.Name, got, want, err)
			}
		}
		if g.Same != record.SameBits {
			t.Errorf("%s: %v", feature.Name, g.Same)
		}
		want, err := was.Vocabulary()
		check.Err(t, err)
		want.ChatTemplate = ""
		got, err := is.Vocabulary()
		check.Err(t, err)
		got.Scores, want.Scores = nil, nil // only their order counts
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the tokenizer is %.900s, want %.900s", feature.Name, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
}

// Weights keep their bits in packages, and come back in them.
func TestRoundTripOfTypes(t *testing.T) {
	biased := tinytest.Feature{Name: "two types and biases", Spec: tiny.Spec{Hidden: 256, Heads: 4, KVHeads: 2,
		HeadDim: 64, Type: "Q4_0", SecondType: "Q6_K", Bias: true}}
	for _, feature := range append(tinytest.Types(), biased) {
		for _, dtype := range []string{Float32, Float16} {
			was, p := packageOf(t, feature.Spec, Options{DType: dtype, Weights: AsIs})
			is, g := back(t, p.Dir, "model")
			if g.Same == record.SameBits {
				sameTensors(t, feature.Name, is, was)
				continue
			}
			for _, w := range was.Tensors { // norms are rounded to float16
				got, _ := is.Tensor(w.Name)
				if a, b := dataOf(t, is, got), dataOf(t, was, w); len(w.Shape) == 2 && !bytes.Equal(a, b) {
					t.Errorf("%s in %s: tensor %s differs", feature.Name, dtype, w.Name)
				}
			}
			if dtype == Float32 {
				t.Errorf("%s: %v", feature.Name, g.Same)
			}
		}
	}
}

func dataOf(t *testing.T, f *gguf.File, w gguf.Tensor) []byte {
	t.Helper()
	data, err := io.ReadAll(f.Data(w))
	check.Err(t, err)
	return data
}

// rewritten replaces a package's weights by what change makes of them, and its configuration by one as MLC's tools
// write it.
func rewritten(t *testing.T, dir, quantization string, change func(Tensor, []float32) map[*Tensor][]byte) {
	t.Helper()
	var c cache
	readJSON(t, dir, "tensor-cache.json", &c)
	weights, names := weightsOf(t, dir)
	shapes := map[string][]int64{}
	for _, s := range c.Records {
		for _, w := range s.Tensors {
			shapes[w.Name] = w.Shape
		}
	}
	s := Shard{File: "params_shard_0.bin", Format: "raw-shard"}
	var data []byte
	for _, name := range names {
		for w, stored := range change(Tensor{Name: name, Shape: shapes[name]}, weights[name]) {
			w.Bytes, w.Offset = int64(len(stored)), int64(len(data))
			s.Tensors, data = append(s.Tensors, *w), append(data, stored...)
		}
	}
	sum := md5.Sum(data)
	s.Bytes, s.MD5 = int64(len(data)), hex.EncodeToString(sum[:])
	check.Err(t, os.WriteFile(filepath.Join(dir, s.File), data, 0o600))
	check.Err(t, writeJSON(filepath.Join(dir, "tensor-cache.json"), map[string]any{"records": []Shard{s}}))
	var config map[string]any
	readJSON(t, dir, configName, &config)
	own := config["model_config"].(map[string]any)
	own["position_embedding_base"] = own["rope_theta"]
	own["query_pre_attn_scalar"] = own["head_dim"]
	for _, ours := range []string{"rope_theta", "rope_factors", "qk_norm", "post_norms", "gelu", "embedding_scale"} {
		delete(own, ours)
	}
	config["quantization"] = quantization
	check.Err(t, writeJSON(filepath.Join(dir, configName), config))
}

// MLC's configurations say in other words how positions are rotated, and Gemma 3's are nested.
func TestRotationsOfMLC(t *testing.T) {
	for _, feature := range tinytest.Features() {
		gemma := feature.Spec.Architecture == gguf.Gemma3 && feature.Spec.Window > 0
		if !gemma && feature.Spec.RopeScaling != tiny.Long {
			continue
		}
		was, p := packageOf(t, feature.Spec, Options{})
		var config map[string]any
		readJSON(t, p.Dir, configName, &config)
		feature.AsMLC(config)
		check.Err(t, writeJSON(filepath.Join(p.Dir, configName), config))
		is, _ := back(t, p.Dir, "model")
		sameTensors(t, feature.Name, is, was)
		want, err := was.Architecture()
		check.Err(t, err)
		if got, err := is.Architecture(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v (%v)", feature.Name, got, want, err)
		}
		if gemma {
			continue
		}
		scaling := config["model_config"].(map[string]any)["rope_scaling"].(map[string]any)
		for want, change := range map[string]func(){
			"15 long and":                       func() { scaling["long_factor"] = make([]float64, 15) },
			`"yarn" is not supported in a phi3`: func() { scaling["type"] = "yarn" },
		} {
			change()
			check.Err(t, writeJSON(filepath.Join(p.Dir, configName), config))
			if _, err := AsGGUF(p.Dir, "model"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			scaling["type"] = "longrope"
		}
	}
}

// bf16 shortens values as MLC's tools do in shards.
func bf16(values []float32) (out []byte, back []float32) {
	for _, v := range values {
		short := math.Float32bits(v) >> 16
		out = binary.LittleEndian.AppendUint16(out, uint16(short))
		back = append(back, math.Float32frombits(short<<16))
	}
	return out, back
}

// grouped quantises a row by MLC's rule and returns what it stands for.
func grouped(row []float32) (numbers []byte, scales, values []float32) {
	for group := range slices.Chunk(row, 32) {
		most := 0.0
		for _, v := range group {
			most = max(most, math.Abs(float64(v)))
		}
		_, scale := bf16([]float32{float32(most / 7)})
		scales = append(scales, scale[0])
		for word := range slices.Chunk(group, 8) {
			packed := uint32(0)
			for i, v := range word {
				n := 7.0
				if scale[0] > 0 {
					n = max(0, min(15, math.Round(float64(v/scale[0])+7)))
				}
				packed |= uint32(n) << (4 * i)
				values = append(values, float32(n-7)*scale[0])
			}
			numbers = binary.LittleEndian.AppendUint32(numbers, packed)
		}
	}
	return numbers, scales, values
}

// quantised returns a matrix as MLC stores it.
func quantised(w Tensor, scaleType string, numbers, scales []byte) map[*Tensor][]byte {
	stem, rows, columns := strings.TrimSuffix(w.Name, "weight"), w.Shape[0], w.Shape[1]
	return map[*Tensor][]byte{
		{Name: stem + "q_weight", Shape: []int64{rows, columns / 8}, DType: "uint32", Format: "f32-to-bf16"}:  numbers,
		{Name: stem + "q_scale", Shape: []int64{rows, columns / 32}, DType: scaleType, Format: "f32-to-bf16"}: scales,
	}
}

// MLC's own packages store float32 as bfloat16. The GGUF has the very values, whatever they were quantised from.
func TestPackagesOfMLC(t *testing.T) {
	for _, arch := range []string{gguf.Llama, gguf.Qwen2, gguf.Qwen3, gguf.Gemma2, gguf.Phi3} {
		for _, quantization := range Convertible {
			spec := tiny.Spec{Architecture: arch, Heads: 4, KVHeads: 2, HeadDim: 32, Seed: 3}
			_, p := packageOf(t, spec, Options{})
			want := map[string][]float32{} // by MLC's names
			scaleType := map[bool]string{true: Float16, false: Float32}[strings.Contains(quantization, "f16")]
			store := func(values []float32) ([]byte, []float32) {
				if scaleType == Float32 {
					return bf16(values)
				}
				_, values = bf16(values)
				stored, err := AppendHalves(nil, values)
				check.Err(t, err)
				var back []float32
				for _, h := range values {
					n, _ := half(h)
					back = append(back, gguf.Half(n))
				}
				return stored, back
			}
			format := "f32-to-bf16"
			rewritten(t, p.Dir, quantization, func(w Tensor, values []float32) map[*Tensor][]byte {
				if len(w.Shape) == 1 || strings.HasPrefix(quantization, "q0") {
					stored, back := store(values)
					want[w.Name] = back
					return map[*Tensor][]byte{{Name: w.Name, Shape: w.Shape, DType: scaleType, Format: format}: stored}
				}
				var numbers, scales []byte
				for row := range slices.Chunk(values, int(w.Shape[1])) {
					n, s, v := grouped(row)
					stored, _ := store(s)
					numbers, scales = append(numbers, n...), append(scales, stored...)
					want[w.Name] = append(want[w.Name], v...)
				}
				return quantised(w, scaleType, numbers, scales)
			})
			f, g := back(t, p.Dir, "model")
			a, err := f.Architecture()
			check.Err(t, err)
			got := expected(t, f, a)
			for name, values := range want {
				if !slices.Equal(got[name], values) {
					t.Errorf("%s %s: %s has other values", arch, quantization, name)
				}
			}
			if len(got) != len(want) || a.RopeBase != 10000 || a.RMSEpsilon != float64(float32(1e-5)) {
				t.Errorf("%s %s: %d weights of %d; %+v", arch, quantization, len(got), len(want), a)
			}
			kind := map[string]gguf.Type{"q0f16": gguf.F16, "q0f32": gguf.F32}[quantization]
			if strings.HasPrefix(quantization, "q4") {
				kind = gguf.Q4_0
			}
			same := map[bool]record.Sameness{true: record.SameBits, false: record.SameValues}[scaleType == Float32]
			if f.Dominant() != kind || g.Same != same {
				t.Errorf("%s %s becomes %v: %v", arch, quantization, f.Dominant(), g.Same)
			}
		}
	}
}

// What MLC's library of Qwen2-0.5B says of its weights, and what is made of a package with such weights.
//
// The excerpt is from the metadata of web-llm-models/v0_2_48/Qwen2-0.5B-Instruct-q4f32_1-ctx4k_cs1k-webgpu.wasm in
// github.com/mlc-ai/binary-mlc-llm-libs at 9ee759c847e1: sha256 338ab000a622. Layers 1 to 22 are left out.
func TestWeightsOfMLCsLibrary(t *testing.T) {
	var lib Metadata
	readJSON(t, "testdata", "qwen2-0.5b-q4f32_1.json", &lib)
	a := gguf.Architecture{Name: lib.ModelType, EmbeddingLength: 896, BlockCount: lib.KVCache.Layers,
		FeedForwardLength: 4864, HeadCount: lib.KVCache.Heads, HeadCountKV: lib.KVCache.KVHeads,
		HeadDim: lib.KVCache.HeadDim, VocabSize: 151936, AttentionBias: true, Tied: true}
	shard := Shard{File: "params_shard_0.bin"}
	for _, w := range lib.Params {
		names := []string{w.Name}
		if first := ".layers.0."; strings.Contains(w.Name, first) { // so are those up to the last
			for i := 1; i < a.BlockCount-1; i++ {
				names = append(names, strings.Replace(w.Name, first, fmt.Sprintf(".layers.%d.", i), 1))
			}
		}
		size, err := StoredBytes(w.DType, "raw", w.Shape)
		check.Err(t, err)
		for _, name := range names {
			shard.Tensors = append(shard.Tensors, Tensor{Name: name, Shape: w.Shape, DType: w.DType, Bytes: size})
		}
	}
	p := Existing{Shards: []Shard{shard}}
	g := &GGUF{}
	if err := g.weights(p, a); err != nil {
		t.Error(err)
	}
	if len(g.tensors) != 24*12+2 || g.Same != record.SameBits {
		t.Errorf("%d tensors, %v", len(g.tensors), g.Same)
	}
}

// A package made of a Q4_0 file of that shape has just these weights.
func TestPackageHasWhatMLCsLibraryWants(t *testing.T) {
	var lib Metadata
	readJSON(t, "testdata", "qwen2-0.5b-q4f32_1.json", &lib)
	a := gguf.Architecture{Name: lib.ModelType, ContextLength: 4096, EmbeddingLength: 896,
		BlockCount: lib.KVCache.Layers, FeedForwardLength: 4864, HeadCount: lib.KVCache.Heads,
		HeadCountKV: lib.KVCache.KVHeads, HeadDim: lib.KVCache.HeadDim, VocabSize: 151936, AttentionBias: true,
		Tied: true, RMSEpsilon: 1e-6, RopeBase: 1e6}
	tokens := make([]string, a.VocabSize)
	metadata := append([]gguf.Entry{{Key: "general.architecture", Value: a.Name},
		{Key: "tokenizer.ggml.tokens", Value: tokens}}, a.Metadata()...)
	var weights []gguf.Weights
	for _, w := range a.Tensors() {
		kind := gguf.F32
		if len(w.Shape) == 2 {
			kind = gguf.Q4_0
		}
		weights = append(weights, gguf.Weights{Name: w.Name, Shape: w.Shape, Type: kind})
	}
	f, err := gguf.Sketch("qwen2.gguf", metadata, weights)
	check.Err(t, err)
	have, err := Params(f, Options{Weights: AsIs})
	check.Err(t, err)
	for _, want := range lib.Params {
		if !slices.ContainsFunc(have, func(p Param) bool { return reflect.DeepEqual(p, want) }) {
			t.Errorf("%s, %s, is none of the package's weights", want.Name, want)
		}
	}
	if n := 24*11 + 3; len(have) != n {
		t.Errorf("the package has %d weights, want %d", len(have), n)
	}
}

func TestAsGGUFRefuses(t *testing.T) {
	for want, c := range map[string]struct {
		file   string
		change func(string) string
	}{
		"its quantization is q4f16_0": {configName, swap(`"q0f32"`, `"q4f16_0"`)},
		"its architecture is gpt_neox": {configName,
			swap(`"model_type": "llama"`, `"model_type": "gpt_neox"`)},
		"weight model.layers.0.mlp.down_proj.weight is missing": {"tensor-cache.json",
			swap("model.layers.0.mlp.down_proj", "model.layers.0.x")},
		"layer_norm_rms_epsilon is 7": {configName, swap(`"rms_norm_eps": 0.00001`, `"rms_norm_eps": 7`)},
		"normalizer Lowercase is not supported": {vocab.Name,
			swap(`"normalizer": null`, `"normalizer": {"type": "Lowercase"}`)},
		"it cuts text into other words than gpt-2": {vocab.Name, swap(`"use_regex": true`, `"use_regex": false`)},
		"whose ignore_merges is false":             {vocab.Name, swap(`"ignore_merges": false`, `"ignore_merges": true`)},
		"a tokenizer of type \"Unigram\"":          {vocab.Name, swap(`"type": "BPE"`, `"type": "Unigram"`)},
	} {
		_, p := packageOf(t, tiny.Spec{}, Options{})
		edit(t, filepath.Join(p.Dir, c.file), c.change)
		if _, err := AsGGUF(p.Dir, "model"); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "package") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A bfloat16 scale can be smaller than every float16.
func TestScaleThatIsNoFloat16(t *testing.T) {
	_, p := packageOf(t, tiny.Spec{}, Options{})
	rewritten(t, p.Dir, "q4f32_1", func(w Tensor, values []float32) map[*Tensor][]byte {
		if len(w.Shape) == 1 {
			stored, _ := bf16(values)
			return map[*Tensor][]byte{{Name: w.Name, Shape: w.Shape, DType: Float32, Format: "f32-to-bf16"}: stored}
		}
		rows, groups := w.Shape[0], w.Shape[1]/32
		scales := slices.Repeat([]float32{1}, int(rows*groups))
		if w.Name == "model.layers.1.mlp.down_proj.weight" {
			scales[len(scales)-1] = 1e-9
		}
		stored, _ := bf16(scales)
		return quantised(w, Float32, make([]byte, 16*rows*groups), stored)
	})
	g, err := AsGGUF(p.Dir, "model")
	check.Err(t, err)
	target := filepath.Join(t.TempDir(), "model.gguf")
	err = g.Write(t.Context(), target)
	if fault.Of(err) != fault.UnknownArch ||
		!strings.Contains(err.Error(), "weight model.layers.1.mlp.down_proj.weight has the scale") {
		t.Errorf("%v", err)
	}
	alone(t, filepath.Dir(target))
}

// If another model were called Phi-3, llama.cpp would require Phi-3's tokens, and drop white space after some.
func TestOnlyPhi3IsCalledPhi3(t *testing.T) {
	for _, c := range []struct {
		name  string
		trims bool
		want  string
	}{{"my-phi3-webllm", false, "my-phi 3-webllm"}, {"Phi-3-mini", false, "Phi 3-mini"},
		{"Phi-3-mini", true, "Phi-3-mini"}, {"mine", true, "mine (phi-3)"}, {"mine", false, "mine"}} {
		if got := titled(c.name, c.trims); got != c.want {
			t.Errorf("%s, %v: got %q, want %q", c.name, c.trims, got, c.want)
		}
	}
}
