package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"llmparity/internal/record"
	"llmparity/internal/stats"
)

const (
	noPSS     = "PSS could not be read"
	noRequest = "no request succeeded"
	noCPU     = "the CPU time of the engine's processes was not read"
	filled    = "KV cache, filled (calculated)"
)

// table has the rows in the order of results.
var table = slices.Concat(memory(), times(), cpu(), sampler(), traffic(), components(), beyond(), inside(), quality())

var byName = func() map[string]*Row {
	out := map[string]*Row{}
	for i := range table {
		out[table[i].Name] = &table[i]
	}
	return out
}()

// memory has the rows of the processes' memory.
func memory() []Row {
	const without = "MiB, from RSS: only if PSS could not be read"
	out := []Row{
		{Name: PeakPSS, Title: "peak memory", Over: Lengths | Requests | Contexts, Absent: noPSS, Ratio: Always,
			Headline: Always, Moves: Sharing,
			How: "the highest total PSS of a launch. PSS (proportional set size) counts a page that n processes share as 1/n " +
				"in each",
			Column: Column{1, "peak_pss_mb", "MiB: peak memory, the highest total PSS of a launch"}, Bench: "peak-B",
			Head: "peak"},
		{Name: Increase, Title: "memory increase", Over: Lengths | Requests | Contexts, Absent: noPSS, Ratio: Always,
			Moves:  Sharing,
			How:    "peak memory minus the baseline of the same launch",
			Column: Column{2, "memory_increase_mb", "MiB: peak memory minus the baseline of the same launch"}, Bench: "increase-B",
			Head: "increase"},
		{Name: Baseline, Title: "baseline", Absent: noPSS,
			How:    "the total PSS after the engine has started and before it loads a model: the median of the readings in that time",
			Column: Column{3, "baseline_pss_mb", "MiB: total PSS before the load"}},
		{Name: PostWarmup, Title: "after warm-up", Absent: "no PSS was read after the warm-up",
			How:    "the last total PSS before the measured requests",
			Column: Column{4, "post_warmup_pss_mb", "MiB: the last total PSS before the measured requests"}},
		{Name: PeakUSS, Title: "peak USS", Absent: noPSS,
			How:    "the highest total USS of a launch. USS counts only pages that no other process shares",
			Column: Column{6, "peak_uss_mb", "MiB: the highest total USS"}},
		{Name: PeakRSS, Title: "peak RSS sum", Over: Lengths | Requests | Contexts,
			Absent: "RSS could not be read",
			Bench:  "peak-rss-sum-B",
			How:    "the highest sum of RSS over all processes at one time. A shared page counts once for each process",
			Column: Column{7, "peak_rss_sum_mb",
				"MiB: the highest sum of RSS over all processes; shared pages count in each"}},
		{Name: Retained, Title: "retained", Absent: "not read before the load or not read after the unload",
			How: "total PSS after the unload minus total PSS before the load. This figure also changes if another " +
				"browser starts or ends between the two readings",
			Column: Column{5, "retained_pss_mb", "MiB: total PSS after the unload minus the baseline"}},
		{Name: PeakHeap, Title: "peak JavaScript heap", How: "the highest value of the column heap_used_mb"},
		{Name: PeakWebGPU, Title: "peak WebGPU memory", OfSome: true, Summary: "Peak WebGPU",
			Absent: "only imported rows have it", How: "the highest value of the columns gpu_mb and gpu_peak_mb",
			Column: Column{68, "peak_webgpu_mb", "MiB: the most WebGPU memory in imported rows"}},
		{Name: BaselineRSS, Title: "baseline, RSS sum", Absent: "no RSS was read before the load",
			How: "the sum of RSS after the engine has started and before it loads a model: the median of the readings in that time", Column: Column{8, "baseline_rss_sum_mb", without}},
		{Name: PostWarmupRSS, Title: "after warm-up, RSS sum", Absent: "no RSS was read after the warm-up",
			How: "the last sum of RSS before the measured requests", Column: Column{9, "post_warmup_rss_sum_mb", without}},
		{Name: IncreaseRSS, Title: "increase, RSS sum", Bench: "increase-rss-sum-B",
			How:    "the highest sum of RSS minus the baseline of the same launch. If no process ran before the load, the increase is the whole peak",
			Column: Column{10, "memory_increase_rss_sum_mb", without}},
	}
	return mebibytes(append(out, vram()...))
}

