// Package dryrun shows what a plan would do that was resolved: each cell with its memory and time, what would be
// fetched, and what is missing here. Memory and time are predictions, and no run has confirmed them.
package dryrun

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/model"
	"llmparity/internal/record"
	"llmparity/internal/resolve"
	"llmparity/internal/words"
)

// Cell is a cell of a plan that is not carried out.
type Cell struct {
	Cell        int    `json:"cell"` // its number in the record
	Setup       int    `json:"setup"`
	Engine      string `json:"engine"`
	Model       string `json:"model"`
	Prompt      int    `json:"prompt"` // its number in the plan
	InputTokens int    `json:"input_tokens,omitempty"`
	MaxTokens   int    `json:"output_tokens"`
	Requests    int    `json:"requests"`
	AtOnce      int    `json:"at_once"` // requests that are sent at a time, at the most
	Context     int    `json:"context,omitempty"`
	DType       string `json:"dtype,omitempty"`
	KVDType     string `json:"kv_cache_dtype,omitempty"`
	Start       string `json:"start,omitempty"`
	WebLLM      string `json:"webllm_version,omitempty"`
	Threads     int    `json:"threads,omitempty"`
	Launches    int    `json:"launches"` // of the engine
	Attempts    int    `json:"attempts"` // warm-up launches and repetitions
	// MemoryB is what the engine's processes are likely to take together, of RAM and of GPUs; absent: not predicted.
	MemoryB int64            `json:"memory_bytes,omitempty"`
	HighB   int64            `json:"memory_high_bytes,omitempty"`
	Risk    record.RiskLevel `json:"oom_risk,omitempty"`
	// by earlier runs of the engine with the model; absent: there are none
	Seconds *float64 `json:"seconds,omitempty"`
	Missing string   `json:"missing,omitempty"` // why it can't run here
	Unknown string   `json:"unknown,omitempty"` // why it is not known whether it can
	open    bool     // its requests come at their times
}

// Summary is what comes of all cells.
type Summary struct {
	Schema      string        `json:"schema"`
	Name        string        `json:"name"`
	Setups      int           `json:"setups"`
	Cells       int           `json:"cells"`
	CantRun     int           `json:"cells_that_cannot_run"`
	MayRun      int           `json:"cells_that_may_run"` // of which it is not known
	Seconds     *float64      `json:"seconds,omitempty"`  // of the cells of which it is known
	UnknownTime int           `json:"cells_of_unknown_time"`
	MostB       int64         `json:"most_memory_bytes,omitempty"`
	Fetches     []model.Fetch `json:"fetches"`
	Missing     []string      `json:"missing"`
	Notes       []string      `json:"notes"`
}

// Schema names the shape of a dry run as JSON.
const Schema = "llmparity.dry-run/1"

// Run is what a plan would do: its cells, and what comes of all.
type Run struct {
	Cells   []Cell
	Summary Summary
}

