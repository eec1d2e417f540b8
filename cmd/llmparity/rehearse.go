package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/estimate"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
)

// plannedCell is a cell of a plan that is not carried out.
type plannedCell struct {
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
	// MemoryB is what the engine's processes are likely to take together, of RAM and of GPUs; absent: not foretold.
	MemoryB int64            `json:"memory_bytes,omitempty"`
	LowB    int64            `json:"memory_low_bytes,omitempty"`
	HighB   int64            `json:"memory_high_bytes,omitempty"`
	Risk    record.RiskLevel `json:"oom_risk,omitempty"`
	// by earlier runs of the engine with the model; absent: there are none
	Seconds *float64 `json:"seconds,omitempty"`
	Missing string   `json:"missing,omitempty"` // why it can't run here
	open    bool     // its requests come at their times
}

// rehearsal is what a plan would do.
type rehearsal struct {
	Schema  string    `json:"schema"`
	Name    string    `json:"name"`
	Setups  int64     `json:"setups"`
	Cells   int64     `json:"cells"`
	CantRun int64     `json:"cells_that_cannot_run"`
	Seconds *float64  `json:"seconds,omitempty"` // of the cells of which it is known
	Unknown int64     `json:"cells_of_unknown_time"`
	MostB   int64     `json:"most_memory_bytes,omitempty"`
	Fetches []fetched `json:"fetches"`
	Missing []string  `json:"missing"`
	Notes   []string  `json:"notes"`
}

const rehearsalSchema = "llmparity.dry-run/1"

// fetched is what would be fetched before anything is launched.
type fetched struct {
	What  string `json:"what"`
	Bytes *int64 `json:"bytes,omitempty"` // absent: not known without asking
}

// rehearsing is a plan that is gone through.
type rehearsing struct {
	*resolver
	ctx      context.Context
	out      rehearsal
	refused  *refusals
	past     history
	seconds  float64
	timed    int64
	opened   map[string]openedModel
	foretold map[foretoldKey]forecast
	rooms    map[string]estimate.Room
	gpus     map[*browser.WebLLM]bool // whether the adapter is one
	cell     int
}

// openedModel is a model as estimates know it.
type openedModel struct {
	model estimate.Model
	err   error
}

// foretoldKey is what an estimate goes by.
type foretoldKey struct {
	engine, path, dtype, kv string
	listed                  string // the id of a model that is not fetched, which has no path
	context, slots          int
	in, out                 int
	onGPU                   bool
}

type forecast struct {
	best, high int64
	risk       record.RiskLevel
}

// rehearse goes through a plan, and launches nothing.
func (f *runFlags) rehearse(ctx context.Context, p plan.Plan, stdout io.Writer) error {
	w := bufio.NewWriterSize(stdout, 1<<16)
	r := &rehearsing{resolver: newResolver(f, func(string, string) {}, io.Discard), ctx: ctx, refused: newRefusals(),
		past:   pastRuns(f.out),
		opened: map[string]openedModel{}, foretold: map[foretoldKey]forecast{}, gpus: map[*browser.WebLLM]bool{}}
	r.dry = true
	setups, cells, err := p.Count()
	if err != nil {
		return fault.Wrap(fault.Usage, err, "", "the plan")
	}
	r.out = rehearsal{Schema: rehearsalSchema, Name: p.Name, Setups: setups, Cells: cells, Fetches: []fetched{},
		Missing: []string{}, Notes: []string{}}
	if f.left != "" {
		r.notes = append(r.notes, f.left)
	}
	show := tableOf(w)
	if f.json {
		show = jsonOf(w)
	}
	show.head()
	for s := range p.Setups() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.setup(s, show.row)
	}
	r.sum()
	show.foot(r.out)
	return w.Flush()
}