// vram has the rows of the memory on GPUs. In it, cells are compared only in gates: that of a browser's GPU process is
// not a native engine's.
func vram() []Row {
	const of = "GPU memory of the engine's processes on all GPUs, as drivers list it, "
	out := []Row{
		{Name: PeakVRAM, Title: "peak GPU memory", How: of + "at its peak", Bench: "peak-vram-B", Head: "GPU peak",
			Column: Column{64, "peak_vram_mb", "MiB: the highest GPU memory of the engine's processes"}},
		{Name: VRAMIncrease, Title: "GPU memory increase", Bench: "vram-increase-B",
			How: of + "at its peak, minus the baseline of the same launch. Without a process on a GPU before the load, " +
				"the increase is the whole peak",
			Column: Column{65, "vram_increase_mb", "MiB: peak GPU memory minus the baseline of the same launch"}},
		{Name: BaselineVRAM, Title: "GPU memory, baseline", How: of + "at the end of the time before the load",
			Column: Column{66, "baseline_vram_mb", "MiB: GPU memory of the engine's processes before the load"}},
		{Name: PostWarmupVRAM, Title: "GPU memory, after warm-up", How: of + "at the last reading before the measured requests",
			Column: Column{67, "post_warmup_vram_mb", "MiB: the last GPU memory before the measured requests"}},
	}
	for i := range out {
		out[i].Absent, out[i].OfSome = "no driver lists the engine's processes", true
	}
	return out
}

// mebibytes sets unit and direction of memory rows that have none of their own.
func mebibytes(rows []Row) []Row {
	for i := range rows {
		rows[i].Unit, rows[i].Better = cmp.Or(rows[i].Unit, "MiB"), cmp.Or(rows[i].Better, Lower)
	}
	return rows
}

