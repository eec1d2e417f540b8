package mlc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/modellib"
)

func smallPackage(t testing.TB) string {
	t.Helper()
	_, p := tinyPackage(t, Options{ContextWindow: 256})
	return p.Dir
}

func TestOpenPackage(t *testing.T) {
	dir := smallPackage(t)
	p, err := OpenPackage(dir)
	check.Err(t, err)
	want := modellib.Shape{ModelType: "llama", HiddenSize: 128, IntermediateSize: 256, NumHiddenLayers: 2,
		NumAttentionHeads: 4, NumKeyValueHeads: 2, HeadDim: 32, VocabSize: 512, RopeTheta: 10000, RMSNormEps: 1e-5,
		ContextWindowSize: 256, PrefillChunkSize: 128, DType: "float32"}
	if !p.Whole || !reflect.DeepEqual(p.Shape, want) || p.Quantization != "q0f32" || p.RotatingWindow != -1 ||
		p.Bytes != 4*426624 || p.Library != "" {
		t.Errorf("%+v", p)
	}
	if got, want := KVReserved(4*2*2*2*32, 256), int64(2*2*2*32*4*16*(16+1)); got != want {
		t.Errorf("%d bytes are reserved, want %d", got, want)
	}
	// The name of the list in older packages.
	check.Err(t, os.Rename(filepath.Join(dir, "tensor-cache.json"), filepath.Join(dir, "ndarray-cache.json")))
	if _, err := OpenPackage(dir); err != nil {
		t.Error(err)
	}
}

// swap is a change of a text.
func swap(from, to string) func(string) string {
	return func(text string) string { return strings.ReplaceAll(text, from, to) }
}

// edit changes a file.
func edit(t *testing.T, path string, change func(string) string) {
	t.Helper()
	text := string(check.Read(t, path))
	changed := change(text)
	if changed == text {
		t.Fatalf("nothing is changed in %s", path)
	}
	check.Err(t, os.WriteFile(path, []byte(changed), 0o644))
}

func TestOpenPackageRefuses(t *testing.T) {
	for want, c := range map[string]struct {
		file   string
		change func(string) string // nil: the file is gone
	}{
		"model_type":          {configName, swap(`"model_type": "llama"`, `"model_type": ""`)},
		"head_dim is -1":      {configName, swap(`"head_dim": 32`, `"head_dim": -1`)},
		"text after the end":  {configName, func(text string) string { return text + "{}" }},
		configName:            {configName, nil},
		"has 262144 bytes":    {"tensor-cache.json", swap(`"dtype": "float32"`, `"dtype": "float16"`)},
		`unknown type "text"`: {"tensor-cache.json", swap(`"dtype": "float32"`, `"dtype": "text"`)},
		"reaches beyond shard": {"tensor-cache.json",
			swap(`"byteOffset": 0`, `"byteOffset": 9000000000000000000`)},
		`"../x.bin" has an invalid name`: {"tensor-cache.json", swap(`"params_shard_0.bin"`, `"../x.bin"`)},
		"has the MD5":                    {"tensor-cache.json", swap(`"md5sum": "`, `"md5sum": "x`)},
		"listed twice":                   {"tensor-cache.json", swap(`"lm_head.weight"`, `"model.norm.weight"`)},
		"has no name":                    {"tensor-cache.json", swap(`"lm_head.weight"`, `""`)},
		"the shard has":                  {"tensor-cache.json", swap(`"nbytes": 1706496`, `"nbytes": 1706500`)},
		"params_shard_1.bin": {"tensor-cache.json",
			swap(`"params_shard_0.bin"`, `"params_shard_1.bin"`)},
		"is too large":      {"tensor-cache.json", swap("512,", "4611686018427387904,")},
		"it lists 0 shards": {"tensor-cache.json", func(string) string { return `{"records": []}` }},
		"tensor-cache.json: unexpected EOF": {"tensor-cache.json",
			func(text string) string { return text[:len(text)/2] }},
		"no tensor-cache.json": {"tensor-cache.json", nil},
		"tokenizer.json":       {"tokenizer.json", nil},
		"has 3 bytes, want":    {"params_shard_0.bin", func(string) string { return "abc" }},
	} {
		t.Run(want, func(t *testing.T) {
			dir := smallPackage(t)
			if path := filepath.Join(dir, c.file); c.change == nil {
				check.Err(t, os.Remove(path))
			} else {
				edit(t, path, c.change)
			}
			if _, err := OpenPackage(dir); fault.Of(err) != fault.BadModel ||
				!strings.Contains(err.Error(), want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want a line with %q", err, want)
			}
		})
	}
}

