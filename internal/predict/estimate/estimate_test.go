package estimate

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modelsize"
	"llmparity/native/huggingface"
	"llmparity/native/llamacpp"
	"llmparity/native/ollama"
	"llmparity/native/server"
)

// WebLLM is a copy: its package imports this one.
var (
	WebLLM = &engine.Memory{Name: "webllm", Title: "WebLLM", Runtime: "mlc", Formats: []string{"webllm"},
		Before:   370 * mib,
		FourBits: "q4f32_1"}
	// Transformers computes in a model's own dtype, as a plan cannot say.
	Transformers = &engine.Memory{Name: "transformers", Title: "transformers", Runtime: "torch", FourBits: "nf4",
		KVTypes: []string{"f32", "f16", "bf16", "int8"}, Program: huggingface.Memory.Program}
	LlamaCPP, Ollama = llamacpp.Memory, ollama.Memory
	VLLM             = server.VLLMMemory
	engines          = []*engine.Memory{WebLLM, LlamaCPP, Ollama, VLLM, Transformers}
)

const configs = "../../models/hfconfig/testdata"

func config(t *testing.T, name string) Model {
	t.Helper()
	m, err := models.Sizes(filepath.Join(configs, name+".json"))
	check.Err(t, err)
	return m
}

func of(t *testing.T, m Model, s Setup) Estimate {
	t.Helper()
	if s.Engine == nil {
		s.Engine, _ = Choose(engines, "", m, s)
	}
	e, err := Of(m, s)
	check.Err(t, err)
	sane(t, e)
	return e
}

// sane checks what holds for every estimate.
func sane(t *testing.T, e Estimate) {
	t.Helper()
	var sum int64
	for _, c := range e.Components {
		if c.Low > c.Best || c.Best > c.High || c.Low < 0 {
			t.Errorf("%s: %d … %d … %d", c.Name, c.Low, c.Best, c.High)
		}
		if c.Method == "" || c.Confidence == "" {
			t.Errorf("%s has no method or confidence", c.Name)
		}
		if c.Name != Total && c.Name != TotalUsed && c.Name != KVUsed && c.Name != Increase {
			sum += c.Best
		}
	}
	for _, n := range e.Needs() {
		if n.Best < 0 || n.High < n.Best || n.What == "" {
			t.Errorf("need of %s: %+v", n.Place, n)
		}
	}
	if total := e.Component(Total).Best; sum != total {
		t.Errorf("components add up to %d, the total is %d", sum, total)
	}
}

// Sizes of files, rounded to 0.01 GB. Tests of package hfconfig have the exact ones.
func TestWeightsMatchRoundedSizes(t *testing.T) {
	for quantization, c := range map[string]struct{ bytes, within float64 }{
		"awq":  {3.89e9, 0.0015}, // model.safetensors of TheBloke/Llama-2-7B-AWQ
		"gptq": {3.90e9, 0.0026}, // model.safetensors of TheBloke/Llama-2-7B-GPTQ
	} {
		e := of(t, config(t, "llama-2-7b"), Setup{Engine: LlamaCPP, Quantization: quantization, Context: 128})
		if got := float64(e.Component(Weights).Best); math.Abs(got-c.bytes) > c.within*c.bytes {
			t.Errorf("%s: %.0f bytes, want %.0f", quantization, got, c.bytes)
		}
	}
}

// Sizes that follow from the definition of a format. MLC's q4f16_2 leaves embedding and head, of 2 × 32000 × 4096
// values, in float16: 2 bytes each, in place of 18 for 32. NVFP4 of Llama 3.1 8B: the layers' 6979321856 values at half
// a byte and a byte for 16, two numbers for each of 224 matrices; the rest in 16 bits.
func TestFormats(t *testing.T) {
	weights := func(model string, e *engine.Memory, q string) int64 {
		return of(t, config(t, model), Setup{Engine: e, Quantization: q, Context: 64}).Component(Weights).Best
	}
	const both, linear, all = 2 * 32000 * 4096, 6979321856, 8030261248
	d := weights("llama-2-7b", WebLLM, "q4f16_2") - weights("llama-2-7b", WebLLM, "q4f16_1")
	if d != both*2-both*18/32 {
		t.Errorf("%d bytes more, want %d", d, both*2-both*18/32)
	}
	if n, want := weights("llama-3.1-8b", VLLM, "nvfp4"), int64(linear/2+linear/16+224*8+(all-linear)*2); n != want {
		t.Errorf("%d bytes, want %d", n, want)
	}
}