// times has the rows of requests.
func times() []Row {
	const noGap = "no request has two pieces of text whose times are known"
	return []Row{
		{Name: LoadTime, Title: "load time", Unit: "ms", Better: Lower, Absent: "no load ended",
			How: "the time from requesting the model until the engine is ready. If an engine starts with its model, " +
				"the load time includes the start of the engine",
			Ratio: Always, Moves: Load | Shaders, Bench: "load-sec", Head: "load", Summary: "Load",
			Bar: [2]string{"load", "Load time"}, Profile: "load_time_ms",
			Column: Column{11, "load_time_ms", "milliseconds from requesting the model until it is ready"}},
		{Name: StoreBytes, Title: "browser's store", Unit: "MiB", Better: Lower,
			Absent: "no browser's profile was read", OfSome: true,
			How:    "the size of the folders of the browser's profile in which pages store files, after the load",
			Column: Column{63, "store_mb", "MiB: what the browser has stored on disk after the load"}},
		{Name: TTFT, Title: "time to first token", Unit: "ms", Better: Lower, Until: true,
			Absent:  "no request returned a token",
			How:     "the time from when a request " + LeftHost + " until its first token arrived",
			Request: TimeToFirst, Ratio: Always, Headline: Always, Moves: Cache | Load | Pieces | Shaders,
			Bench: "ttft-sec", Head: "TTFT", Over: Lengths, Summary: "First token",
			Bar:     [2]string{"ttft", "Time to first token"},
			Profile: "ttft_ms",
			Column:  Column{12, "ttft_ms", "milliseconds from sending the request to its first token"}},
		{Name: DecodeTPS, Title: "decode", Unit: "tokens/s", Better: Higher, Until: true,
			Absent:  "no request returned two tokens",
			How:     Later + " / (time of the last token - time of the first token). " + LaterHow,
			Request: DecodeRate, Ratio: Always, Headline: Alone, Moves: Length | Pieces | Shaders,
			Bench: "decode-tokens/s", Head: "decode", Over: Requests, Summary: "Decode",
			Bar:     [2]string{"decode", "Decode speed"},
			Profile: "decode_tokens_per_second",
			Column: Column{17, "decode_tokens_per_s",
				"tokens/s after the first token: " + Later + " / the time that they took"}},
		{Name: ITL50, Title: "inter-token latency, p50", Unit: "ms", Better: Lower, Absent: noGap, Over: Lengths,
			How: "the median " + BetweenTokens, Head: "ITL p50", Bench: "itl-p50-sec", Summary: "Inter-token p50",
			Request: func(r *record.Request) float64 { return stats.Median(Gaps(r)) },
			Column:  Column{13, "itl_p50_ms", "milliseconds: median time between tokens"}},
		{Name: ITL99, Title: "inter-token latency, p99", Unit: "ms", Better: Lower, Absent: noGap,
			How: "the 99th percentile (nearest rank) of the " + BetweenTokens, Bench: "itl-p99-sec", Summary: "p99",
			Request: func(r *record.Request) float64 {
				return stats.Ranked(slices.Sorted(slices.Values(Gaps(r))), 0.99)
			},
			Column: Column{14, "itl_p99_ms", "milliseconds: 99th percentile of the time between tokens"}},
		{Name: PrefillTPS, Title: "prefill", Unit: "tokens/s", Better: Higher,
			Absent: "the time or the length of the prefill is not known",
			How:    "prompt tokens that did not come from a cache / the time of the prefill", Request: prefillRate, Ratio: Always,
			Moves: Cache | Pieces | Shaders, Bench: "prefill-tokens/s", Summary: "Prefill", Over: Lengths,
			Bar: [2]string{"prefill", "Prefill speed"}, Profile: "prefill_tokens_per_second",
			Column: Column{16, "prefill_tokens_per_s", "computed prompt tokens per second"}},
		{Name: Latency, Title: "request latency", Over: Lengths, Unit: "ms", Better: Lower, Until: true,
			Absent: noRequest,
			Bench:  "latency-sec",
			How:    "the time from when a request " + LeftHost + " until the request returned", Request: EndToEnd,
			Column: Column{15, "latency_ms", "milliseconds from sending the request until it returned"}},
		{Name: Tokens, Title: "tokens generated", Unit: "tokens", Absent: noRequest,
			How:     "the number of generated tokens, counted inside the engine",
			Request: func(r *record.Request) float64 { return float64(r.Tokened()) },
			Column:  Column{18, "tokens_generated", "generated tokens"}},
		{Name: Prompt, Title: "prompt tokens", Unit: "tokens", Absent: "the engine reports neither ids nor a count",
			How:     "the number of tokens into which the engine splits the prompt",
			Request: func(r *record.Request) float64 { return known(r.Prompted(), 0) },
			Column:  Column{19, "prompt_tokens", "tokens of the prompt, as the engine splits it"}},
		{Name: Cached, Title: "prompt tokens from a cache", Unit: "tokens", Absent: noRequest,
			Request: func(r *record.Request) float64 { return known(r.CachedTokens, record.CacheUnknown) },
			How:     "the number of prompt tokens that an earlier request computed. Prefill covers only the other prompt tokens",
			Column:  Column{20, "cached_prompt_tokens", "prompt tokens that came from a cache"}},
		{Name: LongestBlock, Title: "longest block of the page", Unit: "ms", Better: Lower,
			Absent: "no main thread of a page was watched", Request: longestBlock, OfSome: true,
			Bench: "longest-block-sec", Summary: "Longest block",
			How: "the longest time for which a request blocked the main thread of the engine's page, in the prefill or the " +
				"decode, to within 20 ms. Nothing in the page can be clicked or drawn meanwhile",
			Column: Column{62, "longest_block_ms",
				"milliseconds: the longest time for which a request blocked the main thread of its page"}},
	}
}

