// Package dryrun shows what a resolved plan would do: each cell with its predicted memory and time, what would be
// downloaded, and what is missing here. It only shows that: package resolve finds it out.
package dryrun

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"llmparity/internal/axis"
	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/resolve"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// Line is a cell with the answer for it.
type Line struct {
	*record.Cell
	*resolve.Answer
	of *resolve.Chosen
}

// Summary is about all cells.
type Summary struct {
	Schema      string         `json:"schema"`
	Name        string         `json:"name"`
	Setups      int            `json:"setups"`
	Cells       int            `json:"cells"`
	CantRun     int            `json:"cells_that_cannot_run"`
	MayRun      int            `json:"cells_that_may_run"` // unknown
	Seconds     *float64       `json:"seconds,omitempty"`  // of cells and scorings whose time is known
	UnknownTime int            `json:"cells_of_unknown_time"`
	Scoring     *Scoring       `json:"scoring,omitempty"` // nil: no text is scored
	MostB       int64          `json:"most_memory_bytes,omitempty"`
	Fetches     []models.Fetch `json:"fetches"`
	Missing     []string       `json:"missing"`
	Notes       []string       `json:"notes"`
}

// Schema names the JSON format of a dry run.
const Schema = "llmparity.dry-run/1"

// Run is what a plan would do.
type Run struct {
	Lines   []Line
	Summary Summary
}

// Of returns what a resolved plan would do. notes are printed below.
func Of(p *resolve.Resolved, notes ...string) Run {
	out := Run{Summary: Summary{Schema: Schema, Name: p.Plan.Name, Setups: len(p.Setups),
		Cells: len(p.Cells), CantRun: p.Refused(), Fetches: append([]models.Fetch{}, p.Fetches...),
		Missing: append([]string{}, p.Lines()...), Notes: append([]string{}, notes...)}}
	sum, seconds := &out.Summary, 0.0
	for i := range p.Cells {
		l := Line{&p.Cells[i], &p.Answers[i], p.Chosen[p.Cells[i].Setup-1]}
		if l.Verdict.Answer == engine.Unknown {
			sum.MayRun++
		}
		if sum.MostB = max(sum.MostB, l.Prediction.Best); l.Prediction.Seconds != nil {
			seconds += *l.Prediction.Seconds
			sum.Seconds = &seconds
		} else if l.Verdict.Answer != engine.Refused {
			sum.UnknownTime++
		}
		out.Lines = append(out.Lines, l)
	}
	if sum.Scoring = scoring(p.Scorings); sum.Scoring != nil && sum.Scoring.Seconds != nil {
		seconds += *sum.Scoring.Seconds
		sum.Seconds = &seconds
	}
	return out
}

// why is the reason of an answer; empty: the cell has another one.
func (l Line) why(answer engine.Answer) string {
	if v := l.Verdict; v.Answer == answer && v.Reason != nil {
		return fault.OneLine(v.Reason.Error())
	}
	return ""
}

// lengths are those of the longest requests.
func (l Line) lengths() (in, out int) {
	in, out = l.InputTokens, l.MaxTokens
	if l.Traffic != nil {
		for _, k := range l.Traffic.Mix {
			in, out = max(in, k.InputTokens), max(out, k.MaxTokens)
		}
	}
	return in, out
}

// atOnce is the maximum of simultaneous requests.
func (l Line) atOnce() int {
	switch t := l.Traffic; {
	case t == nil:
		return 1
	case t.Loop == record.OpenLoop && t.Concurrency == 0:
		return resolve.Requests(l.Cell)
	default:
		return max(t.Concurrency, 1)
	}
}

// context is the context window that the engines get; 0: unknown.
func (l Line) context() int { return max(l.of.Model.Context, l.of.Planned.Context, 0) }

// elsewhere are axes that have fields and columns of their own.
var elsewhere = []string{axis.Engine, axis.Model, axis.Prompt, axis.Output, axis.Context, axis.BatchSize,
	axis.Concurrency, axis.Threads}

// axes are the other axes that every engine may have, with the cell's values.
func (l Line) axes() (out [][2]string) {
	for _, f := range plan.Fields(nil) {
		if text := f.Of(l.Cell); text != "" && !slices.Contains(elsewhere, f.Name) {
			out = append(out, [2]string{f.Name, text})
		}
	}
	return out
}

// settings are the fields of the engine's section that are axes, without its version.
func (l Line) settings() map[string]string {
	out := maps.Clone(l.Settings)
	maps.DeleteFunc(out, func(name, _ string) bool { return l.of.Planned.Versions[name] != "" })
	return out
}

// MarshalJSON writes a cell under the names of plans. What is unknown or not requested is absent.
func (l Line) MarshalJSON() ([]byte, error) {
	in, out := l.lengths()
	always := map[string]any{"cell": l.ID, "setup": l.Setup, "engine": l.Engine, "model": l.Model.Name,
		"prompt": l.PromptID, "output_tokens": out, "requests": resolve.Requests(l.Cell), "at_once": l.atOnce(),
		"launches": resolve.Launches(l.of, l.Cell), "attempts": resolve.Attempts(l.of.Planned)}
	p := l.Prediction
	for name, n := range map[string]int64{"input_tokens": int64(in), "context": int64(l.context()),
		"threads": int64(l.of.Planned.Threads), "memory_bytes": p.Best, "memory_high_bytes": p.High} {
		if n != 0 {
			always[name] = n
		}
	}
	for name, text := range map[string]string{"oom_risk": string(p.Risk), "missing": l.why(engine.Refused),
		"unknown": l.why(engine.Unknown)} {
		if text != "" {
			always[name] = text
		}
	}
	for _, of := range l.axes() {
		always[of[0]] = of[1]
	}
	for name, version := range l.of.Planned.Versions {
		always[name] = version
	}
	if p.Seconds != nil {
		always["seconds"] = *p.Seconds
	}
	if set := l.settings(); len(set) > 0 {
		always["settings"] = set
	}
	return json.Marshal(always)
}