// Sizes that engines reported.
func TestReservedCaches(t *testing.T) {
	smollm, llama := config(t, "smollm2-135m"), config(t, "llama-2-7b")
	for _, c := range []struct {
		name  string
		m     Model
		s     Setup
		bytes int64
	}{
		{"llama.cpp, f16", smollm, Setup{Engine: LlamaCPP, Context: 1024}, 22.5 * mib},
		{"llama.cpp, f32", smollm, Setup{Engine: LlamaCPP, Context: 1024, KVDType: "f32"}, 45 * mib},
		{"llama.cpp, padded", smollm, Setup{Engine: LlamaCPP, Context: 1000}, 22.5 * mib},
		{"llama.cpp, 8192", smollm, Setup{Engine: LlamaCPP, Context: 8192}, 180 * mib},
		// its log: 23.91 MiB
		{"llama.cpp, q8_0", smollm, Setup{Engine: LlamaCPP, Context: 2048, KVDType: "q8_0"}, 25067520},
		{"llama.cpp, keys and values differ", smollm, Setup{Engine: LlamaCPP, Context: 2048, KVDType: "q8_0",
			ValueType: "f16"}, (25067520 + 45*mib) / 2},
		{"Ollama, 4 slots", smollm, Setup{Engine: Ollama, Context: 2048, Concurrency: 4}, 180 * mib},
		{"WebLLM", smollm, Setup{Engine: WebLLM, Context: 512, Quantization: "q0f32"},
			30 * 2 * 3 * 64 * 4 * 16 * (32 + 1)},
		{"WebLLM, half", smollm, Setup{Engine: WebLLM, Context: 500, Quantization: "q4f16_1"},
			30 * 2 * 3 * 64 * 2 * 16 * (32 + 1)},
		{"vLLM's blocks", llama, Setup{Engine: VLLM, Context: 100, Concurrency: 3}, 3 * 112 * 524288},
		{"transformers grows", llama, Setup{Engine: Transformers, InputLen: 8, OutputLen: 100}, 108 * 524288},
		{"fp8", llama, Setup{Engine: VLLM, Context: 1024, KVDType: "fp8_e5m2"}, 1024 * 262144},
		{"windows, transformers", config(t, "gemma-2-2b"),
			Setup{Engine: Transformers, Context: 8192, DType: "bfloat16"}, (13*8192 + 13*4096) * 2 * 4 * 256 * 2},
		{"windows, llama.cpp", config(t, "gemma-3-1b"), Setup{Engine: LlamaCPP, Context: 8192},
			(4*8192 + 22*1024) * 2 * 256 * 2},
		{"window ignored by llama.cpp", config(t, "mistral-7b"), Setup{Engine: LlamaCPP, Context: 8192},
			8192 * 131072},
		{"window in vLLM", config(t, "mistral-7b"), Setup{Engine: VLLM, Context: 8192}, 4096 * 131072},
		{"latent", config(t, "deepseek-v3"), Setup{Engine: VLLM, Context: 16}, 16 * 70272},
		{"latent on 8 devices", config(t, "deepseek-v3"), Setup{Engine: VLLM, Context: 16, TensorParallel: 8},
			8 * 16 * 70272},
		{"8 heads on 4 devices", config(t, "llama-3.1-70b"), Setup{Engine: VLLM, Context: 16, TensorParallel: 4},
			16 * 327680},
		{"8 heads on 16 devices", config(t, "llama-3.1-70b"), Setup{Engine: VLLM, Context: 16, TensorParallel: 16},
			2 * 16 * 327680},
	} {
		if got := of(t, c.m, c.s).Component(KVReserved).Best; got != c.bytes {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.bytes)
		}
	}
	e := of(t, smollm, Setup{Engine: LlamaCPP, Context: 8192, InputLen: 25, OutputLen: 64})
	if used := e.Component(KVUsed).Best; used != 89*23040 {
		t.Errorf("%d bytes used", used)
	}
}