// cpu has the rows of the CPU time of an engine's processes. No ratio compares engines in them: an engine that computes
// on a GPU has little.
func cpu() []Row {
	const of = "CPU time of all the engine's processes, without llmparity's own, "
	return []Row{
		{Name: LoadCPU, Title: "CPU time of the load", Unit: "ms", Better: Lower, Absent: noCPU,
			How:    of + "from before the load until after it",
			Column: Column{59, "load_cpu_ms", "milliseconds of CPU time that the engine's processes used for the load"}},
		{Name: PrefillCPU, Title: "CPU time of the prefill", Unit: "ms", Better: Lower, Absent: noCPU,
			How: of + "from before the request was sent until it was read after the first token, minus that of the tokens " +
				"that came in between",
			Column: Column{60, "prefill_cpu_ms",
				"milliseconds of CPU time that the engine's processes used until the first token"}},
		{Name: TokenCPU, Title: "CPU time per token", Unit: "ms", Better: Lower, Absent: noCPU,
			How: of + "from when it was read after the first token until the request returned / the number of tokens " +
				"generated in between",
			Column: Column{61, "cpu_per_token_ms",
				"milliseconds of CPU time that the engine's processes used for each token after the first"}},
	}
}

// OfCPU reports whether a figure is CPU time, which can find a regression but rules none out: a wait costs none.
func OfCPU(name string) bool { return name == LoadCPU || name == PrefillCPU || name == TokenCPU }

// sampler has the rows of what measuring costs.
func sampler() []Row {
	return []Row{
		{Name: SamplerBusy, Title: "cost of reading memory while the engine works", Unit: "%", Better: Lower,
			Absent: "nothing was sampled",
			How: "the share of load, warm-up and measured requests during which llmparity was reading memory, without what " +
				"reads wait for a processor. 100% keeps one core busy. Readings between these phases do not count",
			Column: Column{27, "sampler_busy_percent", "percent of one core that sampling used while the engine worked"}},
		{Name: SamplerUS, Title: "time per read", Unit: "µs", Better: Lower, Absent: "nothing was sampled",
			How:    "time spent reading memory / number of readings, over all methods",
			Column: Column{28, "sampler_read_us", "microseconds per reading of memory"}},
		{Name: SamplerCPU, Title: "llmparity's CPU share", Unit: "%", Better: Lower, Absent: "not recorded",
			How: "CPU time of llmparity / the length of the launch. 100% is one core. CPU time that the browser " +
				"spends on llmparity's commands is left out",
			Column: Column{29, "sampler_cpu_percent", "percent of one core that llmparity used"}},
	}
}

// Times is a time of each request of a traffic, in ms: one value, or one for each gap.
type Times struct {
	Name, Title, How string
	column, what     string
	Of               func(*record.Request) []float64
}

// TimesOfTraffic lists them in the order of results.
func TimesOfTraffic() []Times {
	return []Times{
		{OfTTFT, "time to first token",
			"time from when a request was due until its first token. The time includes waiting before the request was sent", "ttft",
			"from when a request was due until its first token", one(TimeToFirst)},
		{Queueing, "queueing", "time that a request waited until it was sent, because the engine was already " +
			"working on as many requests as allowed. Waiting inside the engine counts as time to first token", "queueing",
			"from when a request was due until it was sent", one(Queued)},
		{OfITL, "inter-token latency", BetweenTokens, "all_itl",
			"between tokens", Gaps},
		{TPOT, "time per output token", "quotient (time of the last token - time of the first token) / " + Later, "tpot",
			"per token after the first", one(PerToken)},
		{E2E, "end to end", "time from when a request was due until the request returned", "e2e",
			"from when a request was due until it returned", one(EndToEnd)},
	}
}

