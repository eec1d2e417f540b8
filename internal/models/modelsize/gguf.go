package modelsize

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/mlc"
)

// FromGGUF reads a file's tensors and the metadata that llama.cpp's files have for any architecture. If the metadata is
// not enough, the shapes of the tensors decide.
func FromGGUF(f *gguf.File) (Model, error) {
	tensors := f.Tensors
	m := Model{Source: "gguf", LongestIn: "context_length in the GGUF", Stored: map[string]int64{}, Trust: High}
	m.Name = strings.TrimSuffix(filepath.Base(f.Name), ".gguf")
	if name, err := f.Text("general.name"); err == nil && name != "" {
		m.Name = name
	}
	for _, t := range tensors {
		m.Stored[strings.ToLower(t.Type.String())] += t.Size
		m.Parameters += t.Elements()
		w := hfconfig.Weight{Part: hfconfig.Whole, Name: t.Name, Times: 1, Rows: t.Elements(), Cols: 1,
			Split: hfconfig.Sharded, Active: 1}
		if len(t.Shape) == 2 {
			w.Cols, w.Rows, w.Linear = int64(t.Shape[0]), int64(t.Shape[1]), strings.HasPrefix(t.Name, "blk.")
		}
		m.Weights = append(m.Weights, w)
	}
	if m.Parameters <= 0 {
		return m, fault.New(fault.BadModel, "name a file with a model", "%s: no tensors", f.Name)
	}
	m.DType, m.Matrices = Dominant(m.Stored), matrices(tensors)
	name, err := f.ArchitectureName()
	if err != nil {
		m.note("the file does not name its architecture")
	}
	m.Type = name
	k := keys{f: f, name: name}
	m.Layers, m.Hidden, m.MaxContext = k.one("block_count"), k.one("embedding_length"), k.one("context_length")
	m.Heads, m.Inter = k.one("attention.head_count"), k.one("feed_forward_length")
	if tokens, err := f.Texts("tokenizer.ggml.tokens"); err == nil {
		m.Vocab = len(tokens)
	} else {
		m.Vocab = k.one("vocab_size")
	}
	if !m.byKeys(k) {
		m.Trust = Low
		m.note("the metadata lacks the sizes of the KV cache")
	}
	if used := k.one("expert_used_count"); used > 0 {
		m.Inter = max(k.one("expert_feed_forward_length"), 1)*used + k.one("expert_shared_feed_forward_length")
		m.Active = passed(tensors, used, k.one("expert_count"))
	}
	m.AsIs = asIs(f)
	return m, nil
}

// asIs returns the sizes of the tensors of a file's packages.
func asIs(f *gguf.File) map[string][]int64 {
	sizes := map[string][]int64{}
	for name, o := range map[string]mlc.Options{"f32": {DType: mlc.Float32, Weights: mlc.AsIs},
		"f16":                    {DType: mlc.Float16, Weights: mlc.AsIs},
		mlc.Requantized + " f32": {DType: mlc.Float32, Weights: mlc.Requantized},
		mlc.Requantized + " f16": {DType: mlc.Float16, Weights: mlc.Requantized}} {
		params, err := mlc.Params(f, o)
		if err != nil {
			return nil
		}
		for _, p := range params {
			n, err := mlc.StoredBytes(p.DType, "", p.Shape)
			if err != nil {
				return nil
			}
			sizes[name] = append(sizes[name], n)
		}
	}
	return sizes
}

func (m *Model) note(format string, args ...any) {
	m.Notes = append(m.Notes, fmt.Sprintf(format, args...))
}

// keys reads an architecture's sizes, which may differ between layers.
type keys struct {
	f    *gguf.File
	name string
}

const maxSize = 1 << 24

func (k keys) one(key string) int {
	return slices.Max(append(k.list(key, 1), 0))
}

