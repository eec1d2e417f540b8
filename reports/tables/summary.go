package tables

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// field is a column of the summary, with a cell's value.
type field struct {
	Column
	of func(*compare.Cell) Value
}

// summaryFields say what a row is about, its figures, how it was asked and where its figures are from: new columns
// stand last.
func summaryFields(res *compare.Result) []field {
	out, from := identities(res), []field{}
	for _, r := range figure.Columns(figure.Any) {
		name, f := r.Column.Name, func(c *compare.Cell) evidence.Figure { return c.Named(r.Name) }
		of, low, n := "; the median over counted launches",
			"the lower end of the 95% confidence interval of that median; absent with fewer than six launches",
			"the number of launches behind the median"
		if r.Optional { // a text's windows take the place of launches
			of, low, n = "", "the lower end of the 95% confidence interval of that mean; absent with one window",
				"the number of windows behind the mean"
		}
		out = append(out,
			field{Column{name, Number, r.Column.What + of},
				func(c *compare.Cell) Value { return number(f(c).Center()) }},
			field{Column{name + "_lo", Number, low},
				func(c *compare.Cell) Value { return number(ends(f(c)).Lo) }},
			field{Column{name + "_hi", Number, "the upper end of that interval"},
				func(c *compare.Cell) Value { return number(ends(f(c)).Hi) }},
			field{Column{name + "_n", Integer, n},
				func(c *compare.Cell) Value { return integer(f(c).N) }})
		from = append(from, field{Column{name + "_from", Text,
			"where the figure comes from: measured, reported by the engine, calculated or file size; then the method"},
			func(c *compare.Cell) Value { return named(f(c).From()) }})
	}
	return slices.Concat(out, asked(), from)
}

// ends are a figure's interval; NaN without one.
func ends(f evidence.Figure) stats.Interval {
	return *cmp.Or(f.Interval, &stats.Interval{Lo: math.NaN(), Hi: math.NaN()})
}

// summary has a row a cell.
func summary(res *compare.Result) Table {
	fields := summaryFields(res)
	columns, row := make([]Column, len(fields)), make([]Value, len(fields))
	for i, f := range fields {
		columns[i] = f.Column
	}
	return Table{"summary", columns, func(emit func([]Value) error) error {
		for _, c := range res.Cells {
			for n, f := range fields {
				row[n] = f.of(c)
			}
			if err := emit(row); err != nil {
				return err
			}
		}
		return nil
	}}
}