func one(of func(*record.Request) float64) func(*record.Request) []float64 {
	return func(r *record.Request) []float64 { return []float64{of(r)} }
}

// traffic has the rows of launches with several requests.
func traffic() []Row {
	place := 34
	var out []Row
	for _, t := range TimesOfTraffic() {
		for _, share := range Quantiles() {
			percent := math.Round(100 * share)
			row := Row{Name: Percentile(t.Name, share), Title: fmt.Sprintf("%s, p%g", t.Title, percent),
				Unit: "ms", Better: Lower, Moves: Shaders,
				How: fmt.Sprintf("the %gth percentile (nearest rank), over all requests of a launch, of the %s", percent, t.How),
				Column: Column{place, fmt.Sprintf("%s_p%g_ms", t.column, percent),
					fmt.Sprintf("milliseconds %s: the %gth percentile in a launch of several requests", t.what, percent)}}
			if t.Name != OfITL && share != 0.9 {
				row.Over = Requests
			}
			out = append(out, row)
			place++
		}
	}
	const span, noGoal = "the time from when the first request was due until ", "the plan has no goals"
	return append(out,
		Row{Name: AggregateTPS, Over: Requests, Title: "tokens/s of all requests", Unit: "tokens/s", Better: Higher,
			Ratio: Together, Moves: Shaders,
			Headline: Together, Absent: "no request returned a token", Bench: "aggregate-tokens/s",
			How: "generated tokens of a launch's successful requests / " + span + "the last token",
			Column: Column{30, AggregateTPS,
				"tokens/s of all requests of a launch together, if there are several"}},
		Row{Name: RequestRate, Over: Requests, Title: "requests/s", Unit: "requests/s", Better: Higher,
			Absent: noRequest,
			How:    "the number of a launch's successful requests / " + span + "the last request returned",
			Column: Column{31, RequestRate, "successful requests per second"}},
		Row{Name: Goodput, Over: Requests, Title: "goodput", Unit: "requests/s", Better: Higher, Absent: noGoal,
			How:    "the number of a launch's requests that met the goals (%s) / " + span + "the last request returned",
			Column: Column{32, Goodput, "requests/s that met the plan's goals"}},
		Row{Name: GoodShare, Title: "requests that met the goals", Unit: "%", Better: Higher, Absent: noGoal,
			How:    "the share of a launch's requests that met the goals (%s). A failed request does not meet the goals",
			Column: Column{33, "goodput_share_percent", "percent of a launch's requests that met the plan's goals"}})
}

// components has the rows of memory by component. Their definitions depend on the method.
func components() []Row {
	out := []Row{
		{Name: ModelWeights, Title: "model weights", Profile: "weights", Part: "weights",
			Column: Column{21, "model_weights_mb", "MiB: weights, by the best method that could read them"}},
		{Name: KVCache, Title: "KV cache, reserved", Noun: "KV cache", Profile: "kv_cache", Part: "KV\nreserved",
			Column: Column{22, "kv_cache_mb", "MiB: KV cache, reserved"}},
		{Name: KVCacheUsed, Title: filled, Noun: "KV cache", Profile: "kv_cache_used", Part: "KV\nfilled",
			Column: Column{23, "kv_cache_used_mb", "MiB: KV cache, filled: calculated as tokens × bytes per token"}},
		{Name: Activations, Title: "activations, workspaces", Noun: "activations", Profile: "activations",
			Part:   "acti-\nvations",
			Column: Column{24, "activations_mb", "MiB: activations and workspaces"}},
		{Name: FrameworkOverhead, Title: "everything else", Profile: "framework_overhead", Part: "every-\nthing else",
			Column: Column{25, "framework_overhead_mb", "MiB: the memory increase minus weights, KV cache, activations and multi-GPU overhead; may be negative"}},
		{Name: MultiGPUOverhead, Title: "multi-GPU overhead", Profile: "multi_gpu_overhead", Part: "multi-GPU",
			Column: Column{26, "multi_gpu_overhead_mb", "MiB: overhead of using several GPUs"}},
		{Name: HostParts, Title: "in host memory, not on the GPU", Part: "in host\nmemory"},
		{Name: MemoryIncrease, Title: "baseline to peak", Part: "in-\ncrease"},
		{Name: TotalMemory, Title: "total", Profile: "total_measured", Part: "total"},
	}
	for i := range out {
		out[i].Component = true
	}
	return mebibytes(out)
}

