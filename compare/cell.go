package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/growth"
	"llmparity/compare/hardware"
	"llmparity/compare/memory"
	"llmparity/compare/parity"
	"llmparity/compare/timing"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// Cell is a point of a plan with what was measured there.
type Cell struct {
	// Label is unique in the result: what differs between cells, or a side of an interleaved run.
	Label string `json:"label"`
	Run   int    `json:"run"` // index into Runs
	evidence.Setup
	// With is what the engine ran with, in a few words: versions, model library, dtypes. No figure means anything
	// without it.
	With string `json:"with,omitempty"`

	Launches evidence.Counts `json:"launches"`
	Failures []Failure       `json:"failures"`
	// Representative is the attempt whose peak memory is closest to the median, among those with the most readings;
	// 0: no launch counts. Memory by component and over time is that of this attempt.
	Representative int `json:"representative_attempt,omitempty"`

	// why its repetitions ended; nil: their number was planned
	Stop     *record.Stop        `json:"stop,omitempty"`
	Figures  []evidence.Figure   `json:"figures"`
	Load     *timing.Load        `json:"load,omitempty"` // of concurrent requests; nil: single requests
	Reported []evidence.Figure   `json:"reported"`
	Server   []evidence.Figure   `json:"server,omitempty"`   // what a server reports of itself during requests
	CPU      []timing.CPU        `json:"cpu_time,omitempty"` // CPU time by kind of process; nil: not read
	Hardware []hardware.Hardware `json:"hardware,omitempty"` // GPUs and energy; nil: not read
	Sampler  []evidence.Figure   `json:"sampler"`
	Memory   *memory.Breakdown   `json:"memory,omitempty"`           // nil: no source within the engine
	Parts    *memory.Parts       `json:"memory_breakdown,omitempty"` // nil: no launch counts
	// OverTokens is memory over generated tokens, and Growth its growth per token; nil: no counted launch has tokens.
	OverTokens    *growth.OverTokens    `json:"over_tokens,omitempty"`
	Growth        *growth.Growth        `json:"kv_growth,omitempty"`
	Distributions []timing.Distribution `json:"distributions,omitempty"` // of latencies
	// Prediction is its predicted memory, compared with what was measured; nil without one.
	Prediction *memory.Prediction `json:"forecast,omitempty"`
	Risk       *record.Risk       `json:"risk,omitempty"` // whether its memory was predicted to fit; nil: not predicted
	// Refused is why it was not launched; empty: it was not refused.
	Refused string            `json:"refused,omitempty"`
	Self    parity.SelfParity `json:"self_parity"`
	// Scores compares its score check with the reference implementation's; nil: that did not compute its weights.
	Scores  *parity.Check   `json:"scores,omitempty"`
	Quality *parity.Quality `json:"quality,omitempty"` // how well it predicts a given text; nil: it scored none

	title          string // the engine's name for people
	all, counted   []*record.Attempt
	scored         *parity.Scored  // nil: it scored no text
	checked        *parity.Checked // its score check; nil: none
	anchor         *parity.Checked // the reference implementation's; nil: none
	unknownPrefill bool            // a prompt may have come from a cache that does not report its hits
	// percent of processor time that a hypervisor gave to other guests, by launch; nil: unknown
	stolen     []float64
	footprint  *memory.Footprint
	reported   []string // axes along which the label has what the engine reports
	spins      string   // how spinning threads inflate its CPU time; empty: they do not
	inconstant string   // how its launches differ in what they ran with; empty: they do not
}

// Failure is an attempt that failed or was interrupted.
type Failure struct {
	Attempt    int           `json:"attempt"`
	Repetition int           `json:"repetition"`
	Status     record.Status `json:"status"`
	Class      record.Class  `json:"class,omitempty"`
	Error      string        `json:"error,omitempty"`
}

// newCell computes a cell of a run from its attempts.
func newCell(at int, run *record.Run, spec record.Cell) *Cell {
	c := &Cell{Run: at, Setup: evidence.Setup{Spec: spec}, Failures: []Failure{}, scored: parity.ScoredBy(run, spec.ID),
		checked: parity.CheckedBy(run, spec), anchor: parity.AnchorOf(run, spec)}
	c.Launches.Planned = spec.Repetitions
	for _, a := range run.Attempts {
		if a.Cell == spec.ID {
			c.count(a)
		}
	}
	if evidence.Rejoined(c.counted) {
		c.Launches.Opened = len(evidence.Launches(c.counted))
	}
	c.identify()
	c.Self = parity.WithItself(c.counted, spec.Temperature)
	c.Quality = parity.QualityOf(run, spec)
	c.unknownPrefill = len(timing.UnknownPrefills(spec, c.counted)) > 0
	cpu, byProcess := timing.CPUTime(spec, c.counted)
	c.CPU = byProcess
	c.Figures = evidence.Summarised(slices.Concat(memory.Figures(c.counted), memory.VRAM(c.counted),
		timing.Figures(spec, c.counted), cpu))
	if len(c.counted) == 0 {
		for i := range c.Figures {
			c.Figures[i].Absent, c.Figures[i].Lacks = "no launch counts", 0
		}
	}
	c.Load = timing.Together(spec, c.counted)
	c.Reported = evidence.Summarised(timing.Reported(c.counted))
	c.Server = evidence.Summarised(timing.Server(c.counted))
	c.Sampler = evidence.Summarised(timing.Sampler(c.counted))
	c.footprint = memory.Of(c.Setup, c.counted, c.Figures, c.Server)
	c.Memory, c.Parts = c.footprint.Breakdown, c.footprint.Parts
	c.Representative = c.footprint.Shown.Launch
	c.Hardware = hardware.Read(c.counted, run.Environment.GPUs)
	c.OverTokens, c.Growth = growth.Within(c.footprint, run)
	c.Distributions = timing.Distributions(spec, c.counted)
	c.stolen = stolenShares(c.counted, run.Environment.Cores)
	c.spins = c.spinning(run.Environment)
	c.refusedOrPredicted(run)
	c.stopped(run.Stops[spec.ID])
	evidence.Watch(c.Figures, explain.Busy(run))
	return c
}

