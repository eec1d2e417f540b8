package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Answer reports whether an item of the checklist holds.
type Answer string

// The answers. Unknown: the record does not say.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
)

// Check is an item of the reproducibility checklist with its answer.
type Check struct {
	Item   string `json:"item"`
	Answer Answer `json:"answer"`
	Why    string `json:"why"`
}

// The items of the checklist.
const (
	SameModel     = "Same model (size, quantization) across runtimes"
	SamePrompt    = "Same prompt"
	SameMaxTokens = "Same max tokens"
	Deterministic = "Temperature = 0.0 (deterministic)"
	QuietMachine  = "Minimal background processes"
	SeveralRuns   = "Multiple runs for statistical significance"
	SystemState   = "Document system state (OS version, runtime versions)"
)

// Enough is how many repetitions a 95% interval needs.
const Enough = stats.MinRuns

// quiet is the share of the cores that other programs may use.
const quiet = 0.10

// Checklist answers the items for a run from its record. If a plan has several models, prompts or lengths, every engine
// must have run each. Imported rows have only memory.
func Checklist(run *record.Run) []Check {
	var out []Check
	for _, item := range []struct {
		name             string
		answer           func(*record.Run) (Answer, string)
		cells, ofForeign bool // it takes cells; rows of another program answer it
	}{
		{SameModel, sameModel, true, false}, {SamePrompt, samePrompt, true, false},
		{SameMaxTokens, sameMaxTokens, true, false}, {Deterministic, deterministic, true, false},
		{QuietMachine, quietMachine, false, false}, {SeveralRuns, severalRuns, true, true},
		{SystemState, systemState, false, false},
	} {
		c := Check{Item: item.name, Answer: Unknown}
		switch none := len(run.Cells) == 0; {
		case none && item.cells:
			c.Why = "the run has no cell"
		case !none && run.Cells[0].Model.Format == record.Foreign && !item.ofForeign:
			c.Why = "imported rows do not show this"
		default:
			c.Answer, c.Why = item.answer(run)
		}
		out = append(out, c)
	}
	return out
}

// ran has the engines that ran each value.
type ran[T cmp.Ordered] map[T]map[string]bool

// byValue groups the engines of a run by a value of their cells.
func byValue[T cmp.Ordered](run *record.Run, of func(*record.Cell) T) ran[T] {
	out := ran[T]{}
	for i := range run.Cells {
		c := &run.Cells[i]
		v := of(c)
		if out[v] == nil {
			out[v] = map[string]bool{}
		}
		out[v][c.Engine] = true
	}
	return out
}

// missing is the first value that not every engine of a run ran; false: there is none.
func (r ran[T]) missing(run *record.Run) (v T, some bool) {
	engines := enginesOf(run)
	for _, v := range slices.Sorted(maps.Keys(r)) {
		if len(r[v]) < len(engines) {
			return v, true
		}
	}
	return v, false
}

func enginesOf(run *record.Run) ran[string] {
	return byValue(run, func(c *record.Cell) string { return c.Engine })
}

func sameMaxTokens(run *record.Run) (Answer, string) {
	tokens := byValue(run, func(c *record.Cell) int { return c.MaxTokens })
	if n, some := tokens.missing(run); some {
		return No, fmt.Sprintf("only %s was asked for %d tokens", List(tokens[n]), n)
	}
	of := "every cell"
	if len(tokens) > 1 {
		of = "every engine"
	}
	return Yes, "max_tokens of " + of + ": " + List(tokens)
}

func deterministic(run *record.Run) (Answer, string) {
	temperatures := byValue(run, func(c *record.Cell) float64 { return c.Temperature })
	return YesIf(len(temperatures) == 1 && temperatures[0] != nil), "temperature of every cell: " + List(temperatures)
}

// YesIf is Yes or No.
func YesIf(is bool) Answer {
	if is {
		return Yes
	}
	return No
}

// List joins the keys in order.
func List[T cmp.Ordered, V any](of map[T]V) string {
	var out []string
	for _, v := range slices.Sorted(maps.Keys(of)) {
		out = append(out, fmt.Sprint(v))
	}
	return strings.Join(out, ", ")
}

// sameModel compares hashes and the dtypes in which engines hold the weights.
func sameModel(run *record.Run) (Answer, string) {
	held, said := map[int]string{}, map[string]bool{} // by cell, as engines say it
	for _, a := range run.Attempts {
		e, ok := a.Engine()
		if ok && e.Policy["weights_dtype"] != "" {
			held[a.Cell] = e.Policy["weights_dtype"]
		}
		if ok && e.Weights != "" {
			said[e.Weights.String()+": "] = true
		}
	}
	differs := ""
	for _, c := range run.Cells {
		m := c.Model
		if m.SHA256 == "" || m.Format == record.Served {
			return Unknown, fmt.Sprintf("the weights of %s in %s are not verified", m.Name, c.Engine)
		}
		if m.SameAs != "" {
			said[record.SameCompared.String()+": "] = true
		}
		if m.Differs.Code != "" {
			differs = fmt.Sprintf(formDiffers[m.Differs.Code], m.Form, m.Differs.Detail)
		}
	}
	how := List(said)
	dtype := func(c *record.Cell) string { return strings.ToLower(cmp.Or(held[c.ID], c.Model.DType)) }
	files := byValue(run, func(c *record.Cell) string { return c.Model.Values() })
	dtypes := byValue(run, func(c *record.Cell) string { return c.Model.Values() + " " + dtype(c) })
	models := byValue(run, func(c *record.Cell) string {
		return fmt.Sprintf("%s, weights in %s, sha256 %.12s", c.Model.Name, dtype(c), c.Model.SHA256)
	})
	const most = 4
	if _, some := files.missing(run); some {
		return No, fmt.Sprintf("the cells have %d different files, and not every engine ran each%s", len(files),
			differs)
	} else if _, some := dtypes.missing(run); some {
		return No, how + "the same files, but engines hold the weights in different dtypes: " + List(models)
	} else if len(models) > most {
		return Yes, fmt.Sprintf("%s%d files, each in every engine, in the same dtypes", how, len(files))
	}
	return Yes, how + List(models)
}