// beyond has the rows of what a browser uses beyond the model's components: the sum, the parts, and the rest. All are
// growths from the baseline to the peak.
func beyond() []Row {
	out := []Row{
		{Name: BrowserShare, Title: "growth of the browser itself", Part: "browser\ngrowth",
			How: "the memory that the browser's processes use besides weights, KV cache and activations"},
		{Name: PageCopies, Title: "page: only at the peak",
			How: "anonymous memory of the page's process at the peak minus the same after the measured requests: " +
				"array buffers that hold parts of the weights or wait for garbage collection, and what the browser's " +
				"compilers of WebAssembly allocate"},
		{Name: TransferBuffers, Title: "buffers between page and GPU process",
			How: "shared memory of all processes, through which data is written to WebGPU. This shared memory stays as large as the largest tensor"},
		{Name: GPUProcess, Title: "GPU process: kernels, driver",
			How: "anonymous memory of the GPU process minus the live bytes of the WebGPU ledger: compiled kernels and the driver's " +
				"rounding"},
		{Name: PageHeaps, Title: "page: JavaScript, WebAssembly, code",
			How: "anonymous memory of the page's process after the measured requests, without the model's components " +
				"where WebAssembly has them"},
		{Name: ProgramFiles, Title: "program files",
			How: "mapped pages of programs, libraries and data after the measured requests. This figure also " +
				"changes if another browser starts or ends"},
		{Name: OtherProcesses, Title: "browser and services", How: "anonymous memory of the browser's other processes"},
		{Name: NotYetThere, Title: "correction for an early peak",
			How: "WebGPU bytes live at the peak, minus those of weights, KV cache and activations at the end of the measured " +
				"requests. Negative if memory peaked before the whole model was in memory"},
		{Name: EverythingElse, Title: "everything else",
			How: "the memory increase minus all other components. The rest includes files that were mapped only at the peak, and peaks between two samples"},
	}
	for i := range out {
		out[i].Beyond = true
	}
	return mebibytes(out)
}