// Compute buffers in the log of llama.cpp, for SmolLM2 and random models.
func TestComputeBuffersMatchLogs(t *testing.T) {
	smollm := config(t, "smollm2-135m")
	shaped := func(hidden, heads, kv, dim, inter int) Model {
		m, err := modelsize.FromNumbers(modelsize.Numbers{
			Layers: 2, Hidden: hidden, Heads: heads, KVHeads: kv, HeadDim: dim,
			Intermediate: inter, Vocab: 640})
		check.Err(t, err)
		return m
	}
	for _, c := range []struct {
		m       Model
		context int
		ubatch  int
		noFlash bool
		mib     float64
	}{
		{smollm, 512, 512, true, 17.51}, {smollm, 2048, 512, true, 47.51}, {smollm, 8192, 512, true, 167.51},
		{smollm, 8192, 128, true, 41.88},
		{smollm, 1024, 512, false, 15.64}, {smollm, 8192, 512, false, 22.64}, {smollm, 2048, 2048, true, 190.05},
		{smollm, 2048, 2048, false, 66.57},
		{shaped(512, 8, 8, 64, 512), 512, 512, true, 17.01}, {shaped(512, 8, 8, 64, 4096), 512, 512, true, 32.01},
		{shaped(512, 8, 8, 64, 4096), 512, 512, false, 29.52},
		{shaped(512, 8, 2, 64, 2048), 512, 512, true, 18.51}, {shaped(512, 8, 8, 128, 512), 512, 512, true, 22.01},
		{shaped(1024, 16, 16, 64, 512), 512, 512, false, 16.52},
	} {
		a := of(t, c.m, Setup{Engine: LlamaCPP, Context: c.context,
			Own: []any{GGMLSettings{UBatch: c.ubatch, NoFlash: c.noFlash}}}).Component(
			Activation)
		if got := float64(a.Best) / mib; math.Abs(got-c.mib) > 0.2*c.mib {
			t.Errorf("%d × %d, %v: %.2f MiB, want %.2f", c.context, c.ubatch, c.noFlash, got, c.mib)
		}
		if float64(a.Low) > c.mib*mib || float64(a.High) < c.mib*mib {
			t.Errorf("%.2f MiB is outside %d to %d", c.mib, a.Low, a.High)
		}
	}
}

func TestLibraryMemoryUsageReplacesFormula(t *testing.T) {
	m := config(t, "smollm2-135m")
	m.Library = &mlc.Library{Metadata: mlc.Metadata{MemoryUsage: map[string]int64{"prefill": 1000, "decode": 500}}}
	e := of(t, m, Setup{Engine: WebLLM, Context: 512, Quantization: "q0f32",
		Own: []any{MLCSettings{PrefillChunk: 128}}})
	cache := int64(128*((2*576+2*192)*4+8*9)) + tables
	if a := e.Component(Activation); a.Best != cache+1050 || a.Low != cache || a.High < a.Best || a.Confidence != Low {
		t.Errorf("%+v", a)
	}
	m.Library.Own = &mlc.Own{}
	if a := of(t, m, Setup{Engine: WebLLM, Context: 512, Quantization: "q0f32"}).Component(Activation); a.Best != cache+
		1050 || a.Confidence != Medium {
		t.Errorf("%+v", a)
	}
}

// Workspaces that the WebGPU ledger counted with our own libraries.
func TestWorkspacesMatchLedger(t *testing.T) {
	m, err := modelsize.FromNumbers(modelsize.Numbers{
		Layers: 2, Hidden: 128, Heads: 4, KVHeads: 2, Intermediate: 256, Vocab: 512})
	check.Err(t, err)
	for _, c := range []struct {
		m        Model
		measured float64
	}{{m, 1106456}, {config(t, "qwen2-0.5b"), 7639160}} {
		a := of(t, c.m, Setup{Engine: WebLLM, Context: 512, Quantization: "q0f32",
			Own: []any{MLCSettings{PrefillChunk: 128}}}).Component(
			Activation)
		if math.Abs(float64(a.Best)-c.measured) > 0.1*c.measured {
			t.Errorf("%d bytes, want %.0f", a.Best, c.measured)
		}
	}
}

