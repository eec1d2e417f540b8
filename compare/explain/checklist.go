package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"llmparity/internal/record"
)

// Answer tells whether an item of the checklist holds.
type Answer string

// The answers. Unknown: the record does not say.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
)

// Check is an item of the reproducibility checklist, answered.
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
const Enough = 6

// quiet is the share of the cores that other programs may use.
const quiet = 0.10

// Checklist answers the items for a run from its record. If a plan has several models, prompts or lengths, every engine
// must have run each. Imported rows have only memory.
func Checklist(run *record.Run) []Check {
	unknown := func(why string, items ...string) []Check {
		var out []Check
		for _, item := range items {
			out = append(out, Check{item, Unknown, why})
		}
		return out
	}
	const foreign = "imported rows do not show this"
	switch {
	case len(run.Cells) == 0:
		return append(unknown("the run has no cell", SameModel, SamePrompt, SameMaxTokens, Deterministic),
			Quiet(run.Environment), severalRuns(run), systemState(run))
	case run.Cells[0].Model.Format == record.Foreign:
		return append(unknown(foreign, SameModel, SamePrompt, SameMaxTokens, Deterministic, QuietMachine),
			severalRuns(run), Check{SystemState, Unknown, foreign})
	}
	return []Check{sameModel(run), samePrompt(run), sameMaxTokens(run), deterministic(run), Quiet(run.Environment),
		severalRuns(run), systemState(run)}
}

// ran has the engines that ran each value.
type ran[T cmp.Ordered] map[T]map[string]bool

func (r ran[T]) add(v T, engine string) {
	if r[v] == nil {
		r[v] = map[string]bool{}
	}
	r[v][engine] = true
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

func enginesOf(run *record.Run) map[string]bool {
	out := map[string]bool{}
	for _, c := range run.Cells {
		out[c.Engine] = true
	}
	return out
}

func sameMaxTokens(run *record.Run) Check {
	tokens := ran[int]{}
	for _, c := range run.Cells {
		tokens.add(c.MaxTokens, c.Engine)
	}
	if n, some := tokens.missing(run); some {
		return Check{SameMaxTokens, No, fmt.Sprintf("only %s was asked for %d tokens", List(tokens[n]), n)}
	}
	of := "every cell"
	if len(tokens) > 1 {
		of = "every engine"
	}
	return Check{SameMaxTokens, Yes, "max_tokens of " + of + ": " + List(tokens)}
}

func deterministic(run *record.Run) Check {
	temperatures := map[float64]bool{}
	for _, c := range run.Cells {
		temperatures[c.Temperature] = true
	}
	return Check{Deterministic, yesIf(len(temperatures) == 1 && temperatures[0]),
		"temperature of every cell: " + List(temperatures)}
}

func yesIf(is bool) Answer {
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
func sameModel(run *record.Run) Check {
	held, said := map[int]string{}, map[string]bool{} // by cell, as engines say it
	for _, a := range run.Attempts {
		e, ok := a.Engine()
		if ok && e.Policy["weights_dtype"] != "" {
			held[a.Cell] = e.Policy["weights_dtype"]
		}
		if same := Sameness(e.Policy["weights"]); ok && same != "" {
			said[same+": "] = true
		}
	}
	how := List(said)
	files, dtypes, models := ran[string]{}, ran[string]{}, map[string]bool{}
	for _, c := range run.Cells {
		if c.Model.SHA256 == "" || c.Model.Format == record.Served {
			return Check{SameModel, Unknown,
				fmt.Sprintf("the weights of %s in %s are not verified", c.Model.Name, c.Engine)}
		}
		dtype := strings.ToLower(cmp.Or(held[c.ID], c.Model.DType))
		files.add(c.Model.SHA256, c.Engine)
		dtypes.add(c.Model.SHA256+" "+dtype, c.Engine)
		models[fmt.Sprintf("%s, weights in %s, sha256 %.12s", c.Model.Name, dtype, c.Model.SHA256)] = true
	}
	const most = 4
	if _, some := files.missing(run); some {
		return Check{SameModel, No, fmt.Sprintf("the cells have %d different files, and not every engine ran each",
			len(files))}
	} else if _, some := dtypes.missing(run); some {
		return Check{SameModel, No, how + "the same files, but engines hold the weights in different dtypes: " +
			List(models)}
	} else if len(models) > most {
		return Check{SameModel, Yes, fmt.Sprintf("%s%d files, each in every engine, in the same dtypes", how, len(files))}
	}
	return Check{SameModel, Yes, how + List(models)}
}

// Sameness returns how converted weights compare with those of the model's file; empty for other remarks on weights.
func Sameness(weights string) string {
	if strings.HasPrefix(weights, "same ") {
		return weights
	}
	return ""
}

// samePrompt compares the prompts' texts: every engine must have run each.
func samePrompt(run *record.Run) Check {
	prompts := ran[string]{}
	for _, c := range run.Cells {
		prompts.add(c.Prompt, c.Engine)
	}
	if prompt, some := prompts.missing(run); some {
		return Check{SamePrompt, No, fmt.Sprintf("only %s ran %.40q", List(prompts[prompt]), prompt)}
	}
	return Check{SamePrompt, Yes, fmt.Sprintf("prompts: %d, each run by %s, without a template", len(prompts),
		List(enginesOf(run)))}
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
	return Check{QuietMachine, yesIf(b.Cores+b.Stolen <= quiet*all), why}
}

// Busy says what else used a run's machine; empty if little did, or it is not known. Only the load average before the
// first launch counts: later ones include the engines.
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
func severalRuns(run *record.Run) Check {
	if len(run.Cells) == 0 {
		return Check{SeveralRuns, Unknown, "the run has no cell"}
	}
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
	return Check{SeveralRuns, yesIf(least >= Enough),
		fmt.Sprintf("the smallest number of counted launches in a cell is %d; a 95%% interval needs %d", least, Enough)}
}

// systemState asks whether the versions of the system and of every engine are known.
func systemState(run *record.Run) Check {
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
		return Check{SystemState, No, "the system's version is not known"}
	case len(silent) > 0:
		return Check{SystemState, No, "version not reported by " + List(silent)}
	case len(versions) == 0:
		return Check{SystemState, Unknown, "no engine has run"}
	}
	return Check{SystemState, Yes, fmt.Sprintf("%s, kernel %s; %s", e.OS, e.Kernel, List(versions))}
}