// count counts an attempt by its status.
func (c *Cell) count(a *record.Attempt) {
	c.all = append(c.all, a)
	switch {
	case a.Counted():
		c.Launches.Counted++
		c.counted = append(c.counted, a)
		return
	case a.Status == record.OK:
		c.Launches.Warmup++
		return
	case a.Status == record.Refused:
		return
	case a.Status == record.Failed:
		c.Launches.Failed++
	default:
		c.Launches.Interrupted++
	}
	c.Failures = append(c.Failures, Failure{a.ID, a.Repetition, a.Status, a.Class, a.Error})
}

// identify finds engine and device in the counted attempts, or in all if none counts.
func (c *Cell) identify() {
	attempts := c.counted
	if len(attempts) == 0 {
		attempts = c.all
	}
	for _, a := range attempts {
		if d, ok := a.Device(); ok {
			if c.Device == nil {
				c.Device = &d
			}
			c.inconsistent("device", deviceWords(c.Device), deviceWords(&d))
		}
		c.takeRan(a.Ran())
		now := lastReported(a)
		if c.Engine == nil {
			c.Engine = now
		} else if now != nil {
			c.inconsistent("version", c.Engine.Version, now.Version)
			was, is := c.Engine.Identity(), now.Identity()
			for _, part := range slices.Sorted(maps.Keys(is)) {
				c.inconsistent(strings.ReplaceAll(part, "_", " "), was[part], is[part])
			}
		}
	}
}

// takeRan keeps what the first launch asked for and got, and what any launch missed.
func (c *Cell) takeRan(rows []ran.Row) {
	for _, r := range rows {
		at := slices.IndexFunc(c.Ran, func(o ran.Row) bool { return o.What == r.What })
		switch {
		case at < 0:
			c.Ran = append(c.Ran, r)
		case r.Missed && !c.Ran[at].Missed:
			c.Ran[at] = r
		}
	}
}

// inconsistent keeps the first difference between launches.
func (c *Cell) inconsistent(what, was, is string) {
	if was != is && c.inconstant == "" {
		c.inconstant = fmt.Sprintf("%s was %q in one launch and %q in another", what, was, is)
	}
}

func deviceWords(d *record.Device) string {
	class := cmp.Or(deviceTitles[d.Class], string(d.Class))
	if d.Name != "" {
		return fmt.Sprintf("%s (%s)", class, d.Name)
	}
	return class
}

var deviceTitles = map[record.DeviceClass]string{record.SoftwareAdapter: "a software adapter", record.CPU: "the CPU",
	record.GPU: "a GPU", record.VirtualGPU: "a virtual GPU", record.OpenGLAdapter: "WebGPU on OpenGL"}

// lastReported returns the engine's most complete description: it says more once it has a model.
func lastReported(a *record.Attempt) *record.EngineInfo {
	var out *record.EngineInfo
	for _, e := range a.Events {
		if e.Engine != nil && (out == nil || len(e.Engine.Identity())+len(e.Engine.Policy) >=
			len(out.Identity())+len(out.Policy)) {
			out = e.Engine
		}
	}
	return out
}

// stolenShares is the processor time that a hypervisor gave to other guests, in percent of each launch; nil if unknown.
func stolenShares(counted []*record.Attempt, cores int) []float64 {
	var out []float64
	for _, a := range counted {
		took := float64(a.EndNS-a.BeginNS) / 1e9 * float64(cores)
		if a.StolenS == nil || took <= 0 {
			return nil
		}
		out = append(out, 100**a.StolenS/took)
	}
	return out
}

// spinning says if an engine has more threads than cores are free. Those that wait for the others then spin, which is
// CPU time, but no work. WebAssembly and software GPUs put such threads to sleep.
func (c *Cell) spinning(e record.Environment) string {
	threads, err := strconv.Atoi(c.Policy("threads"))
	if err != nil || threads < 2 || e.Cores == 0 || c.Browser() != "" || !c.Figure(figure.TokenCPU).Known() {
		return ""
	}
	free := float64(e.Cores)
	if b := e.Background; b != nil {
		free = math.Round(max(0, free-b.Cores-b.Stolen))
	}
	if float64(threads) <= free {
		return ""
	}
	return explain.Spinning.With(threads, free, e.Cores).Text
}

