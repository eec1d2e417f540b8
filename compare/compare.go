// Package compare turns records into a Result: figures over launches, parity token by token, ratios of comparable
// cells, and warnings. It only reads records, so a run can be judged years later on another machine, and the same
// records always give the same Result.
//
// The launch is the unit of repetition: requests within one launch are not independent, so their median counts once.
// No distribution is assumed: medians, order-statistic intervals, Mann-Whitney. Launches that failed, were interrupted
// or only warmed up are shown, and enter no statistic. Package axis says which cells are compared; a ratio also needs
// the same class of device, or is marked.
//
// Tests that answer one question are a family: does run B differ from run A (or one engine from another) in any figure
// of any pair of cells, or in a mean over them? Holm's correction keeps false differences to at most 1 family of equals
// in 20. Peak memory, time to first token and decode weigh eight times as much as other figures, six times with six
// launches a side. Figures that order the launches alike, such as a peak and an increase over nothing, are one test. A
// significant difference below the minimum effect does not matter. Intervals of medians are order statistics. Those of
// ratios and changes are exact bootstrap percentiles over launches; means over cells use a seeded bootstrap. Fewer than
// six launches a side have no interval.
//
// It cannot explain why engines differ. Margins of tokens are known only where engines scored a text.
package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/growth"
	"llmparity/compare/hardware"
	"llmparity/compare/memory"
	"llmparity/compare/parity"
	"llmparity/compare/ratio"
	"llmparity/compare/settings"
	"llmparity/compare/ship"
	"llmparity/compare/timing"
	"llmparity/internal/gates"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Result is what every renderer shows. It is plain data; figures that are not known are absent, so that it always
// marshals.
type Result struct {
	Comparability []string           `json:"comparability"` // what may be compared with what: the texts of Reasons
	Reasons       []Reason           `json:"comparability_reasons"`
	Settings      *settings.Table    `json:"settings,omitempty"` // what engines report; nil: nothing
	Runs          []Run              `json:"runs"`
	Cells         []*Cell            `json:"cells"`
	Parity        []parity.Parity    `json:"parity"`
	Matrices      []parity.Matrix    `json:"parity_matrices"` // the same pairs, a table a prompt
	Comparisons   []Comparison       `json:"comparisons"`
	Families      []ratio.Family     `json:"families"`         // of comparisons
	Groups        []Group            `json:"groups,omitempty"` // of cells, where they are asked for
	Statistics    Statistics         `json:"statistics"`
	Sweeps        []growth.Sweep     `json:"sweeps"` // cells that differ along one axis alone
	Forms         []*ship.Table      `json:"forms,omitempty"`
	Warnings      []evidence.Warning `json:"warnings"` // what may change a conclusion, the most serious first
	Notes         []evidence.Warning `json:"notes"`    // all other remarks
	// the baseline run once more; nil: it was measured once
	Noise *Noise `json:"noise,omitempty"`
	// outcome of the run's gate; nil: it has none
	Gate *gates.Outcome `json:"gate,omitempty"`

	builds map[string]map[string]string // what labels call files of engines' own fields, by axis and path
}

// Run is a run folder that entered the result.
type Run struct {
	Dir         string             `json:"dir"`
	Name        string             `json:"name"`
	Side        string             `json:"side,omitempty"` // what distinguishes it from the other runs
	Started     time.Time          `json:"started"`
	Against     string             `json:"against,omitempty"`        // folder of the run that it was interleaved with
	Reference   map[string]string  `json:"reference_cell,omitempty"` // requested values of the reference cell, by axis
	Status      record.Status      `json:"status"`
	Plan        string             `json:"plan_sha256,omitempty"` // SHA-256 of plan.yaml
	Tool        record.Tool        `json:"tool"`
	Environment record.Environment `json:"environment"`
	Checklist   []explain.Check    `json:"checklist"`             // whether the run is reproducible and credible
	Pieces      map[int]string     `json:"token_texts,omitempty"` // of tokens that occur, by id
}