// Of is what a plan would do that was resolved; notes are what else a reader should know.
func Of(p *resolve.Plan, notes ...string) Run {
	out := Run{make([]Cell, len(p.Cells)), Summary{Schema: Schema, Name: p.Name, Setups: len(p.Setups),
		Cells: len(p.Cells), CantRun: p.Refused(), Fetches: append([]model.Fetch{}, p.Fetches...),
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

// cellOf is a cell for people and machines.
func cellOf(of *resolve.Cell) Cell {
	s, shape, p := of.Setup, of.Shape, &of.Setup.Planned
	c := Cell{Cell: of.ID, Setup: s.ID, Engine: of.Engine, Model: p.Model, Prompt: shape.PromptID,
		InputTokens: shape.InputTokens, MaxTokens: shape.MaxTokens, Requests: resolve.Requests(shape), AtOnce: 1,
		Context: max(s.Model.Context, p.Context, 0), DType: p.DType, KVDType: p.KVDType, Start: p.Start,
		WebLLM: p.Versions["webllm_version"], Threads: p.Threads, Attempts: resolve.Attempts(*p),
		Launches: resolve.Launches(s, shape),
		MemoryB:  of.Prediction.Best, HighB: of.Prediction.High, Risk: of.Prediction.Risk,
		Seconds: of.Prediction.Seconds}
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

// JSON writes one document: the cells first, a line each, for they are many.
func (r Run) JSON(to io.Writer) error {
	w := bufio.NewWriterSize(to, 1<<16)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	fmt.Fprintln(w, `{"cells_planned":[`)
	for i := range r.Cells {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		_ = e.Encode(&r.Cells[i]) // Flush tells
	}
	if text, err := json.Marshal(r.Summary); err == nil {
		fmt.Fprintf(w, "],%s\n", text[1:])
	}
	return w.Flush()
}

// widths are those of the table's columns, of which those below zero begin at the left.
var widths = []any{6, -16, -16, 9, 6, 7, -22, 10, 8}

// Print prints a table, a line a cell, and what comes of all.
func (r Run) Print(to io.Writer) error {
	w := bufio.NewWriterSize(to, 1<<16)
	r.table(w)
	r.Summary.print(w)
	return w.Flush()
}

func (r Run) table(w io.Writer) {
	form := ""
	for _, width := range widths {
		form += fmt.Sprintf("%%%dv  ", width)
	}
	row := func(values ...any) {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf(form+"%v", values...), " "))
	}
	row("CELL", "ENGINE", "MODEL", "INPUT", "OUTPUT", "CONTEXT", "HOW", "MEMORY", "TIME", "")
	for i := range r.Cells {
		c := &r.Cells[i]
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
			memory, time, note = "-", "-", "can't run here"
		case c.Risk == record.RiskHigh:
			note = "would run out of memory"
		case c.Unknown != "":
			note = "unknown"
		}
		row(c.Cell, c.Engine, c.Model, in, c.MaxTokens, c.Context, c.how(), memory, time, note)
	}
}

func (sum Summary) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %s in %s; nothing was launched.\n", sum.Name, words.Count(sum.Cells, "cell"),
		words.Count(sum.Setups, "setup"))
	switch {
	case sum.Seconds == nil:
		fmt.Fprintf(w, "Time: not known: the results folder has no earlier run of these engines with these models.\n")
	case sum.UnknownTime > 0:
		fmt.Fprintf(w, "Time: about %s, by earlier runs, and that of %s of which there is none.\n", took(*sum.Seconds),
			words.Count(sum.UnknownTime, "cell"))
	default:
		fmt.Fprintf(w, "Time: about %s, by earlier runs.\n", took(*sum.Seconds))
	}
	if sum.MostB > 0 {
		fmt.Fprintf(w, "Memory: %s at most, as far as it is predicted; an engine's processes together.\n",
			words.Size(sum.MostB))
	}
	for _, f := range sum.Fetches {
		size := "of a size that is not known without asking"
		if f.Bytes != nil {
			size = words.Size(*f.Bytes)
		}
		fmt.Fprintf(w, "To fetch: %s, %s\n", f.What, size)
	}
	if len(sum.Fetches) == 0 {
		fmt.Fprintln(w, "To fetch: nothing.")
	}
	if len(sum.Missing) == 0 {
		fmt.Fprintln(w, "Missing here: nothing that is known without launching.")
	}
	for _, text := range sum.Missing {
		fmt.Fprintf(w, "! %s\n", text)
	}
	for _, text := range sum.Notes {
		fmt.Fprintf(w, "- %s\n", text)
	}
}

// how is what else is said of a cell.
func (c *Cell) how() string {
	kv := c.KVDType
	if kv != "" {
		kv = "KV " + kv
	}
	out := slices.DeleteFunc([]string{c.DType, kv, c.Start}, func(text string) bool { return text == "" })
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
	case seconds < 90:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 5400:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}
