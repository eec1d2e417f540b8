package tables

import (
	"cmp"
	"fmt"
	"strings"

	"llmparity/compare"
	"llmparity/internal/figure"
)

// measure is a figure of a summary: its median, its interval's ends and its number of launches are a column each.
type measure struct {
	column, what string
	of           func(*compare.Cell) compare.Figure
}

// measures are a summary's figures, in order. Names of columns stay as they are: new ones come last.
func measures() []measure {
	launched := func(column, name, what string) measure {
		return measure{column, what, func(c *compare.Cell) compare.Figure { return c.Figure(name) }}
	}
	part := func(column, name, what string) measure {
		return measure{column, what, func(c *compare.Cell) compare.Figure { return c.Parts.Component(name).Figure }}
	}
	out := []measure{
		launched("peak_pss_mb", figure.PeakPSS, "MiB: peak memory, the highest total PSS of a launch"),
		launched("memory_increase_mb", figure.Increase, "MiB: peak less the launch's own baseline"),
		launched("baseline_pss_mb", figure.Baseline, "MiB: total PSS before a model is loaded"),
		launched("post_warmup_pss_mb", figure.PostWarmup, "MiB: the last total PSS before the measurement"),
		launched("retained_pss_mb", figure.Retained, "MiB: total PSS after the unload less the baseline"),
		launched("peak_uss_mb", figure.PeakUSS, "MiB: the highest total USS"),
		launched("peak_rss_sum_mb", figure.PeakRSS,
			"MiB: the highest sum of RSS at one tick, shared pages counted once a process"),
		launched("baseline_rss_sum_mb", figure.BaselineRSS, "MiB: where no PSS could be read"),
		launched("post_warmup_rss_sum_mb", figure.PostWarmupRSS, "MiB: where no PSS could be read"),
		launched("memory_increase_rss_sum_mb", figure.IncreaseRSS, "MiB: where no PSS could be read"),
		launched("load_time_ms", figure.LoadTime, "milliseconds: from asking for the model until it is ready"),
		launched("ttft_ms", figure.TTFT, "milliseconds: from sending the request to its first token"),
		launched("itl_p50_ms", figure.ITL50, "milliseconds: median time between tokens"),
		launched("itl_p99_ms", figure.ITL99, "milliseconds: 99th percentile of the time between tokens"),
		launched("latency_ms", figure.Latency, "milliseconds: from sending the request until it has returned"),
		launched("prefill_tokens_per_s", figure.PrefillTPS, "tokens of the prompt that were computed, a second"),
		launched("decode_tokens_per_s", figure.DecodeTPS, "tokens behind the first, a second"),
		launched("tokens_generated", figure.Tokens, "tokens of the answer"),
		launched("prompt_tokens", figure.Prompt, "tokens of the prompt as the engine made them"),
		launched("cached_prompt_tokens", figure.Cached, "tokens of the prompt that came from a cache"),
		part("model_weights_mb", figure.ModelWeights, "MiB: weights, by whatever could read them"),
		part("kv_cache_mb", figure.KVCache, "MiB: KV cache, reserved"),
		part("kv_cache_used_mb", figure.KVCacheUsed, "MiB: KV cache, filled: calculated, tokens × the bytes of one"),
		part("activations_mb", figure.Activations, "MiB: activations, workspaces"),
		part("framework_overhead_mb", figure.FrameworkOverhead,
			"MiB: what is left of the increase; may be below zero"),
		part("multi_gpu_overhead_mb", figure.MultiGPUOverhead, "MiB: of several GPUs"),
		launched("sampler_busy_percent", figure.SamplerBusy,
			"percent of one core that reading took while the engine worked"),
		launched("sampler_read_us", figure.SamplerUS, "microseconds: a reading"),
		launched("sampler_cpu_percent", figure.SamplerCPU, "percent of one core that the whole of llmparity took"),
		launched("aggregate_tps", figure.AggregateTPS,
			"tokens a second of all requests of a launch together, where there are several"),
		launched("requests_per_s", figure.RequestRate, "requests a second"),
		launched("goodput", figure.Goodput, "requests a second that kept the plan's goal"),
		launched("goodput_share_percent", figure.GoodShare, "percent of a launch's requests that kept the goal"),
	}
	for _, of := range []struct{ column, name, what string }{
		{"ttft", figure.OfTTFT, "from when a request was due until its first token"},
		{"queueing", figure.Queueing, "from when a request was due until it was sent"},
		{"all_itl", figure.OfITL, "between tokens, of all requests together"},
		{"tpot", figure.TPOT, "of a request for each token behind the first"},
		{"e2e", figure.E2E, "from when a request was due until it had returned"},
	} {
		for _, percent := range []int{50, 90, 95, 99} {
			out = append(out, launched(fmt.Sprintf("%s_p%d_ms", of.column, percent),
				figure.Percentile(of.name, float64(percent)/100),
				fmt.Sprintf("milliseconds: %s, that which %d %% of a launch's requests are not above, where there are several", of.what, percent)))
		}
	}
	return out
}

