package hfconfig_test

import (
	"path/filepath"
	"strconv"
	"testing"

	"llmparity/internal/estimate"
	"llmparity/internal/hfconfig"
	"llmparity/internal/modelsize"
	"llmparity/native/llamacpp"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// figure is a number that somebody published, and where: a repository and a path in it, or a paper. Configs in testdata
// are held against it.
type figure struct {
	value   int64
	step    int64  // what it is rounded to there; 0: not at all
	printed string // as it is printed there, where the number has to be worked out of that
	source  string // "": none was found that anybody could look up
}

func exactly(value int64, source string) figure { return figure{value: value, source: source} }

// outOf is a number that comes exactly out of what is printed.
func outOf(value int64, printed, source string) figure {
	return figure{value: value, printed: printed, source: source}
}

// rounded is a number of which some digits are printed.
func rounded(value, step float64, printed, source string) figure {
	return figure{value: int64(value), step: int64(step), printed: printed, source: source}
}

func (f figure) found() bool { return f.source != "" }

// is holds with a rounded number where rounding leads to it.
func (f figure) is(got int64) bool { return max(got-f.value, f.value-got) <= (f.step+1)/2 }

// stored is how large a model's weights are in a certain type; "" is the one that its config says.
type stored struct {
	as string
	figure
}

// row is a model of which the number of parameters is known. Its config in testdata has the fields of the published one
// that are about sizes.
type row struct {
	model      string
	parameters figure
	weights    stored
	// of the KV cache, with two bytes a value, written out: layers × 2 × key-value heads × head size × 2
	perToken int64
	kv       figure // the same, where somebody published it
	sizes    string // where the fields of the config can be looked up
}

// Whose figures these are, by repository and path.
const (
	litgpt   = "LitGPT, litgpt/config.py"
	mlcllm   = "MLC LLM, python/mlc_llm/model/model_preset.py"
	aiconfig = "ai-dynamo/aiconfigurator, model_configs"
	hubTests = "huggingface.js, packages/hub/src/lib/parse-safetensors-metadata.spec.ts"
	pyTests  = "huggingface_hub, tests/test_hf_api.py"
	ikLogs   = "ikawrakow/ik_llama.cpp, github-data/"
	quantize = "llama.cpp, tools/quantize/README.md"
	flops    = "MrYxJ/calculate-flops.pytorch, README.md"
	registry = "TransformerLens, tools/model_registry/data/"
	index    = "/model.safetensors.index.json"
)

// published has the models whose number of parameters can be looked up.
var published = []row{
	{"llama-2-7b", exactly(6738415616, "KerasHub, llama_presets.py; huggingface.js, packages/gguf/src/gguf.spec.ts"),
		stored{"bfloat16", exactly(13476831232, "Radhikabhrara/llama_chatbot, final_merged_checkpoint"+index)},
		32 * 2 * 32 * 128 * 2, outOf(2*2*32*32*128, "2 × 2 × 32 × 32 × 128",
			"huggingface/blog, kv-cache-quantization.md"), litgpt},
	{"llama-2-13b", exactly(13015864320, "IrfanUruchi/Llama-2-13B-Computer-Engineering-"+index),
		stored{"", outOf(26031738880-40*64*4, "26031738880, less 40 × 64 stored frequencies of 4 bytes",
			"bjornerikkorum/RUTERGPT13B"+index)},
		40 * 2 * 40 * 128 * 2, outOf(400*mib/512, "400 MiB for 512 tokens", ikLogs+"pull_requests/328"), litgpt},
	{"llama-2-70b", outOf(68976653312-80*64, "68976653312, less 80 × 64 stored frequencies",
		"the hub's model API, safetensors.total at revision 3aba440b"),
		stored{},
		80 * 2 * 8 * 128 * 2, figure{}, litgpt},
	{"llama-3.1-8b", exactly(8030261248, "KerasHub, llama3_presets.py; "+hubTests),
		stored{"", exactly(16060522496, "huggingface/hub-docs, docs/hub/transformers.md")},
		32 * 2 * 8 * 128 * 2, outOf(2048*mib/16384, "2048 MiB for 16384 tokens", ikLogs+"discussions/562"), aiconfig},
	{"llama-3.1-70b", exactly(70553706496, hubTests),
		stored{"q4_0", rounded(37.22*gib, 0.01*gib, "37.22 GiB", "ollama/ollama, pull request 6279")},
		80 * 2 * 8 * 128 * 2, rounded(0.313*gib/1024, 0.001*gib/1024, "0.313 GB for 1k tokens",
			"huggingface/blog, llama31.md"), aiconfig},
	{"llama-3.1-405b", exactly(405853388800, "the hub's model API, safetensors.total at revision b906e4dc"), stored{},
		126 * 2 * 8 * 128 * 2, outOf(516096, "516.096 KB", "arXiv 2505.09343, table 1"), aiconfig},
	{"llama-3.2-1b", outOf(1498482688-128256*2048, "1498482688, which has the tied embedding twice",
		"KerasHub, llama3_presets.py"), stored{},
		16 * 2 * 8 * 64 * 2, figure{}, litgpt},
	{"tinyllama-1.1b", exactly(1100048384,
		"Nkluge-correa/Tucano, cards/models/Tucano-1b1.md, a model of the same sizes"), stored{},
		22 * 2 * 4 * 64 * 2, figure{}, litgpt},
	{"smollm2-135m", exactly(134515008, "counted over the tensors of SmolLM2-135M-Instruct.Q4_1.gguf, which this project's own tests run"),
		stored{},
		30 * 2 * 3 * 64 * 2, figure{}, mlcllm},
	{"smollm3-3b", outOf(3075100928-36*64, "3075100928, less 36 × 64 stored frequencies",
		"KerasHub, smollm3_presets.py"), stored{},
		36 * 2 * 4 * 128 * 2, figure{}, "transformers, configuration_smollm3.py"},
	{"mistral-7b", exactly(7241732096, "KerasHub, mistral_presets.py; "+pyTests),
		stored{"float32", exactly(28966928384, "transformers, docs/source/en/models.md")},
		32 * 2 * 8 * 128 * 2,
		outOf(128*mib/1024, "128 MiB for 1024 tokens",
			"intel/ipex-llm, docs/mddocs/Quickstart/llama_cpp_quickstart.md"), litgpt},
	{"mixtral-8x7b", exactly(46702792704, "KerasHub, mixtral_presets.py"), stored{},
		32 * 2 * 8 * 128 * 2, figure{}, aiconfig},
	{"qwen2-0.5b", exactly(494032768, "KerasHub, qwen_presets.py, qwen2.5_0.5b_en, of the same sizes"), stored{},
		24 * 2 * 2 * 64 * 2, figure{}, mlcllm},
	{"qwen2.5-1.5b", exactly(1543714304, "KerasHub, qwen_presets.py, qwen2.5_math_1.5b_en, of the same sizes"),
		stored{},
		28 * 2 * 2 * 128 * 2, figure{}, litgpt},
	{"qwen2.5-3b", exactly(3085938688, "KerasHub, qwen_presets.py"),
		stored{"", exactly(6171877376, "XS-Wu/digital_person_1"+index)},
		36 * 2 * 2 * 128 * 2, figure{}, litgpt},
	{"qwen2.5-7b", exactly(7615616512, "llama.cpp, tools/llama-bench/README.md, model_n_params"),
		stored{"q4_k_m", exactly(4677120000, "llama.cpp, tools/llama-bench/README.md, model_size")},
		28 * 2 * 4 * 128 * 2, figure{}, litgpt},
	{"qwen2.5-72b", exactly(72706203648, "KerasHub, qwen_presets.py"), stored{},
		80 * 2 * 8 * 128 * 2, outOf(327680, "327.680 KB", "arXiv 2505.09343, table 1"), litgpt},
	{"qwen1.5-moe-a2.7b", exactly(14315784192, "KerasHub, qwen_moe_presets.py"), stored{},
		24 * 2 * 16 * 128 * 2, figure{}, mlcllm},
	{"qwen3-0.6b", exactly(596049920, "KerasHub, qwen3_presets.py"), stored{},
		28 * 2 * 8 * 128 * 2, outOf(448*mib/4096, "448 MiB for 4096 tokens", ikLogs+"issues/575"), aiconfig},
	{"qwen3-8b", exactly(8190735360, "KerasHub, qwen3_presets.py"), stored{},
		36 * 2 * 8 * 128 * 2, figure{}, aiconfig},
	{"qwen3-32b", exactly(32762123264, "KerasHub, qwen3_presets.py"),
		stored{"q4_0",
			rounded(17.413*gib-8*5120*25600*2/32, 0.001*gib,
				"17.413 GiB, less what 8 of 64 down projections have more in q4_1",
				ikLogs+"issues/539")},
		64 * 2 * 8 * 128 * 2, outOf(10240*mib/40960, "10240 MiB for 40960 tokens", ikLogs+"issues/539"), aiconfig},
	{"qwen3-30b-a3b", exactly(30532122624, "KerasHub, qwen3_moe_presets.py"),
		stored{"q5_k_m", rounded(20.228*gib, 0.001*gib, "20.228 GiB", ikLogs+"issues/380")},
		48 * 2 * 4 * 128 * 2, outOf(384*mib/4096, "384 MiB for 4096 tokens", ikLogs+"issues/380"), aiconfig},
	{"qwen3-235b-a22b", exactly(235093634560, "KerasHub, qwen3_moe_presets.py"),
		stored{"q8_0", rounded(232.769*gib, 0.001*gib, "232.769 GiB", ikLogs+"discussions/357")},
		94 * 2 * 4 * 128 * 2, outOf(6016*mib/32768, "6016 MiB for 32768 tokens", ikLogs+"discussions/357"), aiconfig},
	{"gemma-2b", exactly(2506172416, "KerasHub, gemma_presets.py"),
		stored{"", exactly(5012344832, "ananddhanabal/gemma"+index)},
		18 * 2 * 1 * 256 * 2, figure{}, litgpt},
	{"gemma-7b", exactly(8537680896, "KerasHub, gemma_presets.py; "+hubTests), stored{},
		28 * 2 * 16 * 256 * 2, figure{}, litgpt},
	{"gemma-2-2b", exactly(2614341888, "KerasHub, gemma_presets.py"), stored{},
		26 * 2 * 4 * 256 * 2, figure{}, litgpt},
	{"gemma-2-9b", exactly(9241705984, "KerasHub, gemma_presets.py"), stored{},
		42 * 2 * 8 * 256 * 2, figure{}, litgpt},
	{"gemma-3-1b", exactly(999885952, "KerasHub, gemma3_presets.py"), stored{},
		26 * 2 * 1 * 256 * 2, figure{}, litgpt},
	{"gemma-3-27b", exactly(27009002240, "KerasHub, gemma3_presets.py, gemma3_27b_text"),
		stored{"q4_0",
			rounded(14.539*gib-7*5376*21504*2/32, 0.001*gib,
				"14.539 GiB, less what 7 of 62 down projections have more in q4_1",
				ikLogs+"issues/539")},
		62 * 2 * 16 * 128 * 2, outOf(63488*mib/131072, "63488 MiB for 131072 tokens", ikLogs+"issues/539"), litgpt},
	{"phi-2", exactly(2779683840, "LitGPT, tutorials/0_to_litgpt.md"), stored{},
		32 * 2 * 32 * 80 * 2, figure{}, litgpt},
	{"phi-3-mini", exactly(3821079552, "KerasHub, phi3_presets.py"),
		stored{"", exactly(7642159104, "YouriLalain/3PRYMMAL-PHI3-3B-SLERP"+index)},
		32 * 2 * 32 * 96 * 2,
		outOf(49248*mib/131328, "49248 MiB for 131328 tokens",
			"llama.cpp, issue 6849, Phi-3-mini-128k, of the same sizes"), litgpt},
	{"phi-3.5-moe", rounded(42e9, 1e9, "42B", "arXiv 2404.14219"), stored{},
		32 * 2 * 8 * 128 * 2, figure{}, "llama.cpp, pull request 11003"},
	{"phi-4", exactly(14659507200, "NVIDIA NeMo Customizer, Helm values, customizationTargets microsoft/phi-4@1.0"),
		stored{},
		40 * 2 * 10 * 128 * 2, figure{}, litgpt},
	{"deepseek-v2-lite", rounded(15.706e9, 1e6, "15.706 B", ikLogs+"issues/230, DeepSeek-Coder-V2-Lite"),
		stored{"", rounded(29.26*gib, 0.01*gib, "29.26 GiB", "llama.cpp, pull request 8068")},
		27 * (512 + 64) * 2, outOf(972*mib/32768, "972 MiB for 32768 tokens", ikLogs+"pull_requests/273"), mlcllm},
	{"deepseek-v3", rounded(671.026e9, 1e6, "671.026 B",
		ikLogs+"pull_requests/409; 671B in deepseek-ai/DeepSeek-V3, README_WEIGHTS.md"),
		stored{"q8_0", rounded(664.295*gib, 0.001*gib, "664.295 GiB",
			ikLogs+"issues/271, DeepSeek R1, of the same sizes")},
		61 * (512 + 64) * 2,
		outOf(1098*mib/16384, "1098 MiB for 16384 tokens; 70.272 KB",
			ikLogs+"pull_requests/409; arXiv 2505.09343, table 1"), aiconfig},
	{"gpt2", exactly(124439808, "KerasHub, gpt2_presets.py; LLM Foundry, scripts/inference/README.md"), stored{},
		12 * 2 * 12 * 64 * 2, figure{}, mlcllm},
	{"gpt2-xl", exactly(1557611200, "KerasHub, gpt2_presets.py"), stored{},
		48 * 2 * 25 * 64 * 2, figure{}, "nanoGPT, model.py"},
	{"gpt-j-6b", outOf(6053381344-7*(29*2*4096+28*4096)-8*4096,
		"6,053,381,344, which has norms and output biases 8 times, "+
			"as its training's 8 shards have them, and 8 of an embedding's bias",
		"kingoflolz/mesh-transformer-jax, README.md"), stored{},
		28 * 2 * 16 * 256 * 2, figure{}, mlcllm},
	{"gpt-oss-20b", exactly(20914757184, "KerasHub, gpt_oss_presets.py; "+hubTests),
		stored{"",
			outOf(1804459584*2+19110297600/2+597196800,
				"1804459584 in 2 bytes, 19110297600 in 4 bits, 597196800 scales; 12.8 GiB",
				hubTests+"; arXiv 2508.10925")},
		24 * 2 * 8 * 64 * 2, figure{}, aiconfig},
	{"pythia-70m", outOf(18915328+2*50304*512, "18,915,328 without both embeddings", "arXiv 2304.01373, table 1"),
		stored{},
		6 * 2 * 8 * 64 * 2, figure{}, litgpt},
	{"pythia-6.9b", outOf(6444163072+2*50432*4096, "6,444,163,072 without both embeddings",
		"arXiv 2304.01373, table 1"), stored{},
		32 * 2 * 32 * 128 * 2, figure{}, litgpt},
	{"falcon-180b", outOf(179522565120-65024*14848, "179522565120, which has the tied embedding twice",
		"the hub's model API, safetensors.total at revision d2ea5531"),
		stored{"", outOf(359045130240-2*65024*14848, "359045130240, which has the tied embedding twice",
			"Alikhan13r/falcon-180B-chat"+index)},
		80 * 2 * 8 * 64 * 2, figure{}, litgpt},
	{"opt-125m", outOf(125237760+2*768, "125237760, which lacks two of the 2050 positions", "KerasHub, opt_presets.py"),
		stored{},
		12 * 2 * 12 * 64 * 2, figure{}, "transformers, configuration_opt.py"},
	{"opt-13b", rounded(13e9, 1e9, "13B", "arXiv 2309.06180, section 3"), stored{},
		40 * 2 * 40 * 128 * 2, outOf(800*1024, "800 KB, as 2 × 5120 × 40 × 2", "arXiv 2309.06180, section 3"),
		"arXiv 2309.06180, section 3"},
	{"bloom-560m", exactly(559214592, "KerasHub, bloom_presets.py; "+pyTests), stored{},
		24 * 2 * 16 * 64 * 2, figure{}, ""},
	{"bloom-176b", exactly(176247271424, hubTests),
		stored{"", exactly(352494542848, "huggingface_hub, src/huggingface_hub/hf_api.py")},
		70 * 2 * 112 * 128 * 2, figure{}, "amansingh61/bloom, config.json"},
	{"mpt-7b", exactly(6649286656, registry+"supported_models.json, gl198976/mpt-7b-instruct"), stored{},
		32 * 2 * 32 * 128 * 2, figure{}, "LLM Foundry, scripts/train/yamls/pretrain/mpt-7b.yaml"},
	{"olmo-2-7b", exactly(7298617344, "the hub's model API, safetensors.total at revision 7df9a825"), stored{},
		32 * 2 * 32 * 128 * 2, figure{}, litgpt},
	{"olmo-2-13b", exactly(13716198400, "the hub's model API, safetensors.total at revision 3fefddc1"), stored{},
		40 * 2 * 40 * 128 * 2, figure{}, litgpt},
	{"starcoder2-3b", exactly(3030371328, registry+"architecture_gaps.json, the smallest of its family"), stored{},
		30 * 2 * 2 * 128 * 2, figure{}, "transformers, configuration_starcoder2.py"},
	{"aya-expanse-8b", exactly(8028033024, registry+"supported_models.json"), stored{},
		32 * 2 * 8 * 128 * 2, figure{}, mlcllm},
	{"internlm2_5-20b", exactly(19861149696, registry+"supported_models.json"), stored{},
		48 * 2 * 8 * 128 * 2, figure{}, ""},
	{"chatglm2-6b", exactly(6243584000, flops), stored{},
		28 * 2 * 2 * 128 * 2, figure{}, mlcllm},
	{"qwen-7b", exactly(7721324544, flops),
		stored{"float16", exactly(15442649088, "stvlynn/Qwen-7B-Chat-Cantonese"+index)},
		32 * 2 * 32 * 128 * 2, figure{}, "stvlynn/Qwen-7B-Chat-Cantonese, config.json"},
}

// remembered has models whose numbers were written down from memory, and for which nothing was found that anybody could
// look up. They are held against them all the same: a number that changes is worth a look.
var remembered = []row{
	{"falcon-7b", figure{value: 7217189760 - 65024*4544, printed: "7217189760, which has the tied embedding twice"},
		stored{},
		32 * 2 * 1 * 64 * 2, figure{}, litgpt},
	{"opt-350m", figure{value: 331196416}, stored{}, 24 * 2 * 16 * 64 * 2, figure{}, ""},
	{"stablelm-2-1.6b", figure{value: 1644515328}, stored{}, 24 * 2 * 32 * 64 * 2, figure{}, mlcllm},
}

// quantized has files of published models that have no row of their own.
var quantized = []struct {
	model string
	stored
}{
	{"llama-2-7b", stored{"q4_0", exactly(
		3825065984, "ikawrakow/ik_llama.cpp, examples/llama-bench/README.md, model_size")}},
	{"llama-2-13b", stored{"q8_0", rounded(12.881*gib, 0.001*gib, "12.881 GiB", ikLogs+"pull_requests/328")}},
	{"llama-3.1-8b", stored{"q8_0", bits(8.5008)}},
	{"llama-3.1-8b", stored{"q6_k", bits(6.5633)}},
	{"llama-3.1-8b", stored{"q5_k_m", bits(5.7036)}},
	{"llama-3.1-8b", stored{"q5_k_s", bits(5.5704)}},
	{"llama-3.1-8b", stored{"q4_k_m", bits(4.8944)}},
	{"llama-3.1-8b", stored{"q4_k_s", bits(4.6672)}},
	{"llama-3.1-8b", stored{"iq4_nl", bits(4.6818)}},
	{"llama-3.1-8b", stored{"iq4_xs", bits(4.4597)}},
	{"llama-3.1-8b", stored{"q3_k_l", bits(4.2979)}},
	{"llama-3.1-8b", stored{"q3_k_s", bits(3.6429)}},
	{"llama-3.1-8b", stored{"q2_k", bits(3.1593)}},
	{"llama-3.1-8b", stored{"bitsandbytes-8bit",
		outOf(9086705888-7*32, "9086705888, less a byte a matrix that names its layout",
			"jeevanchaps/Meta-Llama3.1-8B-Instruct-assessment"+index)}},
	{"mistral-7b", stored{"q4_k_m", rounded(4.07*gib, 0.01*gib, "4.07 GiB",
		"intel/ipex-llm, docs/mddocs/Quickstart/llama_cpp_quickstart.md")}},
}

// bits is what so many bits a weight of Llama 3.1 8B come to.
func bits(perWeight float64) figure {
	const parameters = 8030261248
	f := rounded(perWeight*parameters/8, 0.0001*parameters/8, "", quantize)
	f.printed = strconv.FormatFloat(perWeight, 'f', 4, 64) + " bits a weight"
	return f
}

func TestParametersAndCacheAsPublished(t *testing.T) {
	for _, r := range append(published, remembered...) {
		m, err := hfconfig.Open(filepath.Join("testdata", r.model+".json"))
		if err != nil {
			t.Errorf("%s: %v", r.model, err)
			continue
		}
		if got := m.Parameters(); !r.parameters.is(got) {
			t.Errorf("%s has %d parameters, %d are right (%s %s)", r.model, got, r.parameters.value,
				r.parameters.printed, r.parameters.source)
		}
		if got := 2 * m.KVValues(); got != r.perToken {
			t.Errorf("a token of %s takes %d bytes, %d are right", r.model, got, r.perToken)
		}
		if r.kv.found() && !r.kv.is(2*m.KVValues()) {
			t.Errorf("a token of %s takes %d bytes, %d are published (%s %s)", r.model, 2*m.KVValues(), r.kv.value,
				r.kv.printed, r.kv.source)
		}
	}
}

// A row is called published only with a source for its parameters; and there are enough of each kind of figure.
func TestWhatIsPublishedHasASource(t *testing.T) {
	var whole, kv, weights int
	for _, r := range published {
		if !r.parameters.found() {
			t.Errorf("%s is called published, and its parameters have no source", r.model)
		}
		if r.kv.found() {
			kv++
		}
		if r.weights.found() {
			weights++
		}
		if r.kv.found() && r.weights.found() {
			whole++
		}
	}
	for _, r := range remembered {
		if r.parameters.found() {
			t.Errorf("the parameters of %s have a source, and are not among those that are published", r.model)
		}
	}
	if whole < 12 || kv < 12 || weights < 12 {
		t.Errorf("%d models with published weights, %d with a published cache, %d with both: 12 of each are wanted",
			weights, kv, whole)
	}
}

func TestWeightsAreThePublishedOnes(t *testing.T) {
	for _, r := range published {
		if r.weights.found() {
			checkStored(t, r.model, r.weights)
		}
	}
	for _, q := range quantized {
		checkStored(t, q.model, q.stored)
	}
}

func checkStored(t *testing.T, model string, s stored) {
	t.Helper()
	if got := weights(t, model, s.as); !s.is(got) {
		t.Errorf("weights of %s in %q take %d bytes, %d ± %d are published (%s %s)", model, s.as, got, s.value,
			s.step/2, s.printed, s.source)
	}
}

// weights are a model's bytes in a type of numbers, or quantised; "" is the type that its config says.
func weights(t *testing.T, model, as string) int64 {
	t.Helper()
	setup := estimate.Setup{Engine: llamacpp.Memory, Context: 128} // which has a GGUF's weights as they are
	switch as {
	case "float32", "float16", "bfloat16":
		setup.DType = as
	default:
		setup.Quantization = as
	}
	return of(t, model, setup).Component(estimate.Weights).Best
}

func of(t *testing.T, model string, setup estimate.Setup) estimate.Estimate {
	t.Helper()
	m, err := modelsize.Open(filepath.Join("testdata", model+".json"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := estimate.Of(m, setup)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A latent that is expanded takes heads × (nope + rope + v) values: what llama.cpp's logs have without latent
// attention.
func TestExpandedLatentsAreThePublishedOnes(t *testing.T) {
	for _, c := range []struct {
		model  string
		tokens int
		bytes  int64
		source string
	}{
		{"deepseek-v3", 2048, 9760 * mib, ikLogs + "issues/271, DeepSeek R1, of the same sizes"},
		{"deepseek-v2-lite", 512, 135 * mib, ikLogs + "issues/230, DeepSeek-Coder-V2-Lite"},
	} {
		e := of(t, c.model, estimate.Setup{Engine: estimate.Transformers, Context: c.tokens, KVDType: "f16"})
		if got := e.Component(estimate.KVUsed).Best; got != c.bytes {
			t.Errorf("%d tokens of %s take %d bytes, %d are published (%s)", c.tokens, c.model, got, c.bytes, c.source)
		}
	}
}

// Only rounded numbers are published of what a token passes in a mixture.
func TestActiveParametersAsPublished(t *testing.T) {
	for _, p := range []struct {
		model          string
		billions, half float64 // at the precision of
		source         string
	}{
		{"mixtral-8x7b", 12.9, 0.05, "arXiv 2401.04088: 13B; Mistral's announcement: 12.9B"},
		{"qwen1.5-moe-a2.7b", 2.7, 0.05, "its card: 2.7B"},
		{"qwen3-30b-a3b", 3.3, 0.06, "its card: 3.3B"},
		{"phi-3.5-moe", 6.6, 0.05, "arXiv 2404.14219: 6.6B"},
		{"deepseek-v3", 37, 0.6, "deepseek-ai/DeepSeek-V3, README.md: 37B; README_WEIGHTS.md: 36.7B"},
		{"gpt-oss-20b", 3.6, 0.6, "arXiv 2508.10925: 3.61B, the embedding not counted"},
	} {
		m, err := hfconfig.Open(filepath.Join("testdata", p.model+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(m.ActiveParameters()) / 1e9; got < p.billions-p.half || got > p.billions+p.half {
			t.Errorf("a token passes %.2f billion parameters of %s, %g are published (%s)", got, p.model, p.billions,
				p.source)
		}
	}
}

func TestWindowsAreOfTheRightLayers(t *testing.T) {
	for model, want := range map[string]map[int]int{ // layers by window
		"mistral-7b": {4096: 32}, "mixtral-8x7b": {0: 32}, "gemma-2-2b": {4096: 13, 0: 13},
		"gemma-3-1b": {512: 22, 0: 4},
		"qwen2.5-7b": {0: 28}, "gpt-oss-20b": {128: 12, 0: 12}, "phi-3-mini": {2047: 32}, "llama-2-7b": {0: 32},
		"starcoder2-3b": {4096: 30},
	} {
		m, err := hfconfig.Open(filepath.Join("testdata", model+".json"))
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