func identities(res *compare.Result) []field {
	return []field{
		{Column{"run", Integer, "the run's number, from 0, in the order of the command line"},
			func(c *compare.Cell) Value { return integer(c.Run) }},
		{Column{"run_name", Text, "the plan's name"},
			func(c *compare.Cell) Value { return text(res.Runs[c.Run].Name) }},
		{Column{"cell", Integer, "the cell's number in its run"},
			func(c *compare.Cell) Value { return integer(c.Spec.ID) }},
		{Column{"label", Text, "the cell's name in reports; unique in a result"},
			func(c *compare.Cell) Value { return text(c.Label) }},
		{Column{"engine", Text, "the engine's name, as in the plan"},
			func(c *compare.Cell) Value { return text(c.Spec.Engine) }},
		{Column{"engine_version", Text, "the version that the engine reports"},
			func(c *compare.Cell) Value { return named(engine(c).Version) }},
		{Column{"model", Text, "the model's name"}, func(c *compare.Cell) Value { return text(c.Spec.Model.Name) }},
		{Column{"model_sha256", Text, "SHA-256 of the model's file; absent if only a server has the file"},
			func(c *compare.Cell) Value { return named(c.Spec.Model.SHA256) }},
		{Column{"dtype", Text, "dtype of the weights in the engine; if the engine does not report it, the dtype in the file"},
			func(c *compare.Cell) Value {
				return named(cmp.Or(engine(c).Policy["weights_dtype"], c.Spec.Model.DType))
			}},
		{Column{"kv_cache_dtype", Text, "dtype of the KV cache"},
			func(c *compare.Cell) Value { return named(engine(c).Policy["kv_dtype"]) }},
		{Column{"device_class", Text, "cpu, gpu, software-adapter"},
			func(c *compare.Cell) Value { return named(string(device(c).Class)) }},
		{Column{"device", Text, "the device's name"}, func(c *compare.Cell) Value { return named(device(c).Name) }},
		{Column{"context", Integer, "the context window in tokens; absent if a server chose it"},
			func(c *compare.Cell) Value { return some(c.Spec.Model.Context) }},
		{Column{"prompt_id", Integer, "the prompt's number in the plan"},
			func(c *compare.Cell) Value { return integer(c.Spec.PromptID) }},
		{Column{"max_tokens", Integer, "the number of tokens that a request asks for"},
			func(c *compare.Cell) Value { return integer(c.Spec.MaxTokens) }},
		{Column{"temperature", Number, "0: greedy"},
			func(c *compare.Cell) Value { return number(c.Spec.Temperature) }},
		{Column{"isolation", Text, "what each repetition starts anew: launch, tab, server"},
			func(c *compare.Cell) Value { return named(c.Spec.Isolation) }},
		{Column{"reused", Truth, "whether repetitions share a launch"},
			func(c *compare.Cell) Value { return truth(c.Spec.Reused) }},
		{Column{"prompt_cache", Text, "whether the engine may reuse a computed prompt: off, on"},
			func(c *compare.Cell) Value { return named(c.Spec.PromptCache) }},
		{Column{"launches_planned", Integer, "repetitions that the plan asks for"},
			func(c *compare.Cell) Value { return integer(c.Launches.Planned) }},
		{Column{"launches_counted", Integer, "launches that succeeded and are not warm-ups; figures are medians over these"},
			func(c *compare.Cell) Value { return integer(c.Launches.Counted) }},
		{Column{"launches_opened", Integer, "the number of launches, if counted repetitions shared launches"},
			func(c *compare.Cell) Value { return some(c.Launches.Opened) }},
		{Column{"launches_failed", Integer, "launches that failed"},
			func(c *compare.Cell) Value { return integer(c.Launches.Failed) }},
		{Column{"launches_interrupted", Integer, "launches that were interrupted"},
			func(c *compare.Cell) Value { return integer(c.Launches.Interrupted) }},
		{Column{"failures", Text, "the classes of the failures, separated by semicolons"},
			func(c *compare.Cell) Value { return named(failureClasses(c)) }},
		{Column{"refused", Text, "why the cell was not launched"},
			func(c *compare.Cell) Value { return named(c.Refused) }},
		{Column{"warnings", Text, "the codes of the warnings of this cell and of its run, separated by semicolons"},
			func(c *compare.Cell) Value { return named(warningCodes(res, c)) }},
	}
}

// asked are columns that say how a cell was asked; they came later than the others, and stand last.
func asked() []field {
	return []field{
		{Column{"input_tokens", Integer, "the prompt length in tokens that the plan asks for; absent if the plan has a text"},
			func(c *compare.Cell) Value { return some(c.Spec.InputTokens) }},
		{Column{"kv_cache_dtype_asked", Text, "dtype of the KV cache that the plan asks for"},
			func(c *compare.Cell) Value { return named(c.Spec.KVDType) }},
		{Column{"start", Text, "cold or warm: whether the model's files were in the page cache; absent if the run did not control that"},
			func(c *compare.Cell) Value { return named(c.Spec.Start) }},
		{Column{"shared", Truth, "whether cells with the same engine and start settings share a launch"},
			func(c *compare.Cell) Value { return truth(c.Spec.Shared) }},
		{Column{"setup", Integer, "the number of the start settings"},
			func(c *compare.Cell) Value { return some(c.Spec.Setup) }},
		{Column{"traffic", Text, "how requests arrive, in a few words; absent for single requests"},
			func(c *compare.Cell) Value { return named(c.Traffic()) }},
		{Column{"concurrency", Integer, "clients of a closed loop, requests of a batch, or the most requests at one time of an open loop"},
			func(c *compare.Cell) Value { return some(traffic(c).Concurrency) }},
		{Column{"requests", Integer, "the number of requests of a launch"},
			func(c *compare.Cell) Value { return some(traffic(c).Requests) }},
		{Column{"weights_asked", Text, "form of the weights that the plan asks for; absent if as-is"},
			func(c *compare.Cell) Value { return named(c.Spec.Weights) }},
	}
}

// some is a number that is absent where it is 0.
func some(n int) Value { return Value{Known: n > 0, Int: int64(n)} }

// engine, device and traffic are a cell's, or empty.
func engine(c *compare.Cell) record.EngineInfo { return *cmp.Or(c.Engine, &record.EngineInfo{}) }
func device(c *compare.Cell) record.Device     { return *cmp.Or(c.Device, &record.Device{}) }
func traffic(c *compare.Cell) record.Traffic   { return *cmp.Or(c.Spec.Traffic, &record.Traffic{}) }

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
		here = here || w.Where == "run" || w.Where == "run "+res.Runs[c.Run].Name
		if here {
			out = explain.AppendNew(out, w.Code)
		}
	}
	return strings.Join(out, ";")
}