// Cell is a point of a plan with what was measured there.
type Cell struct {
	// Label is unique in the result: what differs between cells, or a side of an interleaved run.
	Label string `json:"label"`
	Run   int    `json:"run"` // index into Runs
	evidence.Setup
	// With is what the engine ran with, in a few words: versions, model library, dtypes. No figure means anything
	// without it.
	With string `json:"with,omitempty"`

	Launches Launches  `json:"launches"`
	Failures []Failure `json:"failures"`
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

// Attempts is the number of attempts of all cells of a run, whatever their status.
func (r *Result) Attempts(run int) int {
	n := 0
	for _, c := range r.Cells {
		if l := c.Launches; c.Run == run {
			n += l.Counted + l.Warmup + l.Failed + l.Interrupted
		}
	}
	return n
}

// Launches counts the attempts of a cell by how they ended.
type Launches struct {
	Planned int `json:"planned"`
	Counted int `json:"counted"`
	// number of processes or sessions of the counted ones, if they are fewer
	Opened      int `json:"opened,omitempty"`
	Warmup      int `json:"warmup"`
	Failed      int `json:"failed"`
	Interrupted int `json:"interrupted"`
}

// Add adds the counts of another cell.
func (l *Launches) Add(o Launches) {
	l.Counted, l.Failed, l.Interrupted = l.Counted+o.Counted, l.Failed+o.Failed, l.Interrupted+o.Interrupted
}

// Ended says how a cell without counted launches ended. An interrupted launch has not failed.
func (l Launches) Ended() string {
	switch {
	case l.Failed > 0:
		return "failed"
	case l.Interrupted > 0:
		return "interrupted"
	}
	return "not launched"
}

// Lost says how many of the launches do not count, and why; empty if all count.
func (l Launches) Lost() string {
	lost := l.Failed + l.Interrupted
	was := "was interrupted"
	if lost > 1 {
		was = "were interrupted"
	}
	switch {
	case lost == 0:
		return ""
	case l.Interrupted == 0:
		was = "failed"
	case l.Failed > 0:
		was = "failed or " + was
	}
	return fmt.Sprintf("%d of %d launches %s", lost, lost+l.Counted, was)
}

// Failure is an attempt that failed or was interrupted.
type Failure struct {
	Attempt    int           `json:"attempt"`
	Repetition int           `json:"repetition"`
	Status     record.Status `json:"status"`
	Class      record.Class  `json:"class,omitempty"`
	Error      string        `json:"error,omitempty"`
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

// Runs compares what is in these runs, by the default options. It changes none of them.
func Runs(runs ...*record.Run) *Result { return With(Defaults(), runs...) }

// With compares what is in these runs; the first is the baseline. It changes none of them.
func With(o Rules, runs ...*record.Run) *Result {
	r := &Result{Comparability: []string{}, Runs: []Run{}, Cells: []*Cell{},
		Parity: []parity.Parity{}, Comparisons: []Comparison{}, Families: []ratio.Family{},
		Statistics: Statistics{Alpha: stats.Alpha, Confidence: stats.Confidence, MinEffect: o.MinEffect,
			Perplexity: o.Perplexity, AllowDifferent: o.AllowDifferent, By: o.By}}
	var of []*growth.Member
	for i, run := range runs {
		reference := o.Reference
		if reference == nil {
			reference = run.Meta.Reference
		}
		r.Runs = append(r.Runs, Run{Dir: run.Dir, Name: run.Meta.Name, Started: run.Meta.Started, Reference: reference,
			Against: run.Meta.Against, Status: run.Status,
			Plan: run.Meta.Plan, Tool: run.Meta.Tool, Environment: run.Environment,
			Checklist: explain.Checklist(run), Pieces: run.Pieces})
		for _, spec := range run.Cells {
			cell := newCell(i, run, spec)
			cell.title = o.Titles[spec.Engine]
			cell.With = cell.Setup.With(spec.Engine, cell.Title()) // the label has the name
			r.Cells = append(r.Cells, cell)
			of = append(of, &growth.Member{Footprint: cell.footprint, Title: cell.Title(), Environment: run.Environment,
				Growth: cell.Growth})
		}
	}
	r.nameSides(runs)
	r.label()
	r.labelSides()
	r.quality()
	for i, c := range r.Cells {
		c.Scores = parity.WithAnchor(r.party(i))
	}
	r.Sweeps = growth.Sweeps(of)
	for i := range r.Cells {
		for j := i + 1; j < len(r.Cells); j++ {
			switch {
			case !r.related(i, j):
			case r.nativeFirst(r.Cells[i], r.Cells[j]) && r.Cells[i].Run == r.Cells[j].Run:
				r.pair(j, i, nil)
			default:
				r.pair(i, j, nil)
			}
		}
	}
	for _, p := range r.pairings() {
		r.pair(p.reference, p.cell, p.axes)
	}
	r.pairForeign()
	r.Matrices = parity.Matrices(r.Parity, func(a, b int) bool { return sameTask(r.Cells[a], r.Cells[b]) },
		func(cell int) parity.SelfParity { return r.Cells[cell].Self })
	for i := range r.Matrices {
		of := r.Cells[r.Matrices[i].Cells[0]].Spec
		r.Matrices[i].Title = fmt.Sprintf("%s, prompt %d", of.Model.Name, of.PromptID)
	}
	r.measureNoise(o.Noise)
	r.judge()
	r.group()
	r.Forms = r.forms()
	r.Reasons, r.Settings = r.reasons(), r.settings()
	for _, d := range r.Reasons {
		r.Comparability = append(r.Comparability, d.Text)
	}
	r.Warnings, r.Notes = r.remarks(runs)
	return r
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
	c.Figures = evidence.Summarised(slices.Concat(memory.Figures(c.counted), timing.Figures(spec, c.counted), cpu))
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

// Points are its memory at three points.
func (c *Cell) Points() memory.Points { return memory.PointsOf(c.Figure) }

// LaunchName says which of the counted launches an attempt is: "launch 3 of 6". The journal numbers attempts, among
// them warm-ups, repeated starts and those of other cells.
func (c *Cell) LaunchName(attempt int) string {
	at := slices.IndexFunc(c.counted, func(a *record.Attempt) bool { return a.ID == attempt })
	return fmt.Sprintf("%s %d of %d", c.Repeated(), at+1, len(c.counted))
}

// BetweenPieces reports whether the cell's latencies are between pieces of text, which are not a token each.
func (c *Cell) BetweenPieces() bool { return evidence.Uncounted(c.Spec, c.counted) }

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
func (c *Cell) takeRan(rows []record.Ran) {
	for _, r := range rows {
		at := slices.IndexFunc(c.Ran, func(o record.Ran) bool { return o.What == r.What })
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

func deviceWords(d *record.Device) string {
	class := cmp.Or(deviceTitles[d.Class], string(d.Class))
	if d.Name != "" {
		return fmt.Sprintf("%s (%s)", class, d.Name)
	}
	return class
}

var deviceTitles = map[record.DeviceClass]string{record.SoftwareAdapter: "a software adapter", record.CPU: "the CPU",
	record.GPU: "a GPU", record.VirtualGPU: "a virtual GPU", record.OpenGLAdapter: "WebGPU on OpenGL"}

// caveats lists the caveats of the ratios of two cells.
func caveats(a, b *Cell) []Reason {
	var out []Reason
	if a.Device.Class == record.SoftwareAdapter && b.Device.Class == record.SoftwareAdapter {
		out = append(out, reason(Limits, explain.BothSoftware))
	}
	out = slices.Concat(out, memoryShared(a, b), cachesDiffer(a, b), loadsDiffer(a, b))
	for _, c := range sides(a, b) {
		if c.Load != nil {
			for _, text := range c.Load.Caveats {
				out = append(out, reason(Limits, explain.TrafficCaveat, c.name, text))
			}
		}
	}
	out = append(out, piecesDiffer(a, b)...)
	for _, c := range sides(a, b) {
		if origin := c.Device.Origin; origin != "" {
			from := map[string]string{record.DeviceStated: "stated by the plan",
				record.DeviceDerived: "derived from the GPU memory of its processes"}
			out = append(out, reason(Limits, explain.DeviceOrigin, c.name, c.Device.Class, from[origin]))
		}
	}
	if a.Device.Class == b.Device.Class && a.Device.Name != b.Device.Name {
		out = append(out, reason(Limits, explain.DeviceNames, a.Device.Name, b.Device.Name))
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