// setup shows a setup's cells, in the order in which the record will have them.
func (r *rehearsing) setup(s plan.Setup, row func(*plannedCell)) {
	names := s.Plan.Engines
	set, m, err := r.settleOnce(r.ctx, &s)
	faults := make([]error, len(names))
	unheeded(s.Plan, r.refused)
	s.Shapes = slices.Clone(s.Shapes) // other setups' are the same
	for i := range s.Shapes {
		err = cmp.Or(err, r.sourced(&s.Shapes[i])) // a plan whose files are not there is not begun
	}
	for i, name := range names {
		faults[i] = cmp.Or(unserved(s.Plan, name), err)
		if faults[i] == nil {
			faults[i] = r.engineFaultOnce(r.ctx, s, set, m, i)
		}
	}
	for i := range s.Shapes {
		shape := &s.Shapes[i]
		for j, name := range names {
			if !shape.Asks(name) {
				continue
			}
			why := faults[j]
			if why == nil {
				why = r.shapeFault(m, name, *shape)
			}
			if why == nil {
				queues(r.refused, set.engines[j], *shape)
			}
			r.refused.add(name, 1, why)
			r.cell++
			c := r.planned(&s, shape, name, m)
			if why != nil {
				c.Missing = fault.OneLine(why.Error())
			} else {
				r.foretell(&c, set.engines[j], name, m, s.Plan, shape)
			}
			row(&c)
		}
	}
}

// planned is a cell without what is foretold of it.
func (r *rehearsing) planned(s *plan.Setup, shape *plan.Shape, name string, m engine.Model) plannedCell {
	p := &s.Plan
	c := plannedCell{Cell: r.cell, Setup: s.ID, Engine: name, Model: p.Model, Prompt: shape.PromptID,
		InputTokens: shape.InputTokens,
		MaxTokens:   shape.MaxTokens, Requests: 1, AtOnce: 1, Context: max(m.Context, p.Context, 0), DType: p.DType,
		KVDType: p.KVDType, Start: p.Start,
		WebLLM: p.WebLLMVersion, Threads: p.Threads, Attempts: p.Warmup.Launches + p.Repetitions}
	if t := shape.Traffic; t != nil {
		c.Requests, c.AtOnce, c.open = max(t.Requests, 1), max(t.Concurrency, 1), t.Loop == record.OpenLoop
		if c.open && t.Concurrency == 0 {
			c.AtOnce = c.Requests
		}
		for _, k := range t.Mix {
			c.InputTokens, c.MaxTokens = max(c.InputTokens, k.InputTokens), max(c.MaxTokens, k.MaxTokens)
		}
	}
	c.Launches = c.Attempts
	switch p.Isolation {
	case plan.Reused:
		c.Launches = p.Warmup.Launches + 1
	case plan.Shared:
		c.Launches = p.Warmup.Launches
		if shape == &s.Shapes[0] {
			c.Launches++
		}
	}
	return c
}

// foretell adds what is known of a cell's memory and time.
func (r *rehearsing) foretell(c *plannedCell, e engine.Engine, name string, m engine.Model, p plan.Plan,
	shape *plan.Shape) {
	in := c.InputTokens
	if in == 0 {
		in = max(len(shape.Prompt)/4, 1) // near enough for what a token takes
	}
	if past := (pastKey{name, m.Name}); r.past[past] != nil {
		prompt, generated := r.tokens(c, shape, in)
		if seconds, known := r.past.of(past, c.Launches, c.Attempts*prompt, c.Attempts*generated); known {
			c.Seconds = &seconds
			r.seconds, r.timed = r.seconds+seconds, r.timed+1
		}
	}
	key := foretoldKey{engine: name, path: m.Path, dtype: p.DType, kv: p.KVDType, context: m.Context,
		slots: max(p.Slots, 1), in: in, out: c.MaxTokens}
	if m.Path == "" && listedModel(p.Model) {
		key.listed = p.Model
	}
	if w, ok := e.(*browser.WebLLM); ok {
		key.slots, key.onGPU = 1, r.onGPU(w) // it does one request at a time, whatever is sent
	}
	f, known := r.foretold[key]
	if !known {
		f = r.estimate(key)
		r.foretold[key] = f
	}
	c.MemoryB, c.HighB, c.Risk = f.best, f.high, f.risk
	r.out.MostB = max(r.out.MostB, f.best)
}

// onGPU looks for a GPU once an engine: a plan may have very many cells.
func (r *rehearsing) onGPU(w *browser.WebLLM) bool {
	on, known := r.gpus[w]
	if !known {
		on = !w.Software()
		r.gpus[w] = on
	}
	return on
}