// asked are columns that say how a cell was asked; they came later than the others, and stand last.
func asked() []identity {
	type res = *compare.Result
	type cell = *compare.Cell
	some := func(n int) Value { return Value{Known: n > 0, Int: int64(n)} }
	return []identity{
		{Column{"input_tokens", Integer, "tokens of the prompt that were asked for; absent where a text was given"},
			func(_ res, c cell) Value { return some(c.Spec.InputTokens) }},
		{Column{"kv_cache_dtype_asked", Text, "of the KV cache, where the plan asks for one"},
			func(_ res, c cell) Value { return named(c.Spec.KVDType) }},
		{Column{"start", Text, "cold, warm: what of the model's files lay in memory, where that was seen to"},
			func(_ res, c cell) Value { return named(c.Spec.Start) }},
		{Column{"shared", Truth, "whether cells of one engine and setup went on in one launch"},
			func(_ res, c cell) Value { return truth(c.Spec.Shared) }},
		{Column{"setup", Integer, "the number of what is settled when an engine is launched"},
			func(_ res, c cell) Value { return some(c.Spec.Setup) }},
		{Column{"traffic", Text, "how requests came, in a few words; absent where there was one"},
			func(_ res, c cell) Value {
				if c.Spec.Traffic == nil {
					return Value{}
				}
				return text(c.Traffic())
			}},
		{Column{"concurrency", Integer, "clients of a closed loop, requests of a batch, the most at once of an open loop"}, func(_ res, c cell) Value {
			if c.Spec.Traffic == nil {
				return Value{}
			}
			return some(c.Spec.Traffic.Concurrency)
		}},
		{Column{"requests", Integer, "of a launch"}, func(_ res, c cell) Value {
			if c.Spec.Traffic == nil {
				return Value{}
			}
			return some(c.Spec.Traffic.Requests)
		}},
	}
}

// identity is a column of a summary that says what the row is about.
type identity struct {
	Column
	of func(*compare.Result, *compare.Cell) Value
}

