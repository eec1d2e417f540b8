package hfconfig

import (
	"path/filepath"
	"testing"
)

// published is what was published of a model: how many parameters it has, and what a token takes in its KV cache with two bytes a
// value. The configs in testdata have the fields of the ones on the models' pages that are about sizes.
var published = []struct {
	model      string
	parameters int64
	rounded    int64 // to what it was rounded where it was published; 0: not at all
	source     string
	kvBytes    int64 // as published where kvSource says by whom; else layers × 2 × key-value heads × head size × 2, written out
	kvSource   string
}{
	{"llama-2-7b", 6738415616, 0, "safetensors.total on the Hugging Face hub, 6738417664, less 32 × 64 stored frequencies; KerasHub's llama_7b preset", 32 * 2 * 32 * 128 * 2, ""},
	{"llama-2-13b", 13015864320, 0, "the hub's safetensors.total, 13015866880, less 40 × 64 stored frequencies", 40 * 2 * 40 * 128 * 2, ""},
	{"llama-2-70b", 68976648192, 0, "the hub's safetensors.total, 68976653312, less 80 × 64 stored frequencies", 80 * 2 * 8 * 128 * 2, ""},
	{"llama-3.1-8b", 8030261248, 0, "the hub's safetensors.total", 32 * 2 * 8 * 128 * 2, ""},
	{"llama-3.1-70b", 70553706496, 0, "the hub's safetensors.total; total_size 141107412992 of the index of safetensors files", 80 * 2 * 8 * 128 * 2, ""},
	{"llama-3.1-405b", 405853388800, 0, "the hub's safetensors.total", 516096, "arXiv 2505.09343, table 1: 516.096 KB"},
	{"llama-3.2-1b", 1235814400, 0, "the hub's safetensors.total", 16 * 2 * 8 * 64 * 2, ""},
	{"tinyllama-1.1b", 1100048384, 0, "the hub's safetensors.total", 22 * 2 * 4 * 64 * 2, ""},
	{"smollm2-135m", 134515008, 0, "the hub's safetensors.total", 23040, "llama.cpp's log: 22.50 MiB for 1024 cells in f16"},
	{"smollm3-3b", 3075098624, 0, "the hub's safetensors.total", 36 * 2 * 4 * 128 * 2, ""},
	{"mistral-7b", 7241732096, 0, "the hub's safetensors.total", 32 * 2 * 8 * 128 * 2, ""},
	{"mixtral-8x7b", 46702792704, 0, "the hub's safetensors.total; KerasHub's preset", 32 * 2 * 8 * 128 * 2, ""},
	{"qwen2-0.5b", 494032768, 0, "the hub's safetensors.total", 24 * 2 * 2 * 64 * 2, ""},
	{"qwen2.5-1.5b", 1543714304, 0, "the hub's safetensors.total", 28 * 2 * 2 * 128 * 2, ""},
	{"qwen2.5-3b", 3085938688, 0, "the hub's safetensors.total", 36 * 2 * 2 * 128 * 2, ""},
	{"qwen2.5-7b", 7615616512, 0, "half of total_size 15231233024 of the index of safetensors files", 28 * 2 * 4 * 128 * 2, ""},
	{"qwen1.5-moe-a2.7b", 14315784192, 0, "the hub's safetensors.total; KerasHub's preset", 24 * 2 * 16 * 128 * 2, ""},
	{"qwen3-8b", 8190735360, 0, "the hub's safetensors.total", 36 * 2 * 8 * 128 * 2, ""},
	{"qwen3-30b-a3b", 30532122624, 0, "the hub's safetensors.total; general.parameter_count of its GGUFs", 48 * 2 * 4 * 128 * 2, ""},
	{"gemma-2b", 2506172416, 0, "the hub's safetensors.total", 18 * 2 * 1 * 256 * 2, ""},
	{"gemma-7b", 8537680896, 0, "the hub's safetensors.total", 28 * 2 * 16 * 256 * 2, ""},
	{"gemma-2-2b", 2614341888, 0, "the hub's safetensors.total", 26 * 2 * 4 * 256 * 2, ""},
	{"gemma-2-9b", 9241705984, 0, "the hub's safetensors.total; KerasHub's preset", 42 * 2 * 8 * 256 * 2, ""},
	{"gemma-3-1b", 999885952, 0, "the hub's safetensors.total", 26 * 2 * 1 * 256 * 2, ""},
	{"phi-2", 2779683840, 0, "the hub's safetensors.total", 32 * 2 * 32 * 80 * 2, ""},
	{"phi-3-mini", 3821079552, 0, "the hub's safetensors.total; KerasHub's preset", 32 * 2 * 32 * 96 * 2, ""},
	{"phi-3.5-moe", 41900000000, 100_000_000, "the hub shows 41.9B", 32 * 2 * 8 * 128 * 2, ""},
	{"phi-4", 14659507200, 0, "the hub's safetensors.total", 40 * 2 * 10 * 128 * 2, ""},
	{"deepseek-v2-lite", 15706484224, 0, "the hub's safetensors.total", 27 * (512 + 64) * 2, ""},
	{"deepseek-v3", 671026419200, 0, "the weights of the 61 layers in the published files, by their headers; 671B in the paper", 70272, "arXiv 2505.09343, table 1: 70.272 KB"},
	{"gpt2", 124439808, 0, "the hub's safetensors.total, 137022720, less the 12 × 1024 × 1024 values of stored masks", 12 * 2 * 12 * 64 * 2, ""},
	{"gpt2-xl", 1557611200, 0, "transformers' num_parameters()", 48 * 2 * 25 * 64 * 2, ""},
	{"pythia-70m", 18915328 + 2*50304*512, 0, "arXiv 2304.01373, table 1: 18,915,328 without both embeddings", 6 * 2 * 8 * 64 * 2, ""},
	{"pythia-6.9b", 6444163072 + 2*50432*4096, 0, "arXiv 2304.01373, table 1: 6,444,163,072 without both embeddings", 32 * 2 * 32 * 128 * 2, ""},
	{"falcon-7b", 7217189760 - 65024*4544, 0, "the hub's 7217189760, less the head, which is the embedding and is stored twice", 32 * 2 * 1 * 64 * 2, ""},
	{"falcon-180b", 179522565120 - 65024*14848, 0, "the hub's safetensors.total, 179522565120, less the head, which is the embedding and is stored twice", 80 * 2 * 8 * 64 * 2, ""},
	{"opt-125m", 125239296, 0, "transformers' num_parameters()", 12 * 2 * 12 * 64 * 2, ""},
	{"opt-13b", 12900000000, 100_000_000, "12.9B, as its users count it", 819200, "arXiv 2309.06180 (vLLM): 800 KB a token"},
	{"opt-350m", 331196416, 0, "transformers' num_parameters()", 24 * 2 * 16 * 64 * 2, ""},
	{"bloom-560m", 559214592, 0, "the hub's safetensors.total", 24 * 2 * 16 * 64 * 2, ""},
	{"mpt-7b", 6650000000, 10_000_000, "the hub shows 6.65B, its card 6.7B", 32 * 2 * 32 * 128 * 2, ""},
	{"gpt-j-6b", 6050882784, 0, "transformers' num_parameters(); EleutherAI's card has 6,053,381,344, by its own code's count", 28 * 2 * 16 * 256 * 2, ""},
	{"olmo-2-7b", 7298617344, 0, "the hub's safetensors.total", 32 * 2 * 32 * 128 * 2, ""},
	{"olmo-2-13b", 13716198400, 0, "the hub's safetensors.total", 40 * 2 * 40 * 128 * 2, ""},
	{"starcoder2-3b", 3030000000, 10_000_000, "the hub shows 3.03B", 30 * 2 * 2 * 128 * 2, ""},
	{"gpt-oss-20b", 20914757184, 0, "general.parameter_count of its GGUFs; Ollama's /api/show", 49152, "the GGUFs' own KV: 49152 bytes a token"},
	{"stablelm-2-1.6b", 1644515328, 0, "the hub's safetensors.total", 24 * 2 * 32 * 64 * 2, ""},
	{"aya-expanse-8b", 8028033024, 0, "the hub's safetensors.total", 32 * 2 * 8 * 128 * 2, ""},
	{"internlm2_5-20b", 19861149696, 0, "the hub's safetensors.total", 48 * 2 * 8 * 128 * 2, ""},
	{"chatglm2-6b", 6243584000, 0, "a published count over its weights: 6243584000", 28 * 2 * 2 * 128 * 2, ""},
	{"qwen-7b", 7721324544, 0, "a published count over its weights: 7721324544", 32 * 2 * 32 * 128 * 2, ""},
}