// tokens are how many the prompts of an attempt's requests have together, and how many they generate.
func (r *rehearsing) tokens(c *plannedCell, shape *plan.Shape, in int) (prompt, generated int) {
	asked, err := r.questions(*shape)
	if err != nil || len(asked) < 2 || shape.Traffic == nil {
		return c.Requests * in, c.Requests * c.MaxTokens
	}
	shares, all := make([]float64, len(asked)), 0.0
	for i := range asked {
		shares[i] = 1
		if mix := shape.Traffic.Mix; len(mix) > 0 && mix[i].Share > 0 {
			shares[i] = mix[i].Share
		}
		all += shares[i]
	}
	for i, q := range asked {
		part := float64(c.Requests) * shares[i] / all
		if q.in == 0 {
			q.in = max(len(q.prompt)/4, 1)
		}
		prompt, generated = prompt+int(math.Round(part*float64(q.in))), generated+int(math.Round(part*float64(q.out)))
	}
	return prompt, generated
}

// read reads a model's file, or of one of the catalogue what is at hand of it.
func (r *rehearsing) read(k foretoldKey) openedModel {
	key := cmp.Or(k.path, k.listed)
	m, ok := r.opened[key]
	switch {
	case ok:
		return m
	case k.path != "":
		m.model, m.err = estimate.Open(k.path)
	default:
		m.model, _, m.err = catalogueModel(r.ctx, k.listed, r.flags.mirror)
	}
	r.opened[key] = m
	return m
}

// estimate predicts by the model's file, or by the catalogue, alone: nothing is prepared.
func (r *rehearsing) estimate(k foretoldKey) (f forecast) {
	of := map[string]string{"webllm": estimate.WebLLM, "llamacpp": estimate.LlamaCPP,
		"llamacpp-oneshot": estimate.LlamaCPP, "ollama": estimate.Ollama}[k.engine]
	if of == "" || k.path == "" && k.listed == "" {
		return f
	}
	m := r.read(k)
	if m.err != nil {
		return f
	}
	s := estimate.Setup{Engine: of, Context: k.context, InputLen: min(k.in, max(k.context-k.out, 1)),
		OutputLen: max(k.out-1, 0), Concurrency: k.slots,
		KVDType: k.kv, Repacks: estimate.Repacks()}
	if of == estimate.WebLLM {
		s.DType, s.PrefillChunk, s.Concurrency, s.Repacks, s.OnGPU = k.dtype, min(prefillChunk, k.context), 1, nil,
			k.onGPU
		if m.model.Source != "gguf" { // a package has its own
			s.DType, s.PrefillChunk = "", 0
		}
	} else if of == estimate.LlamaCPP && k.kv == "" {
		s.KVDType, s.NoFlash = cmp.Or(k.dtype, f32), true
	}
	e, err := estimate.Of(m.model, s)
	if err != nil {
		return f
	}
	if r.rooms == nil {
		var gpus *gpu.Monitor
		if !browser.Auto.Software() {
			gpus = gpu.Open(r.ctx, gpu.Options{})
			defer gpus.Close()
		}
		r.rooms = here(r.ctx, e, gpus)
	}
	r.rooms[estimate.Buffer] = largestBuffer(k.onGPU)
	f.risk = e.Risk(r.rooms).Level
	for _, n := range e.Needs() {
		if n.Place == estimate.RAM || n.Place == estimate.VRAM {
			f.best, f.high = f.best+n.Best, f.high+n.High
		}
	}
	return f
}

// sum completes the summary.
func (r *rehearsing) sum() {
	o := &r.out
	o.CantRun, o.Missing, o.Notes = r.refused.refused, append(o.Missing, r.refused.lines()...),
		append(o.Notes, r.notes...)
	if r.timed > 0 {
		o.Seconds = &r.seconds
	}
	o.Unknown = o.Cells - o.CantRun - r.timed
	o.Fetches = append(o.Fetches, r.fetches...)
}

// shower shows a rehearsal as it goes on.
type shower struct {
	head func()
	row  func(*plannedCell)
	foot func(rehearsal)
}

