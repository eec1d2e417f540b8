package tables

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
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
		out = append(out,
			field{Column{name, Number, r.Column.What + "; the median over counted launches"},
				func(c *compare.Cell) Value { return number(f(c).Center()) }},
			field{Column{name + "_lo", Number,
				"the lower end of its 95% order-statistic interval; absent if there are too few launches"},
				func(c *compare.Cell) Value { return number(ends(f(c)).Lo) }},
			field{Column{name + "_hi", Number, "the upper end"},
				func(c *compare.Cell) Value { return number(ends(f(c)).Hi) }},
			field{Column{name + "_n", Integer, "how many launches it is the median of"},
				func(c *compare.Cell) Value { return integer(f(c).N) }})
		from = append(from, field{Column{name + "_from", Text,
			"measured, reported by the engine, calculated or file size; behind it the method"},
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
		for i := range res.Cells {
			for n, f := range fields {
				row[n] = f.of(&res.Cells[i])
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
		{Column{"run", Integer, "the run's number, from 0, in the order in which runs were given"},
			func(c *compare.Cell) Value { return integer(c.Run) }},
		{Column{"run_name", Text, "the plan's name"},
			func(c *compare.Cell) Value { return text(res.Runs[c.Run].Name) }},
		{Column{"cell", Integer, "the cell's number in its run"},
			func(c *compare.Cell) Value { return integer(c.Spec.ID) }},
		{Column{"label", Text, "what reports call the cell; unique in a result"},
			func(c *compare.Cell) Value { return text(c.Label) }},
		{Column{"engine", Text, "as in the plan"}, func(c *compare.Cell) Value { return text(c.Spec.Engine) }},
		{Column{"engine_version", Text, "as the engine says it"},
			func(c *compare.Cell) Value { return named(engine(c).Version) }},
		{Column{"model", Text, "the model's name"}, func(c *compare.Cell) Value { return text(c.Spec.Model.Name) }},
		{Column{"model_sha256", Text, "of the model's file; absent where only a server has it"},
			func(c *compare.Cell) Value { return named(c.Spec.Model.SHA256) }},
		{Column{"dtype", Text, "of the weights as the engine holds them, else as the file has them"},
			func(c *compare.Cell) Value {
				return named(cmp.Or(engine(c).Policy["weights_dtype"], c.Spec.Model.DType))
			}},
		{Column{"kv_cache_dtype", Text, "of the KV cache"},
			func(c *compare.Cell) Value { return named(engine(c).Policy["kv_dtype"]) }},
		{Column{"device_class", Text, "cpu, gpu, software-adapter"},
			func(c *compare.Cell) Value { return named(string(device(c).Class)) }},
		{Column{"device", Text, "the device's name"}, func(c *compare.Cell) Value { return named(device(c).Name) }},
		{Column{"context", Integer, "tokens that the engine was given room for; absent where a server chose"},
			func(c *compare.Cell) Value { return some(c.Spec.Model.Context) }},
		{Column{"prompt_id", Integer, "the prompt's number in the plan"},
			func(c *compare.Cell) Value { return integer(c.Spec.PromptID) }},
		{Column{"max_tokens", Integer, "tokens that were asked for"},
			func(c *compare.Cell) Value { return integer(c.Spec.MaxTokens) }},
		{Column{"temperature", Number, "0: greedy"}, func(c *compare.Cell) Value { return number(c.Spec.Temperature) }},
		{Column{"isolation", Text, "what a repetition has of its own: launch, tab, server"},
			func(c *compare.Cell) Value { return named(c.Spec.Isolation) }},
		{Column{"reused", Truth, "whether repetitions go on in the launch of the one before"},
			func(c *compare.Cell) Value { return truth(c.Spec.Reused) }},
		{Column{"prompt_cache", Text, "off, on"}, func(c *compare.Cell) Value { return named(c.Spec.PromptCache) }},
		{Column{"launches_planned", Integer, "repetitions that the plan asks for"},
			func(c *compare.Cell) Value { return integer(c.Launches.Planned) }},
		{Column{"launches_counted", Integer, "those that ended well; figures are over these"},
			func(c *compare.Cell) Value { return integer(c.Launches.Counted) }},
		{Column{"launches_opened", Integer, "launches that the counted repetitions were in, where they shared some"},
			func(c *compare.Cell) Value { return some(c.Launches.Opened) }},
		{Column{"launches_failed", Integer, "those that failed"},
			func(c *compare.Cell) Value { return integer(c.Launches.Failed) }},
		{Column{"launches_interrupted", Integer, "those that never ended"},
			func(c *compare.Cell) Value { return integer(c.Launches.Interrupted) }},
		{Column{"failures", Text, "the classes of the failed ones, separated by semicolons"},
			func(c *compare.Cell) Value { return named(failureClasses(c)) }},
		{Column{"refused", Text, "why the cell was not launched at all"},
			func(c *compare.Cell) Value { return named(c.Refused) }},
		{Column{"warnings", Text, "the codes of the warnings of this cell and of its run, separated by semicolons"},
			func(c *compare.Cell) Value { return named(warningCodes(res, c)) }},
	}
}

// asked are columns that say how a cell was asked; they came later than the others, and stand last.
func asked() []field {
	return []field{
		{Column{"input_tokens", Integer, "tokens of the prompt that were asked for; absent where a text was given"},
			func(c *compare.Cell) Value { return some(c.Spec.InputTokens) }},
		{Column{"kv_cache_dtype_asked", Text, "of the KV cache, where the plan asks for one"},
			func(c *compare.Cell) Value { return named(c.Spec.KVDType) }},
		{Column{"start", Text, "cold, warm: what of the model's files lay in memory, where that was seen to"},
			func(c *compare.Cell) Value { return named(c.Spec.Start) }},
		{Column{"shared", Truth, "whether cells of one engine and setup went on in one launch"},
			func(c *compare.Cell) Value { return truth(c.Spec.Shared) }},
		{Column{"setup", Integer, "the number of what is settled when an engine is launched"},
			func(c *compare.Cell) Value { return some(c.Spec.Setup) }},
		{Column{"traffic", Text, "how requests came, in a few words; absent where there was one"},
			func(c *compare.Cell) Value { return named(c.Traffic()) }},
		{Column{"concurrency", Integer, "clients of a closed loop, requests of a batch, the most at once of an open loop"},
			func(c *compare.Cell) Value { return some(traffic(c).Concurrency) }},
		{Column{"requests", Integer, "of a launch"}, func(c *compare.Cell) Value { return some(traffic(c).Requests) }},
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
		if here && !slices.Contains(out, w.Code) {
			out = append(out, w.Code)
		}
	}
	return strings.Join(out, ";")
}
