package figure

// Names of the parts of what a browser takes beyond weights, KV cache and activations.
const (
	PageCopies      = "page_copies"
	TransferBuffers = "transfer_buffers"
	GPUProcess      = "gpu_process"
	PageHeaps       = "page_heaps"
	ProgramFiles    = "program_files"
	OtherProcesses  = "other_processes"
	NotYetThere     = "not_yet_there"
	// BrowserShare is the sum of these, and EverythingElse what they leave of FrameworkOverhead.
	BrowserShare   = "browser_share"
	EverythingElse = "everything_else"
)

// Names of the figures of a Breakdown.
const (
	Ledger       = "webgpu_ledger"
	Weights      = "weights"
	KVReserved   = "kv_reserved"
	KVUsed       = "kv_used"
	Workspaces   = "workspaces"
	Unattributed = "unattributed"
	JSHeap       = "js_heap"
	ArrayBuffers = "array_buffers"
	Wasm         = "wasm"
	UserAgent    = "user_agent"
	TotalPSS     = "total_pss"
	EngineSays   = "engine_says"
)

// Names of the components of a cell's memory: those of memory profiles of schema 2.0, and of predictions.
const (
	ModelWeights      = "model_weights"
	KVCache           = "kv_cache" // reserved
	KVCacheUsed       = "kv_cache_used"
	Activations       = "activations" // workspaces
	FrameworkOverhead = "framework_overhead"
	MultiGPUOverhead  = "multi_gpu_overhead"
	HostParts         = "host_parts" // below zero: in host memory, although a GPU computes
	MemoryIncrease    = "increase"   // from baseline to peak
	TotalMemory       = "total"
)

// Names of our own figures. Reported figures carry the engine's own names.
const (
	PeakPSS    = "peak_pss"
	Increase   = "memory_increase"
	Baseline   = "baseline_pss"
	PostWarmup = "post_warmup_pss"
	PeakUSS    = "peak_uss"
	PeakRSS    = "peak_rss_sum"
	// In place of those of PSS, where that can't be read.
	BaselineRSS   = "baseline_rss_sum"
	PostWarmupRSS = "post_warmup_rss_sum"
	IncreaseRSS   = "memory_increase_rss_sum"

	// Of the engine's processes on GPUs, as drivers list it.
	PeakVRAM       = "peak_vram"
	VRAMIncrease   = "vram_increase"
	BaselineVRAM   = "baseline_vram"
	PostWarmupVRAM = "post_warmup_vram"

	Retained    = "retained_pss"
	LoadTime    = "load_time"
	StoreBytes  = "store_bytes"
	TTFT        = "ttft"
	DecodeTPS   = "decode_tps"
	PrefillTPS  = "prefill_tps"
	ITL50       = "inter_token_latency_p50"
	ITL99       = "inter_token_latency_p99"
	Latency     = "latency"
	Tokens      = "tokens"
	Prompt      = "prompt_tokens"
	Cached      = "cached_prompt_tokens"
	LoadCPU     = "load_cpu"
	PrefillCPU  = "prefill_cpu"
	TokenCPU    = "cpu_per_token"
	SamplerCPU  = "sampler_cpu"
	SamplerBusy = "sampler_busy"
	SamplerUS   = "sampler_read"
)

// LongestBlock is the name of how long a page can do nothing else.
const LongestBlock = "longest_block"

// Names of how well an engine predicts a given text.
const (
	Perplexity = "perplexity"
	Top1       = "top1_agreement"
	KL         = "kl_divergence"

	NLLChange       = "nll_change"
	PerplexityRatio = "perplexity_ratio"
)

// Figures that another program's columns give: heap_used_mb, and gpu_mb with gpu_peak_mb.
const (
	PeakHeap   = "peak_js_heap"
	PeakWebGPU = "peak_webgpu"
)

// Times of a traffic's requests. Each launch has percentiles of them: Percentile(Queueing, 0.99) names a figure.
const (
	OfTTFT   = "ttft"     // from when a request was due until its first token
	Queueing = "queueing" // from when it was due until it was sent
	OfITL    = "itl"      // between its tokens
	TPOT     = "tpot"     // of each of its tokens behind the first
	E2E      = "e2e"      // from when it was due until it had returned
)

// Totals over all requests of a launch.
const (
	AggregateTPS = "aggregate_tps"
	RequestRate  = "requests_per_s"
	Goodput      = "goodput"       // requests/s that keep the goal
	GoodShare    = "goodput_share" // of all requests
)