// jsonOf writes one document: the cells first, for they are many.
func jsonOf(w io.Writer) shower {
	e, first := json.NewEncoder(w), true
	e.SetEscapeHTML(false)
	return shower{
		head: func() { fmt.Fprintln(w, `{"cells_planned":[`) },
		row: func(c *plannedCell) {
			if !first {
				fmt.Fprint(w, ",")
			}
			first = false
			_ = e.Encode(c) // Flush tells
		},
		foot: func(r rehearsal) {
			text, err := json.Marshal(r)
			if err == nil {
				fmt.Fprintf(w, "],%s\n", text[1:])
			}
		},
	}
}

// tableOf writes a table, a line a cell, whose columns are as wide as what stands in them mostly is.
func tableOf(w *bufio.Writer) shower {
	line := []byte{}
	pad := func(text string, width int, right bool) {
		if right {
			line = append(line, strings.Repeat(" ", max(width-len(text), 0))...)
		}
		line = append(line, text...)
		if !right {
			line = append(line, strings.Repeat(" ", max(width-len(text), 0))...)
		}
		line = append(line, ' ', ' ')
	}
	write := func(cells ...string) {
		line = line[:0]
		for i, text := range cells {
			pad(text, widths[i], i != 1 && i != 2 && i != 6 && i != 9)
		}
		_, _ = w.WriteString(strings.TrimRight(string(line), " ") + "\n") // Flush tells
	}
	return shower{
		head: func() { write("CELL", "ENGINE", "MODEL", "INPUT", "OUTPUT", "CONTEXT", "HOW", "MEMORY", "TIME", "") },
		row: func(c *plannedCell) {
			memory, time, in := "?", "?", "prompt "+strconv.Itoa(c.Prompt)
			if c.MemoryB > 0 {
				memory = mebi(c.MemoryB)
			}
			if c.Seconds != nil {
				time = took(*c.Seconds)
			}
			if c.InputTokens > 0 {
				in = strconv.Itoa(c.InputTokens)
			}
			note := ""
			switch {
			case c.Missing != "":
				memory, time, note = "-", "-", "can't run here"
			case c.Risk == record.RiskHigh:
				note = "would run out of memory"
			}
			write(strconv.Itoa(c.Cell), c.Engine, c.Model, in, strconv.Itoa(c.MaxTokens), strconv.Itoa(c.Context),
				c.how(), memory, time, note)
		},
		foot: func(r rehearsal) { printRehearsal(w, r) },
	}
}

var widths = []int{6, 16, 16, 9, 6, 7, 22, 10, 8, 0}

// how is what else is said of a cell.
func (c *plannedCell) how() string {
	var out []string
	for _, text := range []string{c.DType, c.KVDType, c.Start} {
		if text != "" {
			out = append(out, text)
		}
	}
	if c.KVDType != "" {
		out[slices.Index(out, c.KVDType)] = "KV " + c.KVDType
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
	case seconds < 90:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 5400:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}

func printRehearsal(w io.Writer, r rehearsal) {
	fmt.Fprintf(w, "\n%s: %s in %s; nothing was launched.\n", r.Name, plural(int(r.Cells), "cell"),
		plural(int(r.Setups), "setup"))
	switch {
	case r.Seconds == nil:
		fmt.Fprintf(w, "Time: not known: the results folder has no earlier run of these engines with these models.\n")
	case r.Unknown > 0:
		fmt.Fprintf(w, "Time: about %s, by earlier runs, and that of %s of which there is none.\n", took(*r.Seconds),
			plural(int(r.Unknown), "cell"))
	default:
		fmt.Fprintf(w, "Time: about %s, by earlier runs.\n", took(*r.Seconds))
	}
	if r.MostB > 0 {
		fmt.Fprintf(w, "Memory: %s at most, as far as it is predicted; an engine's processes together.\n",
			mebi(r.MostB))
	}
	for _, f := range r.Fetches {
		size := "of a size that is not known without asking"
		if f.Bytes != nil {
			size = mebi(*f.Bytes)
		}
		fmt.Fprintf(w, "To fetch: %s, %s\n", f.What, size)
	}
	if len(r.Fetches) == 0 {
		fmt.Fprintln(w, "To fetch: nothing.")
	}
	if len(r.Missing) == 0 {
		fmt.Fprintln(w, "Missing here: nothing that is known without launching.")
	}
	for _, text := range r.Missing {
		fmt.Fprintf(w, "! %s\n", text)
	}
	for _, text := range r.Notes {
		fmt.Fprintf(w, "- %s\n", text)
	}
}