// Figure returns a figure by its name; if there is none, an empty figure that says so.
func (c *Cell) Figure(name string) evidence.Figure {
	f := evidence.Find(c.Figures, name)
	if f.Title == "" {
		f = evidence.Find(c.Sampler, name)
	}
	if f.Title == "" && c.Load != nil {
		f = evidence.Find(c.Load.Figures, name)
	}
	return f
}

// refusedOrPredicted adds the risk and the prediction that were recorded before the first launch, and why the cell was
// refused: by the risk, or by each of its attempts.
func (c *Cell) refusedOrPredicted(run *record.Run) {
	refused := func(a *record.Attempt) bool { return a.Status == record.Refused }
	if n := len(c.all); n > 0 && !slices.ContainsFunc(c.all, func(a *record.Attempt) bool { return !refused(a) }) &&
		c.all[n-1].Error != "" {
		c.refuse(c.all[n-1].Error)
	}
	if risk, ok := run.Risks[c.Spec.ID]; ok {
		c.Risk = &risk
		if risk.Refused && len(c.all) == 0 {
			c.refuse(strings.TrimSuffix("would not fit: "+strings.Join(risk.Reasons, "; "), ": "))
		}
	}
	if p, ok := run.Predictions[c.Spec.ID]; ok {
		c.Prediction = c.footprint.ComparePrediction(p)
	}
}

// refuse marks a cell and all its figures as refused.
func (c *Cell) refuse(why string) {
	c.Refused = why
	for _, list := range [][]evidence.Figure{c.Figures, c.Sampler} {
		for i := range list {
			list[i].Absent, list[i].Lacks = "refused", evidence.Refused
		}
	}
}

// stopped widens the intervals of a cell that was repeated until a figure was precise enough. Each look could end the
// repetitions by chance, so the error is divided among looks, and the last interval holds at the usual level. Memory by
// component and reported figures keep the usual intervals.
func (c *Cell) stopped(s record.Stop) {
	if s.Looks < 1 || !(s.Confidence > 0 && s.Confidence < 1) {
		return
	}
	c.Stop = &s
	lists := [][]evidence.Figure{c.Figures}
	if c.Load != nil {
		lists = append(lists, c.Load.Figures)
		for _, k := range c.Load.Kinds {
			lists = append(lists, k.Figures)
		}
	}
	for _, figures := range lists {
		for i := range figures {
			figures[i].Widen(s)
		}
	}
}

// Title is the engine's name for people, or else in records.
func (c *Cell) Title() string { return cmp.Or(c.title, c.Spec.Engine) }

// Footprint returns the memory, with what other programs share of it.
func (c *Cell) Footprint() *memory.Footprint { return c.footprint }

// Shown are the sizes of the launch whose memory by component is shown.
func (c *Cell) Shown() memory.Shown {
	if c.footprint == nil {
		return memory.Shown{}
	}
	return c.footprint.Shown
}

// ShownLaunch is the number of that launch in charts of memory over time; empty: no launch counts.
func (c *Cell) ShownLaunch() string {
	for n, l := range evidence.Launches(c.counted) {
		switch {
		case l.ID != c.Shown().Launch:
		case evidence.Rejoined(c.counted): // repetitions are numbered, and several are in one launch
			return fmt.Sprint(n + 1)
		default:
			return fmt.Sprint(l.Opener.Repetition)
		}
	}
	return ""
}

// Named returns a figure or a component of the memory by its name; if there is none, an empty figure that says so.
func (c *Cell) Named(name string) evidence.Figure {
	f := c.Figure(name)
	if f.Title == "" && !f.Known() {
		if part := c.Parts.Component(name); part.Known() {
			return part.Figure
		}
	}
	return f
}

// LaunchName says which of the counted launches an attempt is: "launch 3 of 6". The journal numbers attempts, among
// them warm-ups, repeated starts and those of other cells.
func (c *Cell) LaunchName(attempt int) string {
	at := slices.IndexFunc(c.counted, func(a *record.Attempt) bool { return a.ID == attempt })
	return fmt.Sprintf("%s %d of %d", c.Repeated(), at+1, len(c.counted))
}

// BetweenPieces reports whether the cell's latencies are between pieces of text, which are not a token each.
func (c *Cell) BetweenPieces() bool { return evidence.Uncounted(c.Spec, c.counted) }

// UnjudgedCPU says why no gate judges the CPU time of a cell; empty: one may.
func (c *Cell) UnjudgedCPU() string {
	switch {
	case c.Device == nil || c.Device.Class != record.CPU && c.Device.Class != record.SoftwareAdapter:
		return "CPU time is judged only where the engine computes on the CPU"
	case c.spins != "":
		return c.spins
	}
	return ""
}
