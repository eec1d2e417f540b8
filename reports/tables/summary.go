package tables

import (
	"cmp"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// columns are the figures of a summary, each with its median, its interval's ends and its number of launches.
func columns() []*figure.Row { return figure.Columns(figure.Any) }

// asked are columns that say how a cell was asked; they came later than the others, and stand last.
func asked() []identity {
	type res = *compare.Result
	type cell = *compare.Cell
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
			func(_ res, c cell) Value { return named(c.Traffic()) }},
		{Column{"concurrency", Integer, "clients of a closed loop, requests of a batch, the most at once of an open loop"},
			func(_ res, c cell) Value { return some(traffic(c).Concurrency) }},
		{Column{"requests", Integer, "of a launch"},
			func(_ res, c cell) Value { return some(traffic(c).Requests) }},
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
		{Column{"engine_version", Text, "as the engine says it"},
			func(_ res, c cell) Value { return named(engine(c).Version) }},
		{Column{"model", Text, "the model's name"}, func(_ res, c cell) Value { return text(c.Spec.Model.Name) }},
		{Column{"model_sha256", Text, "of the model's file; absent where only a server has it"},
			func(_ res, c cell) Value { return named(c.Spec.Model.SHA256) }},
		{Column{"dtype", Text, "of the weights as the engine holds them, else as the file has them"},
			func(_ res, c cell) Value {
				return named(cmp.Or(engine(c).Policy["weights_dtype"], c.Spec.Model.DType))
			}},
		{Column{"kv_cache_dtype", Text, "of the KV cache"},
			func(_ res, c cell) Value { return named(engine(c).Policy["kv_dtype"]) }},
		{Column{"device_class", Text, "cpu, gpu, software-adapter"},
			func(_ res, c cell) Value { return named(string(device(c).Class)) }},
		{Column{"device", Text, "the device's name"},
			func(_ res, c cell) Value { return named(device(c).Name) }},
		{Column{"context", Integer, "tokens that the engine was given room for; absent where a server chose"},
			func(_ res, c cell) Value { return some(c.Spec.Model.Context) }},
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
			func(_ res, c cell) Value { return some(c.Launches.Opened) }},
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

func summaryTable() []Column {
	var out []Column
	for _, id := range identities() {
		out = append(out, id.Column)
	}
	for _, r := range columns() {
		out = append(out, Column{r.Column.Name, Number, r.Column.What + "; the median over counted launches"},
			Column{r.Column.Name + "_lo", Number,
				"the lower end of its 95 % order-statistic interval; absent where launches are too few"},
			Column{r.Column.Name + "_hi", Number, "the upper end"},
			Column{r.Column.Name + "_n", Integer, "how many launches it is the median of"})
	}
	for _, id := range asked() {
		out = append(out, id.Column)
	}
	for _, r := range columns() {
		out = append(out, Column{r.Column.Name + "_from", Text,
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
		for _, r := range columns() {
			f := c.Named(r.Name)
			lo, hi := Value{}, Value{}
			if f.Interval != nil {
				lo, hi = number(f.Interval.Lo), number(f.Interval.Hi)
			}
			row = append(row, number(f.Center()), lo, hi, integer(f.N))
		}
		for _, id := range asked() {
			row = append(row, id.of(res, c))
		}
		for _, r := range columns() {
			row = append(row, named(c.Named(r.Name).From()))
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}