func TestParametersAndCacheAreThePublishedOnes(t *testing.T) {
	for _, p := range published {
		m, err := Open(filepath.Join("testdata", p.model+".json"))
		if err != nil {
			t.Errorf("%s: %v", p.model, err)
			continue
		}
		if got := m.Parameters(); max(got-p.parameters, p.parameters-got) > p.rounded/2 {
			t.Errorf("%s has %d parameters, %d are published (%s)", p.model, got, p.parameters, p.source)
		}
		if got := 2 * m.KVValues(); got != p.kvBytes {
			t.Errorf("a token of %s takes %d bytes, %d are right %s", p.model, got, p.kvBytes, p.kvSource)
		}
	}
}

// Only rounded numbers are published of what a token passes in a mixture.
func TestActiveParametersAreThePublishedOnes(t *testing.T) {
	for _, p := range []struct {
		model          string
		billions, half float64 // at the precision of
		source         string
	}{
		{"mixtral-8x7b", 12.9, 0.05, "arXiv 2401.04088: 13B; Mistral's announcement: 12.9B"},
		{"qwen1.5-moe-a2.7b", 2.7, 0.05, "its card: 2.7B"},
		{"qwen3-30b-a3b", 3.3, 0.06, "its card: 3.3B"},
		{"phi-3.5-moe", 6.6, 0.05, "its card: 6.6B"},
		{"deepseek-v3", 37, 0.6, "arXiv 2412.19437: 37B"},
		{"gpt-oss-20b", 3.6, 0.6, "its card: 3.6B, the embedding not counted"},
	} {
		m, err := Open(filepath.Join("testdata", p.model+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(m.ActiveParameters()) / 1e9; got < p.billions-p.half || got > p.billions+p.half {
			t.Errorf("a token passes %.2f billion parameters of %s, %g are published (%s)", got, p.model, p.billions, p.source)
		}
	}
}

func TestWindowsAreOfTheRightLayers(t *testing.T) {
	for model, want := range map[string]map[int]int{ // layers by window
		"mistral-7b": {4096: 32}, "mixtral-8x7b": {0: 32}, "gemma-2-2b": {4096: 13, 0: 13}, "gemma-3-1b": {512: 22, 0: 4},
		"qwen2.5-7b": {0: 28}, "gpt-oss-20b": {128: 12, 0: 12}, "phi-3-mini": {2047: 32}, "llama-2-7b": {0: 32}, "starcoder2-3b": {4096: 30},
	} {
		m, err := Open(filepath.Join("testdata", model+".json"))
		if err != nil {
			t.Fatal(err)
		}
		got := map[int]int{}
		for _, c := range m.Caches {
			got[c.Window] += c.Layers
		}
		if len(got) != len(want) {
			t.Errorf("%s has layers by window %v, %v is right", model, got, want)
		}
		for window, layers := range want {
			if got[window] != layers {
				t.Errorf("%s has layers by window %v, %v is right", model, got, want)
			}
		}
	}
}