// formDiffers says how a form of a model differs from the first one.
var formDiffers = map[record.Sameness]string{
	record.OtherValues: "; of %s %s",
	record.NotCompared: "; of %s not compared: %s",
}

// samePrompt compares the prompts' texts: every engine must have run each.
func samePrompt(run *record.Run) (Answer, string) {
	prompts := byValue(run, func(c *record.Cell) string { return c.Prompt })
	if prompt, some := prompts.missing(run); some {
		return No, fmt.Sprintf("only %s ran %.40q", List(prompts[prompt]), prompt)
	}
	return Yes, fmt.Sprintf("%s ran every prompt (%d in total)%s", List(enginesOf(run)), len(prompts), template(run))
}

// template says how prompts were rendered; empty if each engine did that in its own way.
func template(run *record.Run) string {
	for _, a := range run.Attempts {
		if e, ok := a.Engine(); ok && e.Policy["prompt"] != "" && e.Policy["prompt"] != "raw" {
			return ""
		}
	}
	if slices.ContainsFunc(run.Cells, func(c record.Cell) bool { return c.Chat }) {
		return ", in the model's chat template"
	}
	return ", without a template"
}

func quietMachine(run *record.Run) (Answer, string) {
	c := Quiet(run.Environment)
	return c.Answer, c.Why
}

// Quiet answers whether other programs used the machine.
func Quiet(e record.Environment) Check {
	b := e.Background
	if b == nil || e.Cores == 0 {
		return Check{QuietMachine, Unknown,
			fmt.Sprintf("other programs were not measured; the load average was %.2f on %d cores", e.Load1, e.Cores)}
	}
	all := float64(e.Cores)
	if e.Processor != nil {
		all = max(all, float64(e.Processor.Logical))
	}
	why := fmt.Sprintf("in the %.1f s before the run, other programs used %.2f of %g cores", b.Seconds, b.Cores, all)
	if b.Stolen > 0 {
		why += fmt.Sprintf(", other guests of the host %.2f", b.Stolen)
	}
	for i, p := range b.Busiest {
		why += map[bool]string{true: "; the busiest: ", false: ", "}[i == 0] + fmt.Sprintf("%s %.2f", p.Name, p.Cores)
	}
	return Check{QuietMachine, YesIf(b.Cores+b.Stolen <= quiet*all), why}
}

// Busy says what else used a run's machine; empty if that is little or unknown. Only the load average before the first
// launch counts: later ones include the engines.
func Busy(run *record.Run) string {
	if c := Quiet(run.Environment); c.Answer == No {
		return c.Why
	}
	e := run.Environment
	if e.Background != nil || e.Cores == 0 || len(run.Attempts) == 0 {
		return ""
	}
	if load := run.Attempts[0].Load1; load > 0.5*float64(e.Cores) {
		return fmt.Sprintf("the load average was %.2f on %d cores before the first launch", load, e.Cores)
	}
	return ""
}

// severalRuns asks whether every cell has enough launches for an interval.
func severalRuns(run *record.Run) (Answer, string) {
	counted := map[int]int{}
	for _, a := range run.Attempts {
		if a.Counted() {
			counted[a.Cell]++
		}
	}
	least := math.MaxInt
	for _, c := range run.Cells {
		least = min(least, counted[c.ID])
	}
	return YesIf(least >= Enough),
		fmt.Sprintf("the smallest number of counted launches in a cell is %d; a 95%% interval needs %d", least, Enough)
}

// systemState asks whether the versions of the system and of every engine are known.
func systemState(run *record.Run) (Answer, string) {
	e := run.Environment
	versions, silent, engines := map[string]bool{}, map[string]bool{}, map[int]string{}
	for _, c := range run.Cells {
		engines[c.ID] = c.Engine
	}
	for _, a := range run.Attempts {
		name := engines[a.Cell]
		if info, ok := a.Engine(); ok && info.Version != "" {
			versions[name+" "+info.Version] = true
		} else if a.Counted() {
			silent[name] = true
		}
	}
	switch {
	case e.OS == "" || e.Kernel == "":
		return No, "the system's version is not known"
	case len(silent) > 0:
		return No, "version not reported by " + List(silent)
	case len(versions) == 0:
		return Unknown, "no engine has run"
	}
	return Yes, fmt.Sprintf("%s, kernel %s; %s", e.OS, e.Kernel, List(versions))
}