// list returns a size for each layer; nil if it is missing or impossible.
func (k keys) list(key string, layers int) []int {
	v, ok := k.f.Lookup(k.name + "." + key)
	if !ok {
		return nil
	}
	var out []int
	switch v := v.(type) {
	case []int32:
		for _, n := range v {
			out = append(out, int(n))
		}
	case []uint32:
		for _, n := range v {
			out = append(out, int(n))
		}
	default:
		n, err := k.f.Uint(k.name + "." + key)
		if err != nil || n > maxSize {
			return nil
		}
		for range layers {
			out = append(out, int(n))
		}
	}
	for _, n := range out {
		if n < 0 || n > maxSize {
			return nil
		}
	}
	return out
}

// byKeys calculates the KV cache from the metadata.
func (m *Model) byKeys(k keys) bool {
	if m.Layers == 0 || m.Layers > 1<<14 || m.Heads == 0 {
		return false
	}
	key, value := k.one("attention.key_length"), k.one("attention.value_length")
	if key == 0 {
		if m.Hidden%m.Heads != 0 {
			return false
		}
		key = m.Hidden / m.Heads
	}
	value = cmp.Or(value, key)
	m.HeadDim = key
	kv := k.list("attention.head_count_kv", m.Layers)
	if kv == nil {
		kv = slices.Repeat([]int{m.Heads}, m.Layers)
	}
	if len(kv) < m.Layers {
		return false
	}
	if rank := k.one("attention.kv_lora_rank"); rank > 0 {
		return m.latent(k, rank, key, value)
	}
	window, pattern, has := k.window(), k.windows(), k.attends(m.Layers)
	windowKey, windowValue := cmp.Or(k.one("attention.key_length_swa"), key),
		cmp.Or(k.one("attention.value_length_swa"), value)
	groups := map[hfconfig.Cache]int{}
	for i, heads := range kv[:m.Layers] {
		if !has(i) || heads == 0 {
			continue
		}
		c := hfconfig.Cache{Values: int64(heads) * int64(key+value), Keys: int64(heads) * int64(key), Heads: heads}
		if pattern(i) {
			c = hfconfig.Cache{Values: int64(heads) * int64(windowKey+windowValue),
				Keys: int64(heads) * int64(windowKey), Heads: heads, Window: window}
		}
		groups[c]++
		m.KVHeads = max(m.KVHeads, heads)
	}
	m.doubt(k)
	if !slices.Contains(architectures, k.name) {
		m.CacheTrust = Low
		m.note("unknown architecture %q: keys and values in every layer are assumed, with the sizes in the metadata", k.name)
	}
	for c, n := range groups {
		c.Layers = n
		m.Caches = append(m.Caches, c)
	}
	return true
}

// architectures are those whose layers keep keys and values as the metadata says. Others may keep something else.
var architectures = []string{"apertus", "arcee", "arctic", "baichuan", "bailingmoe", "bloom", "chatglm", "codeshell",
	"cohere2", "command-r", "dbrx",
	"deci", "deepseek", "deepseek2", "dots1", "ernie4_5", "ernie4_5-moe", "exaone", "exaone4", "falcon", "gemma",
	"gemma2", "gemma3", "gemma3n", "gemma4", "glm4",
	"glm4moe", "gpt-oss", "gpt2", "gptneox", "granite", "granitemoe", "grok", "hunyuan-dense", "hunyuan-moe",
	"internlm2", "jais", "llama", "llama4",
	"minicpm", "mistral", "mistral3", "mpt", "nemotron", "olmo", "olmo2", "olmoe", "openelm", "orion", "phi2", "phi3",
	"phimoe", "qwen", "qwen2",
	"qwen2moe", "qwen2vl", "qwen3", "qwen35", "qwen35moe", "qwen3moe", "qwen3next", "qwen3vl", "qwen3vlmoe", "refact",
	"seed_oss", "smollm3", "stablelm",
	"starcoder", "starcoder2", "xverse"}

// attends returns which layers have keys and values of their own, instead of a state or another layer's cache.
func (k keys) attends(layers int) func(int) bool {
	own := layers - k.one("attention.shared_kv_layers")
	interval := k.one("full_attention_interval")
	if interval == 0 && (k.name == "qwen3next" || strings.HasPrefix(k.name, "qwen35")) {
		interval = 4 // llama.cpp's default
	}
	return func(i int) bool { return i < own && (interval < 2 || (i+1)%interval == 0) }
}

