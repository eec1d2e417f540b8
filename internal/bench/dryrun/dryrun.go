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

	"llmparity/internal/bench/resolve"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// Cell is a planned cell.
type Cell struct {
	Cell        int    `json:"cell"` // number in the record
	Setup       int    `json:"setup"`
	Engine      string `json:"engine"`
	Model       string `json:"model"`
	Prompt      int    `json:"prompt"` // number in the plan
	InputTokens int    `json:"input_tokens,omitempty"`
	MaxTokens   int    `json:"output_tokens"`
	Requests    int    `json:"requests"`
	AtOnce      int    `json:"at_once"` // maximum of simultaneous requests
	Context     int    `json:"context,omitempty"`
	DType       string `json:"dtype,omitempty"`
	KVDType     string `json:"kv_cache_dtype,omitempty"`
	Start       string `json:"start,omitempty"`
	Weights     string `json:"weights,omitempty"` // form that is asked for; absent: as-is
	WebLLM      string `json:"webllm_version,omitempty"`
	Threads     int    `json:"threads,omitempty"`
	Launches    int    `json:"launches"`
	Attempts    int    `json:"attempts"` // warm-up launches and repetitions
	// MemoryB is the predicted memory of the engine's processes, RAM and GPUs; absent: not predicted.
	MemoryB int64            `json:"memory_bytes,omitempty"`
	HighB   int64            `json:"memory_high_bytes,omitempty"`
	Risk    record.RiskLevel `json:"oom_risk,omitempty"`
	// predicted from earlier runs of the engine with the model; absent: there are none
	Seconds *float64 `json:"seconds,omitempty"`
	Missing string   `json:"missing,omitempty"` // why it cannot run here
	Unknown string   `json:"unknown,omitempty"` // why it is unknown whether it can run
	// fields of the engine's section that are axes, with their values
	Settings map[string]string `json:"settings,omitempty"`
	open     bool              // open loop
}

// Summary is about all cells.
type Summary struct {
	Schema      string         `json:"schema"`
	Name        string         `json:"name"`
	Setups      int            `json:"setups"`
	Cells       int            `json:"cells"`
	CantRun     int            `json:"cells_that_cannot_run"`
	MayRun      int            `json:"cells_that_may_run"` // unknown
	Seconds     *float64       `json:"seconds,omitempty"`  // of cells whose time is known
	UnknownTime int            `json:"cells_of_unknown_time"`
	MostB       int64          `json:"most_memory_bytes,omitempty"`
	Fetches     []models.Fetch `json:"fetches"`
	Missing     []string       `json:"missing"`
	Notes       []string       `json:"notes"`
}

// Schema names the JSON format of a dry run.
const Schema = "llmparity.dry-run/1"

// Run is what a plan would do.
type Run struct {
	Cells   []*Cell
	Summary Summary
}

// Of returns what a resolved plan would do. notes are printed below.
func Of(p *resolve.Plan, notes ...string) Run {
	out := Run{make([]*Cell, len(p.Cells)), Summary{Schema: Schema, Name: p.Name, Setups: len(p.Setups),
		Cells: len(p.Cells), CantRun: p.Refused(), Fetches: append([]models.Fetch{}, p.Fetches...),
		Missing: append([]string{}, p.Lines()...), Notes: append([]string{}, notes...)}}
	sum, seconds := &out.Summary, 0.0
	for i := range out.Cells {
		c := cellOf(&p.Cells[i])
		if c.Unknown != "" {
			sum.MayRun++
		}
		if sum.MostB = max(sum.MostB, c.MemoryB); c.Seconds != nil {
			seconds += *c.Seconds
			sum.Seconds = &seconds
		} else if c.Missing == "" {
			sum.UnknownTime++
		}
		out.Cells[i] = c
	}
	return out
}