func identities() []identity {
	type res = *compare.Result
	type cell = *compare.Cell
	return []identity{
		{Column{"run", Integer, "the run's number, from 0, in the order in which runs were given"},
			func(_ res, c cell) Value { return integer(c.Run) }},
		{Column{"run_name", Text, "the plan's name"}, func(r res, c cell) Value { return text(r.Runs[c.Run].Name) }},
		{Column{"cell", Integer, "the cell's number in its run"},
			func(_ res, c cell) Value { return integer(c.Spec.ID) }},
		{Column{"label", Text, "what reports call the cell; unique in a result"},
			func(_ res, c cell) Value { return text(c.Label) }},
		{Column{"engine", Text, "as in the plan"}, func(_ res, c cell) Value { return text(c.Spec.Engine) }},
		{Column{"engine_version", Text, "as the engine says it"}, func(_ res, c cell) Value {
			if c.Engine == nil {
				return Value{}
			}
			return named(c.Engine.Version)
		}},
		{Column{"model", Text, "the model's name"}, func(_ res, c cell) Value { return text(c.Spec.Model.Name) }},
		{Column{"model_sha256", Text, "of the model's file; absent where only a server has it"},
			func(_ res, c cell) Value { return named(c.Spec.Model.SHA256) }},
		{Column{"dtype", Text, "of the weights as the engine holds them, else as the file has them"},
			func(_ res, c cell) Value {
				return named(cmp.Or(policy(c, "weights_dtype"), c.Spec.Model.DType))
			}},
		{Column{"kv_cache_dtype", Text, "of the KV cache"},
			func(_ res, c cell) Value { return named(policy(c, "kv_dtype")) }},
		{Column{"device_class", Text, "cpu, gpu, software-adapter"}, func(_ res, c cell) Value {
			if c.Device == nil {
				return Value{}
			}
			return named(string(c.Device.Class))
		}},
		{Column{"device", Text, "the device's name"}, func(_ res, c cell) Value {
			if c.Device == nil {
				return Value{}
			}
			return named(c.Device.Name)
		}},
		{Column{"context", Integer, "tokens that the engine was given room for; absent where a server chose"},
			func(_ res, c cell) Value {
				return Value{Known: c.Spec.Model.Context > 0, Int: int64(c.Spec.Model.Context)}
			}},
		{Column{"prompt_id", Integer, "the prompt's number in the plan"},
			func(_ res, c cell) Value { return integer(c.Spec.PromptID) }},
		{Column{"max_tokens", Integer, "tokens that were asked for"},
			func(_ res, c cell) Value { return integer(c.Spec.MaxTokens) }},
		{Column{"temperature", Number, "0: greedy"}, func(_ res, c cell) Value { return number(c.Spec.Temperature) }},
		{Column{"isolation", Text, "what a repetition has of its own: launch, tab, server"},
			func(_ res, c cell) Value { return named(c.Spec.Isolation) }},
		{Column{"reused", Truth, "whether repetitions go on in the launch of the one before"},
			func(_ res, c cell) Value { return truth(c.Spec.Reused) }},
		{Column{"prompt_cache", Text, "off, on"}, func(_ res, c cell) Value { return named(c.Spec.PromptCache) }},
		{Column{"launches_planned", Integer, "repetitions that the plan asks for"},
			func(_ res, c cell) Value { return integer(c.Launches.Planned) }},
		{Column{"launches_counted", Integer, "those that ended well; figures are over these"},
			func(_ res, c cell) Value { return integer(c.Launches.Counted) }},
		{Column{"launches_opened", Integer, "launches that the counted repetitions were in, where they shared some"},
			func(_ res, c cell) Value {
				return Value{Known: c.Launches.Opened > 0, Int: int64(c.Launches.Opened)}
			}},
		{Column{"launches_failed", Integer, "those that failed"},
			func(_ res, c cell) Value { return integer(c.Launches.Failed) }},
		{Column{"launches_interrupted", Integer, "those that never ended"},
			func(_ res, c cell) Value { return integer(c.Launches.Interrupted) }},
		{Column{"failures", Text, "the classes of the failed ones, separated by semicolons"},
			func(_ res, c cell) Value { return named(failureClasses(c)) }},
		{Column{"refused", Text, "why the cell was not launched at all"},
			func(_ res, c cell) Value { return named(c.Refused) }},
		{Column{"warnings", Text, "the codes of the warnings of this cell and of its run, separated by semicolons"},
			func(r res, c cell) Value { return named(warningCodes(r, c)) }},
	}
}

func policy(c *compare.Cell, name string) string {
	if c.Engine == nil {
		return ""
	}
	return c.Engine.Policy[name]
}

func failureClasses(c *compare.Cell) string {
	var out []string
	for _, f := range c.Failures {
		out = append(out, cmp.Or(string(f.Class), string(f.Status)))
	}
	return strings.Join(out, ";")
}

// warningCodes are those whose place is the cell, a launch of it, or a run.
func warningCodes(res *compare.Result, c *compare.Cell) string {
	var out []string
	for _, w := range res.Warnings {
		here := w.Where == c.Label || strings.HasPrefix(w.Where, c.Label+",") || strings.HasPrefix(w.Where, c.Label+" ")
		if !here && w.Where != "run" && w.Where != "run "+res.Runs[c.Run].Name {
			continue
		}
		out = appendOnce(out, w.Code)
	}
	return strings.Join(out, ";")
}

func appendOnce(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}

func summaryTable() []Column {
	var out []Column
	for _, id := range identities() {
		out = append(out, id.Column)
	}
	for _, m := range measures() {
		out = append(out, Column{m.column, Number, m.what + "; the median over counted launches"},
			Column{m.column + "_lo", Number,
				"the lower end of its 95 % order-statistic interval; absent where launches are too few"},
			Column{m.column + "_hi", Number, "the upper end"},
			Column{m.column + "_n", Integer, "how many launches it is the median of"})
	}
	for _, id := range asked() {
		out = append(out, id.Column)
	}
	for _, m := range measures() {
		out = append(out, Column{m.column + "_from", Text,
			"measured, reported by the engine, calculated or file size; behind it the method"})
	}
	return out
}

func summaryRows(res *compare.Result, emit func([]Value) error) error {
	for i := range res.Cells {
		c := &res.Cells[i]
		var row []Value
		for _, id := range identities() {
			row = append(row, id.of(res, c))
		}
		for _, m := range measures() {
			f := m.of(c)
			lo, hi := Value{}, Value{}
			if f.Interval != nil {
				lo, hi = number(f.Interval.Lo), number(f.Interval.Hi)
			}
			row = append(row, number(f.Center()), lo, hi, integer(f.N))
		}
		for _, id := range asked() {
			row = append(row, id.of(res, c))
		}
		for _, m := range measures() {
			row = append(row, named(m.of(c).From()))
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}