// window returns the sliding window in the metadata, or the architecture's own.
func (k keys) window() int {
	if _, ok := k.f.Lookup(k.name + ".attention.sliding_window"); !ok {
		switch k.name {
		case "llama4":
			return 8192
		case "gemma2":
			return 4096
		}
	}
	return k.one("attention.sliding_window")
}

// doubt looks for metadata that changes the KV cache in ways that are not modelled.
func (m *Model) doubt(k keys) {
	for _, e := range k.f.Metadata {
		key, ok := strings.CutPrefix(e.Key, k.name+".")
		switch {
		case ok && strings.HasPrefix(key, "ssm."):
			m.note("some layers keep a state instead of keys and values (%s); it is not counted", e.Key)
		case ok && strings.HasSuffix(key, "_swa") && !strings.HasPrefix(key, "rope.") &&
			key != "attention.key_length_swa" && key != "attention.value_length_swa":
			m.note("sliding-window layers differ in %s, which is not modelled: the KV cache may be wrong", e.Key)
		default:
			continue
		}
		m.CacheTrust = Low
		return
	}
}

// latent handles MLA, whose dimensions have keys of their own in newer files.
func (m *Model) latent(k keys, rank, key, value int) bool {
	rope := k.one("rope.dimension_count")
	key = cmp.Or(k.one("attention.key_length_mla"), key)
	value = cmp.Or(k.one("attention.value_length_mla"), value)
	m.KVHeads, m.HeadDim = 1, key
	all := int64(rank + rope)
	m.Caches = []hfconfig.Cache{{Layers: m.Layers, Values: all, Keys: all, Expanded: int64(m.Heads) * int64(key+value),
		ExpandedKeys: int64(m.Heads) * int64(key)}}
	m.note("the KV cache assumes a build that caches the latent; files with an unsplit projection (attn_kv_b) cache %d values per token and layer",
		int64(m.Heads)*int64(key+value))
	return true
}

// periods has the rule of an architecture: every n-th layer has no window; math.MaxInt: all layers have one.
var periods = map[string]int{"gemma2": 2, "gpt-oss": 2, "gemma3n": 5, "gemma3": 6, "cohere2": 4, "exaone4": 4,
	"olmo2": 4, "llama4": 4, "llama": math.MaxInt, "mistral": math.MaxInt, "phi3": math.MaxInt,
	"starcoder2": math.MaxInt}

// windows returns which layers have the sliding window: by a list or a period in the metadata, or by the architecture.
func (k keys) windows() func(int) bool {
	if v, ok := k.f.Lookup(k.name + ".attention.sliding_window_pattern"); ok {
		if list, ok := v.([]bool); ok {
			return func(i int) bool { return i < len(list) && list[i] }
		}
	}
	period := cmp.Or(k.one("attention.sliding_window_pattern"), periods[k.name], 1)
	return func(i int) bool { return (i+1)%period != 0 }
}

// passed counts the parameters used for a token: all, but only the active share of the experts.
func passed(tensors []gguf.Tensor, used, experts int) int64 {
	var n int64
	for _, t := range tensors {
		if experts > 0 && strings.Contains(t.Name, "_exps.") {
			n += int64(float64(t.Elements()) * float64(used) / float64(experts))
		} else {
			n += t.Elements()
		}
	}
	return n
}

// matrices returns the bytes, by type, that llama.cpp may repack: matrices that it multiplies by, eight rows at a time.
// This includes an embedding that doubles as the head, although the original is still used for lookups.
func matrices(tensors []gguf.Tensor) map[string]int64 {
	head := slices.ContainsFunc(tensors, func(t gguf.Tensor) bool { return t.Name == "output.weight" })
	out := map[string]int64{}
	for _, t := range tensors {
		multiplied := strings.HasPrefix(t.Name, "blk.") || t.Name == "output.weight" || t.Name == "token_embd.weight" &&
			!head
		if multiplied && (len(t.Shape) == 2 || len(t.Shape) == 3 && strings.Contains(t.Name, "_exps.")) &&
			t.Shape[1]%8 == 0 {
			out[strings.ToLower(t.Type.String())] += t.Size
		}
	}
	return out
}
