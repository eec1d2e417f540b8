package tables

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/explain"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// field is a column of the summary, with a cell's value.
type field struct {
	name  string
	kind  Kind
	what  string
	value Value
}

// summary has a row a cell.
func summary(res *compare.Result) Table {
	var columns []Column
	for _, f := range summaryFields(res, &compare.Cell{}) {
		columns = append(columns, Column{f.name, f.kind, f.what})
	}
	return Table{"summary", columns, func(emit func([]Value) error) error {
		row := make([]Value, len(columns))
		for _, c := range res.Cells {
			for n, f := range summaryFields(res, c) {
				row[n] = f.value
			}
			if err := emit(row); err != nil {
				return err
			}
		}
		return nil
	}}
}

// summaryFields say what a row is about, its figures, how it was asked, where its figures are from, and other axes: new
// columns stand last.
func summaryFields(res *compare.Result, c *compare.Cell) []field {
	out, from := identities(res, c), []field{}
	for _, r := range figure.Columns(figure.Any) {
		name, f := r.Column.Name, c.Named(r.Name)
		of, low, n := "; the median over counted launches",
			"the lower end of the 95% confidence interval of that median; absent with fewer than six launches",
			"the number of launches behind the median"
		if r.Optional { // a text's windows take the place of launches
			of, low, n = "", "the lower end of the 95% confidence interval of that mean; absent with one window",
				"the number of windows behind the mean"
		}
		ends := *cmp.Or(f.Interval, &stats.Interval{Lo: math.NaN(), Hi: math.NaN()})
		out = append(out, field{name, Number, r.Column.What + of, number(f.Center())},
			field{name + "_lo", Number, low, number(ends.Lo)},
			field{name + "_hi", Number, "the upper end of that interval", number(ends.Hi)},
			field{name + "_n", Integer, n, integer(f.N)})
		from = append(from, field{name + "_from", Text,
			"where the figure comes from: measured, reported by the engine, calculated or file size; then the method",
			named(f.From())})
	}
	out = slices.Concat(out, asked(c), from)
	out = append(out, otherAxes(res, c, out)...)
	out = slices.Concat(out, parts(c), agreement(res, c))
	return append(out, differing(res, c, out)...)
}

// withColumns are axes that have columns of their own among the others.
var withColumns = []string{axis.Engine, axis.Model, axis.Prompt, axis.Input, axis.Output, axis.Traffic,
	axis.Concurrency, axis.Temperature, axis.Context, axis.KVDType, axis.Weights, axis.Start, axis.Isolation,
	axis.PromptCache}

// otherAxes are columns of all other axes, and of the engines' own fields that the plans varied.
func otherAxes(res *compare.Result, c *compare.Cell, others []field) []field {
	var out []field
	for _, x := range res.Axes() {
		if slices.Contains(withColumns, x.Name) {
			continue
		}
		what := x.Title + " that the plan requests; absent if it requests none"
		f := field{x.Name, Text, what, named(x.Of(&c.Spec))}
		if x.Number != nil && !x.Own { // engines' own fields can have words
			f.kind, f.value = Number, number(x.Number(&c.Spec))
		}
		if slices.ContainsFunc(others, func(o field) bool { return o.name == f.name }) {
			f.name += "_asked" // beside what the engine reports
		}
		out = append(out, f)
	}
	return out
}

func identities(res *compare.Result, c *compare.Cell) []field {
	run := ""
	if c.Run < len(res.Runs) { // not where there are columns alone
		run = res.Runs[c.Run].Title()
	}
	return []field{
		{"run", Integer, "the run's number, from 0, in the order of the command line", integer(c.Run)},
		{"run_name", Text, "what distinguishes the run, or else its plan's name", text(run)},
		{"cell", Integer, "the cell's number in its run", integer(c.Spec.ID)},
		{"label", Text, "the cell's name in reports; unique in a result", text(c.Label)},
		{"engine", Text, "the engine's name, as in the plan", text(c.Spec.Engine)},
		{"engine_version", Text, "the version that the engine reports", named(engine(c).Version)},
		{"model", Text, "the model's name", text(c.Spec.Model.Name)},
		{"model_sha256", Text, "SHA-256 of the model's file; absent if only a server has the file",
			named(c.Spec.Model.SHA256)},
		{"dtype", Text, "dtype of the weights in the engine; if the engine does not report it, the dtype in the file",
			named(cmp.Or(engine(c).Policy["weights_dtype"], c.Spec.Model.DType))},
		{"kv_cache_dtype", Text, "dtype of the KV cache", named(engine(c).Policy["kv_dtype"])},
		{"device_class", Text, "cpu, gpu, software-adapter", named(string(device(c).Class))},
		{"device", Text, "the device's name", named(device(c).Name)},
		{"context", Integer, "the context window in tokens; absent if a server chose it", some(c.Spec.Model.Context)},
		{"prompt_id", Integer, "the prompt's number in the plan", integer(c.Spec.PromptID)},
		{"max_tokens", Integer, "the number of tokens that a request asks for", integer(c.Spec.MaxTokens)},
		{"temperature", Number, "0: greedy", number(c.Spec.Temperature)},
		{"isolation", Text, "what each repetition starts anew: launch, tab, server", named(c.Spec.Isolation)},
		{"reused", Truth, "whether repetitions share a launch", truth(c.Spec.Reused)},
		{"prompt_cache", Text, "whether the engine may reuse a computed prompt: off, on", named(c.Spec.PromptCache)},
		{"launches_planned", Integer, "repetitions that the plan asks for", integer(c.Launches.Planned)},
		{"launches_counted", Integer, "launches that succeeded and are not warm-ups; figures are medians over these",
			integer(c.Launches.Counted)},
		{"launches_opened", Integer, "the number of launches, if counted repetitions shared launches",
			some(c.Launches.Opened)},
		{"launches_failed", Integer, "launches that failed", integer(c.Launches.Failed)},
		{"launches_interrupted", Integer, "launches that were interrupted", integer(c.Launches.Interrupted)},
		{"failures", Text, "the classes of the failures, separated by semicolons", named(failureClasses(c))},
		{"refused", Text, "why the cell was not launched", named(c.Refused)},
		{"warnings", Text, "the codes of the warnings of this cell and of its run, separated by semicolons",
			named(warningCodes(res, c))},
	}
}

// asked are columns that say how a cell was asked; they came later than the others, and stand last.
func asked(c *compare.Cell) []field {
	return []field{
		{"input_tokens", Integer, "the prompt length in tokens that the plan asks for; absent if the plan has a text",
			some(c.Spec.InputTokens)},
		{"kv_cache_dtype_asked", Text, "dtype of the KV cache that the plan asks for", named(c.Spec.KVDType)},
		{"start", Text, "cold or warm: whether the model's files were in the page cache; absent if the run did not control that",
			named(c.Spec.Start)},
		{"shared", Truth, "whether cells with the same engine and start settings share a launch", truth(c.Spec.Shared)},
		{"setup", Integer, "the number of the start settings", some(c.Spec.Setup)},
		{"traffic", Text, "how requests arrive, in a few words", named(c.Requested(axis.Traffic))},
		{"concurrency", Integer, "clients of a closed loop, requests of a batch, or the most requests at one time of an open loop",
			some(traffic(c).Concurrency)},
		{"requests", Integer, "the number of requests of a launch", some(traffic(c).Requests)},
		{"weights_asked", Text, "form of the weights that the plan asks for; absent if as-is", named(c.Spec.Weights)},
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
	for _, w := range res.About(c) {
		out = explain.AppendNew(out, w.Code)
	}
	return strings.Join(out, ";")
}
