package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"llmparity/internal/record"
)

// Answer is whether an item of the checklist holds.
type Answer string

// The answers. Unknown is where nothing was recorded that would tell.
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

// Enough is how many repetitions a 95 % interval takes.
const Enough = 6

// quiet is the share of the cores that others may take.
const quiet = 0.10

// Checklist answers the items for a run, from its record alone. What a plan has several of, every engine must have had
// each of.
func Checklist(run *record.Run) []Check {
	if len(run.Cells) > 0 && run.Cells[0].Model.Format == record.Foreign {
		return foreignChecklist(run)
	}
	out := []Check{{SameModel, Unknown, "there is no cell"}, {SamePrompt, Unknown, "there is no cell"},
		{SameMaxTokens, Unknown, "there is no cell"}, {Deterministic, Unknown, "there is no cell"}}
	if len(run.Cells) > 0 {
		out = []Check{sameModel(run), samePrompt(run), sameMaxTokens(run), deterministic(run)}
	}
	return append(out, Quiet(run.Environment), severalRuns(run), systemState(run))
}

// had is what each engine had of something.
type had[T int | string] map[string]map[T]bool

func (h had[T]) add(engine string, v T) {
	if h[engine] == nil {
		h[engine] = map[T]bool{}
	}
	h[engine][v] = true
}

// alike tells whether all engines had the same, and gives all that there is.
func (h had[T]) alike() (all map[T]bool, alike bool) {
	all, alike = map[T]bool{}, true
	for _, of := range h {
		maps.Copy(all, of)
	}
	for _, of := range h {
		alike = alike && len(of) == len(all)
	}
	return all, alike
}

func sameMaxTokens(run *record.Run) Check {
	tokens := had[int]{}
	for _, c := range run.Cells {
		tokens.add(c.Engine, c.MaxTokens)
	}
	all, alike := tokens.alike()
	of := "every cell"
	if len(all) > 1 && alike {
		of = "every engine"
	}
	if !alike {
		var parts []string
		for _, engine := range slices.Sorted(maps.Keys(tokens)) {
			parts = append(parts, engine+" "+List(tokens[engine]))
		}
		return Check{SameMaxTokens, No, "asked of engines: " + strings.Join(parts, "; ")}
	}
	return Check{SameMaxTokens, Yes, "asked of " + of + ": " + List(all)}
}

func deterministic(run *record.Run) Check {
	temperatures := map[float64]bool{}
	for _, c := range run.Cells {
		temperatures[c.Temperature] = true
	}
	return Check{Deterministic, yesIf(len(temperatures) == 1 && temperatures[0]),
		"asked of every cell: " + List(temperatures)}
}

func yesIf(is bool) Answer {
	if is {
		return Yes
	}
	return No
}

// List is what there is, in order.
func List[T int | float64 | string](of map[T]bool) string {
	var out []string
	for _, v := range slices.Sorted(maps.Keys(of)) {
		out = append(out, fmt.Sprint(v))
	}
	return strings.Join(out, ", ")
}

// sameModel goes by hashes, and by the numbers that engines hold the weights in.
func sameModel(run *record.Run) Check {
	held := map[int]string{} // by cell, as engines say it
	for _, a := range run.Attempts {
		if e, ok := a.Engine(); ok && e.Policy["weights_dtype"] != "" {
			held[a.Cell] = e.Policy["weights_dtype"]
		}
	}
	files, numbers, models := had[string]{}, had[string]{}, map[string]bool{}
	for _, c := range run.Cells {
		if c.Model.SHA256 == "" || c.Model.Format == record.Served {
			return Check{SameModel, Unknown,
				fmt.Sprintf("nobody has verified the weights of %s in %s", c.Model.Name, c.Engine)}
		}
		dtype := strings.ToLower(cmp.Or(held[c.ID], c.Model.DType))
		files.add(c.Engine, c.Model.SHA256)
		numbers.add(c.Engine, c.Model.SHA256+" "+dtype)
		models[fmt.Sprintf("%s, weights in %s, sha256 %.12s", c.Model.Name, dtype, c.Model.SHA256)] = true
	}
	all, alike := files.alike()
	if !alike {
		return Check{SameModel, No, fmt.Sprintf("the cells have %d different files, and not every engine had each",
			len(all))}
	}
	if _, alike := numbers.alike(); !alike {
		return Check{SameModel, No, "the same files, but engines hold their weights in different numbers: " +
			List(models)}
	}
	const most = 4
	if len(models) > most {
		return Check{SameModel, Yes, fmt.Sprintf("%d files, each in every engine, in the same numbers", len(all))}
	}
	return Check{SameModel, Yes, List(models)}
}