// inside has the rows of what is read inside an engine at the end of a phase.
func inside() []Row {
	ledger := func(name, title, value, how, logged string) Row {
		return Row{Name: name, Title: title, How: how,
			Inside: &Inside{"webgpu_ledger", value, logged}}
	}
	of := func(name, title, method, value, how string) Row {
		return Row{Name: name, Title: title, How: how, Inside: &Inside{method, value, ""}}
	}
	reserved := ledger(KVReserved, "KV cache, reserved", "kv_reserved_bytes",
		"WebGPU buffers of the KV cache, recognized by their sizes. The whole KV cache is allocated during the load",
		"buffers of the KV cache, from the engine's log, which rounds to 0.01 MiB. The whole KV cache is allocated during the load")
	used := ledger(KVUsed, filled, "kv_used_bytes",
		"tokens in the KV cache, as the page reports them, × bytes per token. The reserved size of the KV cache contains the filled part",
		"tokens in the KV cache, as the engine reports them, × bytes per token from the engine's log")
	reserved.Over, used.Over = Lengths|Requests|Contexts, Lengths|Requests
	says := of(EngineSays, "size reported by Ollama (its estimate)", "api_ps", "size_bytes",
		"size in Ollama's answer to /api/ps, in RAM and on GPUs together. Ollama estimates this size before it loads the model")
	says.Noun = "size reported by Ollama"
	return mebibytes([]Row{
		ledger(Ledger, "WebGPU ledger", "live_bytes", "bytes that WebGPU has allocated and not freed", ""),
		ledger(Weights, "weights", "weights_bytes",
			"WebGPU buffers of the model's weights, recognized by the stage of the load and their sizes",
			"buffers of the model's weights, from the engine's log. A mapped file is read into memory only as it is used"),
		reserved, used,
		ledger(Workspaces, "workspaces", "workspaces_bytes",
			"WebGPU buffers of the engine's working memory: all buffers, except weights and KV cache, that were allocated "+
				"since the engine's virtual machine started",
			"buffers for computation and results, from the engine's log"),
		ledger(Unattributed, "unattributed", "unattributed_bytes", "WebGPU buffers that are neither weights nor KV cache nor workspaces", ""),
		of(JSHeap, "JavaScript heap", "heap_usage", "used_bytes", "JavaScript objects of the page and its workers (all V8 isolates that could be read)"),
		of(ArrayBuffers, "array buffers", "heap_usage", "backing_storage_bytes",
			"array buffers of the page and its workers (all V8 isolates that could be read)"),
		of(Wasm, "WebAssembly", "wasm_memory", "memory_bytes", "total size of the WebAssembly memories, used or not"),
		of(UserAgent, "user agent's memory", "user_agent_memory", "total_bytes",
			"memory of the page and its workers by the browser's own count, which includes heap and array buffers"),
		says,
		of(TotalPSS, "total PSS", record.MethodSmapsRollup, "", "the sum of the processes' PSS (proportional set size)"),
	})
}

// quality has the rows of a given text. Their intervals are over its windows.
func quality() []Row {
	const column = ": the mean over the windows of a given text, against the reference cell"
	const paired = "negative log-likelihood per token minus the reference cell's, window by window, over the tokens whose " +
		"log-probabilities both engines report. "
	return []Row{
		{Name: Perplexity, Title: "perplexity", Better: Lower, Optional: true, Head: "perplexity",
			Summary: "Perplexity",
			How: "e to the power of the mean negative log-likelihood of a given text's tokens. The text is cut into " +
				"windows; the mean and its 95% interval (Student's) are over windows, not over launches",
			Column: Column{54, "perplexity", "perplexity of a given text, over its windows"}},
		{Name: NLLChange, Title: "NLL change", Unit: "nats", Optional: true,
			How:    paired + "The mean over the windows of the text, with its 95% interval (Student's) from 16 windows on",
			Column: Column{57, "nll_change_nats", "nats per token" + column}},
		{Name: PerplexityRatio, Title: "perplexity ratio", Optional: true, Head: "ratio", Summary: "Ratio",
			How: "e to the power of the NLL change: the cell's perplexity divided by the reference cell's, on the same tokens. " +
				"The interval is that of the NLL change, so it is narrow although perplexities vary from window to window",
			Column: Column{58, "perplexity_ratio", "perplexity divided by the reference cell's, paired by window"}},
		{Name: Top1, Title: "top-1 agreement", Unit: "%", Better: Higher, Optional: true, Head: "top-1",
			How: "the share of a given text's tokens at which the cell and the reference cell predict the same token. The mean " +
				"and its 95% interval (Student's) are over the windows of the text",
			Column: Column{55, "top1_agreement_percent", "percent of tokens with the same prediction" + column}},
		{Name: KL, Title: "KL divergence, at least", Unit: "nats", Better: Lower, Optional: true, Head: "KL",
			How: "the Kullback-Leibler divergence from the reference cell's distribution to the cell's, per token of a given text. " +
				"The figure is a lower bound: it has the tokens that both engines report, 20 at most of each, and all others as one. The " +
				"mean and its 95% interval (Student's) are over the windows of the text",
			Column: Column{56, "kl_divergence_nats", "nats, at least" + column}},
	}
}