func cellOf(of *resolve.Cell) *Cell {
	s, shape, p := of.Setup, of.Shape, &of.Setup.Planned
	c := &Cell{Cell: of.ID, Setup: s.ID, Engine: of.Engine, Model: p.Model, Prompt: shape.PromptID,
		InputTokens: shape.InputTokens, MaxTokens: shape.MaxTokens, Requests: resolve.Requests(shape), AtOnce: 1,
		Context: max(s.Model.Context, p.Context, 0), DType: p.DType, KVDType: p.KVDType,
		Weights: p.WeightsOf(of.Engine), Start: p.Start,
		WebLLM: p.Versions["webllm_version"], Threads: p.Threads, Attempts: resolve.Attempts(*p),
		Launches: resolve.Launches(s, shape),
		MemoryB:  of.Prediction.Best, HighB: of.Prediction.High, Risk: of.Prediction.Risk,
		Seconds: of.Prediction.Seconds, Settings: s.Varied[of.Engine]}
	if t := shape.Traffic; t != nil {
		c.AtOnce, c.open = max(t.Concurrency, 1), t.Loop == record.OpenLoop
		if c.open && t.Concurrency == 0 {
			c.AtOnce = c.Requests
		}
		for _, k := range t.Mix {
			c.InputTokens, c.MaxTokens = max(c.InputTokens, k.InputTokens), max(c.MaxTokens, k.MaxTokens)
		}
	}
	if v := of.Verdict; v.Answer == engine.Refused {
		c.Missing = fault.OneLine(v.Reason.Error())
	} else if v.Answer == engine.Unknown {
		c.Unknown = fault.OneLine(v.Reason.Error())
	}
	return c
}

// JSON writes one document: the cells, a line each, then the summary.
func (r Run) JSON(to io.Writer) error {
	w := bufio.NewWriterSize(to, 1<<16)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	fmt.Fprintln(w, `{"cells_planned":[`)
	for i, c := range r.Cells {
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
	engine, model, how, form := 6, 5, 3, ""
	for _, c := range r.Cells {
		engine, model = max(engine, utf8.RuneCountInString(c.Engine)), max(model, utf8.RuneCountInString(c.Model))
		how = max(how, utf8.RuneCountInString(c.how()))
	}
	const most = 40 // a longer one, which stands behind all numbers, shifts no column
	// negative: aligned left
	for _, width := range []int{4, -engine, -model, 9, 6, 7, 10, 8, -min(how, most)} {
		form += fmt.Sprintf("%%%dv  ", width)
	}
	row := func(values ...any) {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf(form+"%v", values...), " "))
	}
	row("CELL", "ENGINE", "MODEL", "INPUT", "OUTPUT", "CONTEXT", "MEMORY", "TIME", "HOW", "")
	for _, c := range r.Cells {
		memory, time, in, note := "?", "?", "prompt "+strconv.Itoa(c.Prompt), ""
		if c.MemoryB > 0 {
			memory = words.Size(c.MemoryB)
		}
		if c.Seconds != nil {
			time = took(*c.Seconds)
		}
		if c.InputTokens > 0 {
			in = strconv.Itoa(c.InputTokens)
		}
		switch {
		case c.Missing != "":
			memory, time, note = "-", "-", "cannot run here"
		case c.Risk == record.RiskHigh:
			note = "predicted to run out of memory"
		case c.Risk == record.RiskMedium:
			note = c.Risk.Words()
		case c.Unknown != "":
			note = "unknown until launched"
		}
		row(c.Cell, c.Engine, c.Model, in, c.MaxTokens, c.Context, memory, time, c.how(), note)
	}
}

func (sum Summary) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %s, %s. Nothing was launched.\n", sum.Name, words.Count(sum.Cells, "cell"),
		words.Count(sum.Setups, "start setting"))
	switch {
	case sum.Seconds == nil:
		fmt.Fprintf(w, "Time: unknown, because the results folder has no run of these engines with these models.\n")
	case sum.UnknownTime > 0:
		fmt.Fprintf(w, "Time: roughly %s, judging by earlier runs, plus %s whose time is unknown.\n", took(*sum.Seconds),
			words.Count(sum.UnknownTime, "cell"))
	default:
		fmt.Fprintf(w, "Time: roughly %s, judging by earlier runs. Different outputs are scored after that.\n", took(*sum.Seconds))
	}
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

// how describes dtypes, start and load of a cell.
func (c *Cell) how() string {
	var out []string
	for _, part := range [][2]string{{"", c.DType}, {"KV ", c.KVDType}, {"weights ", c.Weights}, {"", c.Start}} {
		if part[1] != "" {
			out = append(out, part[0]+part[1])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Settings)) {
		out = append(out, key+" "+c.Settings[key])
	}
	switch {
	case c.open && c.AtOnce >= c.Requests:
		out = append(out, strconv.Itoa(c.Requests)+" requests, open loop")
	case c.Requests > 1:
		out = append(out, strconv.Itoa(c.Requests)+" requests, "+strconv.Itoa(c.AtOnce)+" at once")
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