// samePrompt goes by the prompts' texts: every engine must have had each.
func samePrompt(run *record.Run) Check {
	engines, had := map[string]bool{}, map[string]map[string]bool{}
	for _, c := range run.Cells {
		engines[c.Engine] = true
		if had[c.Prompt] == nil {
			had[c.Prompt] = map[string]bool{}
		}
		had[c.Prompt][c.Engine] = true
	}
	for _, prompt := range slices.Sorted(maps.Keys(had)) {
		if by := had[prompt]; len(by) < len(engines) {
			return Check{SamePrompt, No, fmt.Sprintf("%.40q was given to %s alone", prompt, List(by))}
		}
	}
	return Check{SamePrompt, Yes, fmt.Sprintf("prompts: %d, each given to %s, without a template", len(had),
		List(engines))}
}

// Quiet answers whether others were busy on a machine.
func Quiet(e record.Environment) Check {
	b := e.Background
	if b == nil || e.Cores == 0 {
		return Check{QuietMachine, Unknown,
			fmt.Sprintf("nobody listened to them; the load average was %.2f on %d cores", e.Load1, e.Cores)}
	}
	all := float64(e.Cores)
	if e.Processor != nil {
		all = max(all, float64(e.Processor.Logical))
	}
	why := fmt.Sprintf("others took %.2f of %g cores in %.1f s before the run", b.Cores, all, b.Seconds)
	if b.Stolen > 0 {
		why += fmt.Sprintf(", the host's other guests %.2f", b.Stolen)
	}
	for i, p := range b.Busiest {
		why += map[bool]string{true: ": ", false: ", "}[i == 0] + fmt.Sprintf("%s %.2f", p.Name, p.Cores)
	}
	return Check{QuietMachine, yesIf(b.Cores+b.Stolen <= quiet*all), why}
}

// Busy says who else used a run's machine; empty where nobody did much, or nobody knows. Load averages are those before
// the run's first launch: later ones have its own engines in them.
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

// severalRuns asks for what an interval takes of the cell that has least.
func severalRuns(run *record.Run) Check {
	least, counted := -1, map[int]int{}
	for _, a := range run.Attempts {
		if a.Counted() {
			counted[a.Cell]++
		}
	}
	for _, c := range run.Cells {
		if n := counted[c.ID]; least < 0 || n < least {
			least = n
		}
	}
	if least < 0 {
		return Check{SeveralRuns, Unknown, "there is no cell"}
	}
	return Check{SeveralRuns, yesIf(least >= Enough),
		fmt.Sprintf("the fewest that count in a cell: %d; an interval of 95 %% takes %d", least, Enough)}
}

// systemState asks whether the system and every engine that ran told what they are.
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
		return Check{SystemState, No, "the record does not tell the system's version"}
	case len(silent) > 0:
		return Check{SystemState, No, "no version was told by " + List(silent)}
	case len(versions) == 0:
		return Check{SystemState, Unknown, "no engine has run"}
	}
	return Check{SystemState, Yes, fmt.Sprintf("%s, kernel %s; %s", e.OS, e.Kernel, List(versions))}
}

// foreignChecklist answers for rows that tell nothing but memory.
func foreignChecklist(run *record.Run) []Check {
	var out []Check
	for _, item := range []string{SameModel, SamePrompt, SameMaxTokens, Deterministic, QuietMachine} {
		out = append(out, Check{item, Unknown, "rows that another program wrote don't tell"})
	}
	return append(out, severalRuns(run), Check{SystemState, Unknown, "rows that another program wrote don't tell"})
}