// JSON writes one document: the cells, a line each, then the summary.
func (r Run) JSON(to io.Writer) error {
	w := bufio.NewWriterSize(to, 1<<16)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	fmt.Fprintln(w, `{"cells_planned":[`)
	for i, c := range r.Lines {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		_ = e.Encode(c) // Flush reports the error
	}
	if text, err := json.Marshal(r.Summary); err == nil {
		fmt.Fprintf(w, "],%s\n", text[1:])
	}
	return w.Flush()
}

// Print prints a table with a line per cell, and the summary.
func (r Run) Print(to io.Writer) error {
	w := bufio.NewWriterSize(to, 1<<16)
	r.table(w)
	r.Summary.print(w)
	return w.Flush()
}

func (r Run) table(w io.Writer) {
	engines, model, how, form := 6, 5, 3, ""
	for _, l := range r.Lines {
		engines = max(engines, utf8.RuneCountInString(l.Engine))
		model = max(model, utf8.RuneCountInString(l.Model.Name))
		how = max(how, utf8.RuneCountInString(l.how()))
	}
	const most = 40 // a longer one, which stands behind all numbers, shifts no column
	// negative: aligned left
	for _, width := range []int{4, -engines, -model, 9, 6, 7, 10, 8, -min(how, most)} {
		form += fmt.Sprintf("%%%dv  ", width)
	}
	row := func(values ...any) {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf(form+"%v", values...), " "))
	}
	row("CELL", "ENGINE", "MODEL", "INPUT", "OUTPUT", "CONTEXT", "MEMORY", "TIME", "HOW", "")
	for _, l := range r.Lines {
		memory, time, prompt, note, p := "?", "?", "prompt "+strconv.Itoa(l.PromptID), "", l.Prediction
		in, out := l.lengths()
		if p.Best > 0 {
			memory = words.Size(p.Best)
		}
		if p.Seconds != nil {
			time = took(*p.Seconds)
		}
		if in > 0 {
			prompt = strconv.Itoa(in)
		}
		switch {
		case l.Verdict.Answer == engine.Refused:
			memory, time, note = "-", "-", "cannot run here"
		case p.Risk == record.RiskHigh:
			note = "predicted to run out of memory"
		case p.Risk == record.RiskMedium:
			note = p.Risk.Words()
		case l.Verdict.Answer == engine.Unknown:
			note = "unknown until launched"
		}
		row(l.ID, l.Engine, l.Model.Name, prompt, out, l.context(), memory, time, l.how(), note)
	}
}

func (sum Summary) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %s, %s. Nothing was launched.\n", sum.Name, words.Count(sum.Cells, "cell"),
		words.Count(sum.Setups, "start setting"))
	sum.times(w)
	if sum.MostB > 0 {
		fmt.Fprintf(w, "Memory: at most %s (predicted).\n",
			words.Size(sum.MostB))
	}
	for _, f := range sum.Fetches {
		size := "size unknown"
		if f.Bytes != nil {
			size = words.Size(*f.Bytes)
		}
		fmt.Fprintf(w, "To download: %s, %s\n", f.What, size)
	}
	if len(sum.Fetches) == 0 {
		fmt.Fprintln(w, "To download: nothing.")
	}
	if len(sum.Missing) == 0 {
		fmt.Fprintln(w, "Missing here: nothing found.")
	}
	for _, text := range sum.Missing {
		fmt.Fprintf(w, "! %s\n", text)
	}
	for _, text := range sum.Notes {
		fmt.Fprintf(w, "- %s\n", text)
	}
}

// before are the words before values of axes that have no need of their name.
var before = map[string]string{axis.DType: "", axis.KVDType: "KV ", axis.Start: ""}

// how describes what else is measured, and the load.
func (l Line) how() string {
	var out []string
	for _, of := range l.axes() {
		word, short := before[of[0]]
		if !short {
			word = of[0] + " "
		}
		out = append(out, word+of[1])
	}
	for _, key := range slices.Sorted(maps.Keys(l.Settings)) {
		out = append(out, key+" "+l.Settings[key])
	}
	requests, atOnce := resolve.Requests(l.Cell), l.atOnce()
	switch {
	case l.Traffic != nil && l.Traffic.Loop == record.OpenLoop && atOnce >= requests:
		out = append(out, strconv.Itoa(requests)+" requests, open loop")
	case requests > 1:
		out = append(out, strconv.Itoa(requests)+" requests, "+strconv.Itoa(atOnce)+" at once")
	}
	return strings.Join(out, " ")
}

func took(seconds float64) string {
	switch {
	case seconds >= 9.95 && seconds < 90:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 90:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 5400:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}