// TVM marks weights of all types with f32-to-bf16, but halves only float32.
func TestStoredBytes(t *testing.T) {
	for _, c := range []struct {
		dtype, format string
		want          int64 // of 7 × 5 values; 0: the type is not known
	}{
		{"float32", "f32-to-bf16", 70}, {"uint32", "f32-to-bf16", 140}, {"float16", "f32-to-bf16", 70},
		{"float32", "raw", 140}, {"bfloat16", "raw", 70}, {"uint8", "raw", 35}, {"float8_e4m3fn", "raw", 35},
		{"e4m3_float8", "raw", 35}, {"int4", "raw", 18},
		{"text", "raw", 0}, {"float", "raw", 0}, {"float0", "raw", 0}, {"float99", "raw", 0}, {"", "raw", 0},
	} {
		if got, err := StoredBytes(c.dtype, c.format, []int64{7, 5}); got != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("%s, %s: %d bytes (%v), want %d", c.dtype, c.format, got, err, c.want)
		}
	}
}

// MLC writes sizes in the metadata as floats, and float32 weights as bfloat16.
func TestShardsOfMLC(t *testing.T) {
	const list = `{"metadata":{"ParamSize":3,"ParamBytes":36.0,"BitsPerParam":4.5},"records":[
{"dataPath":"params_shard_0.bin","format":"raw-shard","nbytes":22,"md5sum":"0123456789abcdef0123456789abcdef","records":[
{"name":"a","shape":[2,3],"dtype":"float32","format":"f32-to-bf16","nbytes":12,"byteOffset":0},
{"name":"b","shape":[1,2],"dtype":"uint32","format":"f32-to-bf16","nbytes":8,"byteOffset":12},
{"name":"c","shape":[],"dtype":"bfloat16","format":"raw","nbytes":2,"byteOffset":20}]}]}`
	if shards, err := ParseShards([]byte(list)); err != nil || len(shards) != 1 || len(shards[0].Tensors) != 3 {
		t.Errorf("%+v, %v", shards, err)
	}
}

func TestComponents(t *testing.T) {
	for name, want := range map[string]string{
		"token_embd.weight": "embedding", "model.embed_tokens.q_weight": "embedding", "output.weight": "head",
		"lm_head.weight":     "head",
		"output_norm.weight": "norms", "blk.0.attn_norm.weight": "norms",
		"model.layers.1.post_attention_layernorm.weight": "norms",
		"blk.0.attn_output.weight":                       "attention",
		"model.layers.0.self_attn.c_attn.bias":           "attention",
		"blk.7.ffn_down.weight":                          "feed-forward",
		"model.layers.0.mlp.gate_up_proj.weight":         "feed-forward",
		"transformer.h.0.ln.weight":                      "norms",
		"transformer.h.0.mixer.qkv_proj.weight":          "attention",
		"rope_freqs.weight":                              "other",
	} {
		if got := Component(name); got != want {
			t.Errorf("%s is of the %s, want %s", name, got, want)
		}
	}
}

func FuzzPackage(f *testing.F) {
	dir := smallPackage(f)
	var seeds [2][]byte
	for i, name := range []string{configName, "tensor-cache.json"} {
		seeds[i] = check.Read(f, filepath.Join(dir, name))
	}
	f.Add(seeds[0], seeds[1])
	f.Add([]byte("{}"), []byte(`{"records": [{"dataPath": "a.bin",
 "nbytes": 1, "records": [{"shape": [1152921504606846976, 16], "dtype": "float8_e4m3fn", "nbytes": 0}]}]}`))
	f.Fuzz(func(t *testing.T, config, cache []byte) {
		p, err := parseConfig(config)
		if err == nil && (p.Shape.ModelType == "" || p.Shape.NumKeyValueHeads < 0 || !json.Valid(config)) {
			t.Errorf("%+v is read from %q", p, config)
		}
		shards, err := ParseShards(cache)
		if err != nil {
			return
		}
		for _, s := range shards {
			for _, r := range s.Tensors {
				if r.Offset < 0 || r.Bytes < 0 || r.Offset+r.Bytes > s.Bytes {
					t.Errorf("%+v lies beyond its shard of %d bytes", r, s.Bytes)
				}
			}
		}
	})
}
