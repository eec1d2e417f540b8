package figure

import (
	"fmt"
	"math"

	"llmparity/compare/stats"
	"llmparity/internal/record"
)

const (
	noPSS     = "no total of smaps_rollup was read"
	noRequest = "no request returned"
	filled    = "KV cache, filled (calculated)"
)

// table has the rows in the order of results.
var table = join(memory(), times(), sampler(), traffic(), components(), beyond(), inside())

var byName = func() map[string]*Row {
	out := map[string]*Row{}
	for i := range table {
		out[table[i].Name] = &table[i]
	}
	return out
}()

func join(parts ...[]Row) []Row {
	var out []Row
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// memory is what processes held.
func memory() []Row {
	const without = "MiB: where no PSS could be read"
	out := []Row{
		{Name: PeakPSS, Title: "peak memory", Over: Lengths | Requests, Absent: noPSS, Ratio: Always,
			Headline: Always, Moves: Sharing,
			How: "the highest total PSS (proportional set size: a page that n processes share counts 1/n in each) over the " +
				"launch",
			Column: Column{1, "peak_pss_mb", "MiB: peak memory, the highest total PSS of a launch"}, Bench: "peak-B",
			Head: "peak"},
		{Name: Increase, Title: "memory increase", Over: Lengths | Requests, Absent: noPSS, Ratio: Always,
			Moves:  Sharing,
			How:    "peak memory minus the launch's own baseline",
			Column: Column{2, "memory_increase_mb", "MiB: peak less the launch's own baseline"}, Bench: "increase-B",
			Head: "increase"},
		{Name: Baseline, Title: "baseline", Absent: noPSS,
			How:    "the median total PSS in the baseline phase: the engine is open, no model is loaded",
			Column: Column{3, "baseline_pss_mb", "MiB: total PSS before a model is loaded"}},
		{Name: PostWarmup, Title: "after warm-up", Absent: "no total PSS was read after a warm-up phase",
			How:    "the last total PSS before the measurement begins",
			Column: Column{4, "post_warmup_pss_mb", "MiB: the last total PSS before the measurement"}},
		{Name: PeakUSS, Title: "peak USS", Absent: noPSS,
			How:    "the highest total USS (pages that no other process shares) over the launch",
			Column: Column{6, "peak_uss_mb", "MiB: the highest total USS"}},
		{Name: PeakRSS, Title: "peak RSS sum", Over: Lengths | Requests, Absent: "no total RSS was read",
			Bench: "peak-rss-sum-B",
			How:   "the highest sum of the processes' RSS at one tick",
			Column: Column{7, "peak_rss_sum_mb",
				"MiB: the highest sum of RSS at one tick, shared pages counted once a process"}},
		{Name: Retained, Title: "retained", Absent: "not read both before the load and after the unload",
			How: "the total PSS at the end of the unload minus that at the end of the baseline; an unrelated browser that " +
				"starts or ends meanwhile moves it too",
			Column: Column{5, "retained_pss_mb", "MiB: total PSS after the unload less the baseline"}},
		{Name: PeakHeap, Title: "peak JavaScript heap", How: "the highest heap_used_mb"},
		{Name: BaselineRSS, Title: "baseline, RSS sum", Absent: "no total RSS was read in a baseline phase",
			How: "the median sum of RSS in the baseline phase", Column: Column{8, "baseline_rss_sum_mb", without}},
		{Name: PostWarmupRSS, Title: "after warm-up, RSS sum", Absent: "no total RSS was read after a warm-up phase",
			How: "the last sum of RSS before the measurement begins", Column: Column{9, "post_warmup_rss_sum_mb", without}},
		{Name: IncreaseRSS, Title: "increase, RSS sum", Bench: "increase-rss-sum-B",
			How:    "the highest sum of RSS minus the launch's own baseline, none where no process exists before the load",
			Column: Column{10, "memory_increase_rss_sum_mb", without}},
	}
	return mebibytes(out)
}

// mebibytes are rows of which less is better.
func mebibytes(rows []Row) []Row {
	for i := range rows {
		rows[i].Unit, rows[i].Better = "MiB", Lower
	}
	return rows
}

// times are those of a launch's requests, and what they are about.
func times() []Row {
	between := func(name, title, column, what, how string, place int, of func(*record.Request) float64) Row {
		return Row{Name: name, Title: title, Unit: "ms", Better: Lower, How: how, Request: of,
			Absent: "no request yielded two chunks whose times are known",
			Column: Column{place, column, "milliseconds: " + what}}
	}
	itl50 := between(ITL50, "inter-token latency, p50", "itl_p50_ms", "median time between tokens",
		"the median over a request of ", 13, func(r *record.Request) float64 { return stats.Median(Gaps(r)) })
	itl99 := between(ITL99, "inter-token latency, p99", "itl_p99_ms", "99th percentile of the time between tokens",
		"that which 99 % over a request are not above (nearest rank: of fewer than 100 the longest) of ", 14,
		func(r *record.Request) float64 { return stats.NearestRank(Gaps(r), 0.99) })
	itl50.Head, itl50.Bench, itl99.Bench = "ITL p50", "itl-p50-sec", "itl-p99-sec"
	itl50.Summary, itl99.Summary, itl50.Over = "Inter-token p50", "p99", Lengths
	return []Row{
		{Name: LoadTime, Title: "load time", Unit: "ms", Better: Lower, Absent: "no load phase ended",
			How: "the length of the load phase on the host's clock: from asking for the model until the engine says that it is " +
				"ready; starting the engine itself is in it where the engine starts with the model",
			Ratio: Always, Moves: Load, Bench: "load-sec", Head: "load", Summary: "Load",
			Bar: [2]string{"load", "Load time"}, Profile: "load_time_ms",
			Column: Column{11, "load_time_ms", "milliseconds: from asking for the model until it is ready"}},
		{Name: TTFT, Title: "time to first token", Unit: "ms", Better: Lower, Until: true,
			Absent:  "no request yielded a token",
			How:     "the first real token's time minus the time at which the request " + LeftHost,
			Request: TimeToFirst, Ratio: Always, Headline: Always, Moves: Cache | Load | Pieces, Bench: "ttft-sec",
			Head: "TTFT", Over: Lengths, Summary: "First token", Bar: [2]string{"ttft", "Time to first token"},
			Profile: "ttft_ms",
			Column:  Column{12, "ttft_ms", "milliseconds: from sending the request to its first token"}},
		{Name: DecodeTPS, Title: "decode", Unit: "tokens/s", Better: Higher, Until: true,
			Absent:  "no request yielded two tokens",
			How:     "(N - 1) / (time of the last token - time of the first), N real tokens and not text chunks",
			Request: DecodeRate, Ratio: Always, Headline: Alone, Moves: Length | Pieces, Bench: "decode-tokens/s",
			Head: "decode", Over: Requests, Summary: "Decode", Bar: [2]string{"decode", "Decode speed"},
			Profile: "decode_tokens_per_second",
			Column:  Column{17, "decode_tokens_per_s", "tokens behind the first, a second"}},
		itl50, itl99,
		{Name: PrefillTPS, Title: "prefill", Unit: "tokens/s", Better: Higher,
			Absent: "no prefill span, or no number of prompt tokens, in the record",
			How:    "prompt tokens that came from no cache / the prefill span", Request: prefillRate, Ratio: Always,
			Moves: Cache | Pieces, Bench: "prefill-tokens/s", Summary: "Prefill", Over: Lengths,
			Bar: [2]string{"prefill", "Prefill speed"}, Profile: "prefill_tokens_per_second",
			Column: Column{16, "prefill_tokens_per_s", "tokens of the prompt that were computed, a second"}},
		{Name: Latency, Title: "request latency", Over: Lengths, Unit: "ms", Better: Lower, Until: true,
			Absent: noRequest,
			Bench:  "latency-sec",
			How:    "from the time at which the request " + LeftHost + " until it has returned", Request: EndToEnd,
			Column: Column{15, "latency_ms", "milliseconds: from sending the request until it has returned"}},
		{Name: Tokens, Title: "tokens generated", Unit: "tokens", Absent: noRequest,
			How:     "real tokens, counted where the engine samples them",
			Request: func(r *record.Request) float64 { return float64(r.Tokened()) },
			Column:  Column{18, "tokens_generated", "tokens of the answer"}},
		{Name: Prompt, Title: "prompt tokens", Unit: "tokens", Absent: "the engine tells neither ids nor a number",
			How: "tokens that the engine made of the prompt", Request: promptTokens,
			Column: Column{19, "prompt_tokens", "tokens of the prompt as the engine made them"}},
		{Name: Cached, Title: "prompt tokens from a cache", Unit: "tokens", Absent: noRequest, Request: cachedTokens,
			How:    "tokens of the prompt that the engine did not compute, because an earlier request had: prefill is of the others",
			Column: Column{20, "cached_prompt_tokens", "tokens of the prompt that came from a cache"}},
	}
}

// sampler is what measuring itself takes.
func sampler() []Row {
	return []Row{
		{Name: SamplerBusy, Title: "reading while it works", Unit: "%", Better: Lower, Absent: "nothing was read",
			How: "time spent inside reads during load, warm-up and measurement / their length: 100 % is one core; reads at " +
				"phase edges lie outside",
			Column: Column{27, "sampler_busy_percent", "percent of one core that reading took while the engine worked"}},
		{Name: SamplerUS, Title: "a read", Unit: "µs", Better: Lower, Absent: "nothing was read",
			How:    "time spent inside reads / number of reads, over all methods",
			Column: Column{28, "sampler_read_us", "microseconds: a reading"}},
		{Name: SamplerCPU, Title: "our CPU share", Unit: "%", Better: Lower, Absent: "not recorded",
			How: "CPU time of the whole of llmparity / the launch's length: 100 % is one core; the browser's own share of " +
				"driving it is not in it",
			Column: Column{29, "sampler_cpu_percent", "percent of one core that the whole of llmparity took"}},
	}
}

// Times is what is taken of each request of a traffic, in ms: one number, or one a gap.
type Times struct {
	Name, Title, How string
	column, what     string
	Of               func(*record.Request) []float64
}

// TimesOfTraffic come in the order of results.
func TimesOfTraffic() []Times {
	return []Times{
		{OfTTFT, "time to first token",
			"from when a request was due until its first token: what it waited before it was sent is in it", "ttft",
			"from when a request was due until its first token", one(TimeToFirst)},
		{Queueing, "queueing", "from when a request was due until it was sent: with us, because as many as the engine takes at " +
			"once were under way; what it waits within the engine is in the time to its first token", "queueing",
			"from when a request was due until it was sent", one(Queued)},
		{OfITL, "inter-token latency", "the times between a request's tokens, all gaps of all requests", "all_itl",
			"between tokens, of all requests together", Gaps},
		{TPOT, "time per output token", "(time of the last token - time of the first) / (tokens - 1) of a request", "tpot",
			"of a request for each token behind the first", one(PerToken)},
		{E2E, "end to end", "from when a request was due until it had returned", "e2e",
			"from when a request was due until it had returned", one(EndToEnd)},
	}
}

func one(of func(*record.Request) float64) func(*record.Request) []float64 {
	return func(r *record.Request) []float64 { return []float64{of(r)} }
}

// traffic is what all requests of a launch come to, where there are several.
func traffic() []Row {
	place := 34
	var out []Row
	for _, t := range TimesOfTraffic() {
		for _, share := range Quantiles() {
			percent := math.Round(100 * share)
			row := Row{Name: Percentile(t.Name, share), Title: fmt.Sprintf("%s, p%g", t.Title, percent),
				Unit: "ms", Better: Lower,
				How: fmt.Sprintf("of a launch, that which %g %% of all are not above (nearest rank): %s", percent, t.How),
				Column: Column{place, fmt.Sprintf("%s_p%g_ms", t.column, percent),
					fmt.Sprintf("milliseconds: %s, that which %g %% of a launch's requests are not above, where there are several",
						t.what, percent)}}
			if t.Name != OfITL && share != 0.9 {
				row.Over = Requests
			}
			out = append(out, row)
			place++
		}
	}
	const span, noGoal = "the time from when the first request was due until ", "the plan has no goal that requests are to keep"
	return append(out,
		Row{Name: AggregateTPS, Over: Requests, Title: "tokens/s of all requests", Unit: "tokens/s", Better: Higher,
			Ratio:    Together,
			Headline: Together, Absent: "no request yielded a token", Bench: "aggregate-tokens/s",
			How: "all tokens of a launch's requests that were answered / " + span + "the last token",
			Column: Column{30, AggregateTPS,
				"tokens a second of all requests of a launch together, where there are several"}},
		Row{Name: RequestRate, Over: Requests, Title: "requests/s", Unit: "requests/s", Better: Higher,
			Absent: noRequest,
			How:    "a launch's requests that were answered / " + span + "the last one had returned",
			Column: Column{31, RequestRate, "requests a second"}},
		Row{Name: Goodput, Over: Requests, Title: "goodput", Unit: "requests/s", Better: Higher, Absent: noGoal,
			How:    "requests of a launch that kept the goal (%s) / " + span + "the last one had returned",
			Column: Column{32, Goodput, "requests a second that kept the plan's goal"}},
		Row{Name: GoodShare, Title: "requests that kept the goal", Unit: "%", Better: Higher, Absent: noGoal,
			How:    "of all requests of a launch, those that kept the goal (%s), which one that failed did not",
			Column: Column{33, "goodput_share_percent", "percent of a launch's requests that kept the goal"}})
}

// components are what a breakdown and a prediction are of. By which method each was obtained is said there.
func components() []Row {
	out := []Row{
		{Name: ModelWeights, Title: "model weights", Profile: "weights", Part: "weights",
			Column: Column{21, "model_weights_mb", "MiB: weights, by whatever could read them"}},
		{Name: KVCache, Title: "KV cache, reserved", Profile: "kv_cache", Part: "KV\nreserved",
			Column: Column{22, "kv_cache_mb", "MiB: KV cache, reserved"}},
		{Name: KVCacheUsed, Title: filled, Profile: "kv_cache_used", Part: "KV\nfilled",
			Column: Column{23, "kv_cache_used_mb", "MiB: KV cache, filled: calculated, tokens × the bytes of one"}},
		{Name: Activations, Title: "activations, workspaces", Profile: "activations", Part: "acti-\nvations",
			Column: Column{24, "activations_mb", "MiB: activations, workspaces"}},
		{Name: FrameworkOverhead, Title: "everything else", Profile: "framework_overhead", Part: "every-\nthing else",
			Column: Column{25, "framework_overhead_mb", "MiB: what is left of the increase; may be below zero"}},
		{Name: MultiGPUOverhead, Title: "multi-GPU overhead", Profile: "multi_gpu_overhead", Part: "multi-GPU",
			Column: Column{26, "multi_gpu_overhead_mb", "MiB: of several GPUs"}},
		{Name: MemoryIncrease, Title: "baseline to peak", Part: "in-\ncrease"},
		{Name: TotalMemory, Title: "total", Profile: "total_measured", Part: "total"},
	}
	for i := range out {
		out[i].Component = true
	}
	return mebibytes(out)
}

// beyond are the parts of what a browser takes beyond the model's components, their sum before them and what is left
// behind them. All are growths from the baseline to the highest moment.
func beyond() []Row {
	out := []Row{
		{Name: BrowserShare, Title: "browser's own", Part: "browser's\nown",
			How: "the sum of what the browser's processes took beyond weights, KV cache and activations, by kind of memory"},
		{Name: PageCopies, Title: "page: copies of weights on their way",
			How: "anonymous memory of the page's process at the highest moment, less that at the end of the measurement: array " +
				"buffers that shards are read into, and those that wait to be collected"},
		{Name: TransferBuffers, Title: "buffers between page and GPU process",
			How: "shared memory of all processes: writes to WebGPU pass through it; what the largest tensor took is kept"},
		{Name: GPUProcess, Title: "GPU process: kernels, driver",
			How: "anonymous memory of the GPU process less what the ledger says is live: compiled kernels, and what the driver " +
				"rounds sizes up to"},
		{Name: PageHeaps, Title: "page: JavaScript, WebAssembly, code",
			How: "anonymous memory of the page's process at the end of the measurement"},
		{Name: ProgramFiles, Title: "program files",
			How: "pages of programs, libraries and data that were mapped by the end of the measurement; they also change when " +
				"another browser starts or ends"},
		{Name: OtherProcesses, Title: "browser and services", How: "anonymous memory of the browser's other processes"},
		{Name: NotYetThere, Title: "model's memory not there yet",
			How: "what the ledger had live at the highest moment, less weights, KV cache and activations as they were at the end: " +
				"below zero where the peak came before all of them were there"},
		{Name: EverythingElse, Title: "everything else",
			How: "the increase less all of these: the files that were mapped at the peak alone, and peaks between two readings"},
	}
	for i := range out {
		out[i].Beyond = true
	}
	return mebibytes(out)
}

// inside is what is read within an engine when a phase ends.
func inside() []Row {
	ledger := func(name, title, value, how, logged, head string) Row {
		return Row{Name: name, Title: title, How: how,
			Inside: &Inside{"webgpu_ledger", value, logged, head}}
	}
	of := func(name, title, method, value, how, head string) Row {
		return Row{Name: name, Title: title, How: how, Inside: &Inside{method, value, "", head}}
	}
	out := mebibytes([]Row{
		ledger(Ledger, "WebGPU ledger", "live_bytes", "what WebGPU was asked for and has not been given back", "", "WebGPU\nledger"),
		ledger(Weights, "weights", "weights_bytes",
			"WebGPU buffers that parameters lie in, known by the load's stage and the package's sizes",
			"the buffers of the model's weights as the engine's log gives them; those that are a mapped file come into "+
				"memory as they are used", "weights"),
		ledger(KVReserved, "KV cache, reserved", "kv_reserved_bytes",
			"WebGPU buffers of the KV cache, found by their size among those that were made after the weights, all had at "+
				"the load", "the buffers of the KV cache as the engine's log gives them, all had at the load", "KV\nreserved"),
		ledger(KVUsed, filled, "kv_used_bytes",
			"the tokens that the page says it holds × the bytes of one in the KV cache's buffers; within what is reserved",
			"the tokens that the engine says it holds × the KV cache's bytes by the engine's log / its cells", "KV\nfilled"),
		ledger(Workspaces, "workspaces", "workspaces_bytes",
			"WebGPU buffers of the engine's working memory: everything else since its virtual machine was made",
			"the buffers for computing and for results as the engine's log gives them", "work-\nspaces"),
		ledger(Unattributed, "unattributed", "unattributed_bytes", "the rest of the ledger", "", "un-\nattributed"),
		of(JSHeap, "JavaScript heap", "heap_usage", "used_bytes", "JavaScript objects, over the isolates that were read", "JS\nheap"),
		of(ArrayBuffers, "array buffers", "heap_usage", "backing_storage_bytes",
			"backing stores of array buffers, over the isolates that were read", "array\nbuffers"),
		of(Wasm, "WebAssembly", "wasm_memory", "memory_bytes", "WebAssembly memories by their size, touched or not", "WASM"),
		of(UserAgent, "user agent's memory", "user_agent_memory", "total_bytes",
			"what the browser itself counts for the page: heap and array buffers again, with its workers'", ""),
		of(EngineSays, "Ollama says: size (its own estimate)", "api_ps", "size_bytes",
			"what Ollama answers to /api/ps, in memory and on GPUs together: its own estimate, made before the load", ""),
		of(TotalPSS, "total PSS", record.MethodSmapsRollup, "", "the sum of the processes' proportional set sizes", "total\nPSS"),
	})
	for i := range out {
		if out[i].Name == KVReserved || out[i].Name == KVUsed {
			out[i].Over = Lengths | Requests
		}
	}
	return out
}