func TestNumbers(t *testing.T) {
	m, err := modelsize.FromNumbers(modelsize.Numbers{
		Parameters: 6.7e9, Layers: 32, Heads: 32, Hidden: 4096, HeadDim: 128})
	check.Err(t, err)
	e := of(t, m, Setup{Context: 1024})
	if e.Component(Weights).Best != 13.4e9 || e.Component(KVReserved).Best != 512*mib {
		t.Errorf("%+v", e.Components)
	}
	if m, err = modelsize.FromNumbers(modelsize.Numbers{Layers: 32, Heads: 32, Hidden: 4096, Intermediate: 11008,
		Vocab: 32000}); err != nil || m.Parameters != 6738415616 {
		t.Errorf("%d, %v", m.Parameters, err)
	}
	for name, n := range map[string]modelsize.Numbers{
		"--num-layers": {Layers: -1, Parameters: 1e9}, "--model-params is NaN": {Parameters: math.NaN()},
		"--model-params is -1":                {Parameters: -1},
		"--model-params is +Inf":              {Parameters: math.Inf(1)},
		"--hidden-size 100 is not a multiple": {Parameters: 1e9, Hidden: 100, Heads: 3, Layers: 1},
		"is not a multiple of --num-kv-heads": {Parameters: 1e9, Heads: 32, KVHeads: 5},
		"the size of the weights is unknown":  {Layers: 3},
		"--vocab-size is":                     {Parameters: 1e9, Vocab: 1 << 30},
	} {
		if _, err := modelsize.FromNumbers(n); fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOfRefusesImpossibleSetups(t *testing.T) {
	m := config(t, "llama-2-7b")
	for says, s := range map[string]Setup{
		"--context is -1":                 {Context: -1},
		"--gpu-memory-utilization is 1.5": {Own: []any{VLLMSettings{GPUUtilization: 1.5}}},
		"--gpu-memory-utilization is NaN": {Own: []any{VLLMSettings{GPUUtilization: math.NaN()}}},
		"--gpu-memory-gb is -1":           {GPUMemoryGiB: -1},
		"--tensor-parallel-size 3":        {TensorParallel: 3},
		"one device":                      {Engine: WebLLM, TensorParallel: 2}, "--quantization awk": {Quantization: "awk"},
		"--dtype f17":           {DType: "f17"},
		"--dtype int32 is":      {Engine: VLLM, DType: "int32"},
		"--kv-cache-dtype q8_0": {Engine: VLLM, KVDType: "q8_0"},
		"--kv-cache-dtype q4_k": {Engine: LlamaCPP, KVDType: "q4_k"},
		"exceeds --context 10":  {Context: 10, InputLen: 8, OutputLen: 8},
		"would need":            {Context: maxTokens, BatchSize: 1 << 16, Concurrency: 1 << 16},
	} {
		if s.Engine == nil {
			s.Engine = Transformers
		}
		_, err := Of(m, s)
		if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if _, err := Choose(engines, "vlm", m, Setup{}); fault.Of(err) != fault.UnknownEngine ||
		!strings.Contains(err.Error(), "--engine vlm") {
		t.Error(err)
	}
}

// vLLM takes its part of the device whatever is used of it.
func TestUpFront(t *testing.T) {
	e := of(t, config(t, "llama-2-7b"), Setup{Engine: VLLM, Context: 1024, GPUMemoryGiB: 80})
	if got := e.Component(Total).Best; math.Abs(float64(got)-72*gib) > 1 {
		t.Errorf("%d bytes in total, want 0.9 × 80 GiB", got)
	}
	if c := e.Component(Total); c.Low != c.Best || c.High != c.Best {
		t.Errorf("reserved: from %d to %d", c.Low, c.High)
	}
	if used := e.Component(KVUsed).Best; used != 512*mib {
		t.Errorf("%d bytes used", used)
	}
	e = of(t, config(t, "llama-2-70b"), Setup{Engine: VLLM, Context: 1024, GPUMemoryGiB: 80})
	if e.Component(KVReserved).Best != 0 || !strings.Contains(strings.Join(e.Warnings, " "), "does not fit") {
		t.Errorf("%+v %v", e.Component(KVReserved), e.Warnings)
	}
	e = of(t, config(t, "llama-2-7b"), Setup{Engine: VLLM, Context: 4096, Concurrency: 256, GPUMemoryGiB: 80})
	if !strings.Contains(strings.Join(e.Warnings, " "), "about 28 of 256 run at a time") {
		t.Errorf("%v", e.Warnings)
	}
}

// Every format works for every architecture, and fewer bits need less memory.
func TestEveryFormatForEveryArchitecture(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(configs, "*.json"))
	if err != nil || len(files) < 12 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		m, err := models.Sizes(file)
		check.Err(t, err)
		last := int64(math.MaxInt64)
		for _, q := range []string{"q0f32", "q0f16", "int8", "q8_0", "q6_k", "q5_k_m", "q4_k_m", "awq", "q3f16_1"} {
			runs := VLLM
			if q == "q3f16_1" {
				runs = WebLLM
			}
			e := of(t, m, Setup{Engine: runs, Quantization: q, DType: "float16", Context: 64})
			n := e.Component(Weights).Best
			if q == "awq" || q == "int8" || q == "q8_0" || q == "q3f16_1" { // these quantise other parts
				last = int64(math.MaxInt64)
			}
			if n >= last || n < m.Parameters*3/8 {
				t.Errorf("%s %s: %d bytes, not below %d", file, q, n, last)
			}
			last = n
		}
		for _, engine := range engines {
			of(t, m, Setup{Engine: engine, Context: 300})
		}
	}
}
