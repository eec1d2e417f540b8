// Package paper writes what a paper needs of a result: how the figures were measured, in paragraphs, and BibTeX entries
// of the run and of llmparity. It has what the record has, and judges nothing.
package paper

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"llmparity/compare"
	"llmparity/compare/conduct"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/growth"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
	"llmparity/reports/plain"
	"llmparity/reports/section"
)

// Code is text that is copied as it stands, such as BibTeX. Each format shows it in its own way.
type Code string

// Section is the method in paragraphs, with BibTeX, for those who publish the figures.
func Section(res *compare.Result) section.Section {
	lines := Methods(res)
	if len(lines) == 0 {
		return section.Section{}
	}
	return section.Section{ID: "paper", Title: "For a paper", For: section.Document | section.OnPage, Folded: true,
		Lines: lines,
		Parts: []section.Section{{Title: "BibTeX", View: "code", Data: Code(BibTeX(res))}}}
}

// methods writes the method of a result's cells.
type methods struct {
	*compare.Result
	cells []*compare.Cell // those with counted launches
	runs  []int           // of those cells
	text  []string        // sentences of the paragraph that is being written
}

// Methods describes in paragraphs what was measured and how; empty if no launch of ours counts. All that it says is
// from the record.
func Methods(res *compare.Result) []string {
	m := &methods{Result: res}
	for _, c := range res.Cells {
		if c.Launches.Counted > 0 && !c.Foreign() {
			m.cells, m.runs = append(m.cells, c), explain.AppendNew(m.runs, c.Run)
		}
	}
	if len(m.cells) == 0 {
		return nil
	}
	var out []string
	for _, paragraph := range []func(){m.subject, m.procedure, m.measurement, m.statistics, m.machines, m.remarks} {
		m.text = nil
		paragraph()
		if len(m.text) > 0 {
			out = append(out, strings.Join(m.text, " "))
		}
	}
	return out
}

// say adds a sentence, once.
func (m *methods) say(format string, args ...any) {
	m.text = explain.AppendNew(m.text, plain.Line(explain.Capital(fmt.Sprintf(format, args...)))+".")
}

// each lists the distinct values of the cells.
func (m *methods) each(of func(*compare.Cell) string) []string {
	return (&compare.Result{Cells: m.cells}).Distinct(of)
}

// perEngine says once what all engines have in common, else by engine.
func (m *methods) perEngine(of func(*compare.Cell) string) string {
	if all := m.each(of); len(all) < 2 {
		return strings.Join(all, "")
	}
	engines := m.each((*compare.Cell).Title)
	return strings.Join(m.each(func(c *compare.Cell) string {
		if of(c) == "" || len(engines) == 1 {
			return of(c)
		}
		return c.Title() + " " + of(c)
	}), "; ")
}

// all lists texts with commas and "and".
func all(texts []string) string { return explain.And(texts, len(texts)) }

// subject says what ran: programs, models, requests.
func (m *methods) subject() {
	var tools []string
	for _, run := range m.runs {
		tools = explain.AppendNew(tools, toolWords(m.Runs[run].Tool))
	}
	m.say("we used %s to measure %s", all(tools), all(m.each(m.engineWords)))
	models := m.each(modelWords)
	m.say("the %s %s", explain.Plural(len(models), "model was", "models were"), all(models))
	random := func(c *compare.Cell) bool { return c.Spec.Model.Random() }
	switch known := slices.IndexFunc(m.cells, func(c *compare.Cell) bool { return !random(c) }); {
	case known < 0:
		m.say("%s weights are random numbers, so the text has no meaning", explain.Plural(len(models), "its", "their"))
	case slices.ContainsFunc(m.cells, random):
		m.say("some models have random weights, so their text has no meaning")
	}
	switch dtypes := m.perEngine((*compare.Cell).DTypes); {
	case dtypes == "":
	case strings.ContainsAny(dtypes, ",;"):
		m.say("weights were held in: %s", dtypes)
	default:
		m.say("weights and KV cache were held in %s", dtypes)
	}
	for _, same := range m.each(samenessWords) {
		m.say("%s", same)
	}
	m.requests()
}

// toolWords name the llmparity that measured.
func toolWords(t record.Tool) string {
	version := strings.Trim(t.Version, "()")
	if t.Commit == "" || strings.Contains(version, shortHash(t.Commit)) { // Go's versions have it
		return "llmparity " + version
	}
	return "llmparity " + plain.Joined(", ", version, "commit "+shortHash(t.Commit),
		map[bool]string{true: "with local changes"}[t.Modified])
}

// shortHash is as much of a hash as identifies it in a text; BibTeX has all of it.
func shortHash(s string) string { return s[:min(12, len(s))] }

// engineWords name an engine with all that decides what it computes. One whose model library is compiled for each
// context is named once, with all libraries.
func (m *methods) engineWords(c *compare.Cell) string {
	if c.Engine == nil || c.Engine.Library == nil {
		return engineWith(c, "")
	}
	var hashes []string
	for _, o := range m.cells {
		if o.Engine != nil && o.Engine.Library != nil && engineWith(o, "") == engineWith(c, "") {
			hashes = explain.AppendNew(hashes, shortHash(o.Engine.Library.SHA256))
		}
	}
	return engineWith(c, strings.Join(hashes, ", "))
}

// engineWith names an engine with hashes of its model libraries.
func engineWith(c *compare.Cell, libraries string) string {
	e := c.Engine
	if e == nil {
		return c.Title() + " (version not reported)"
	}
	version := words.Version(e.Version)
	with := []string{c.Browser()}
	if e.Commit != "" && !strings.Contains(version, e.Commit) {
		with = append(with, "commit "+shortHash(e.Commit))
	}
	if l := e.Library; l != nil {
		with = append(with, plain.Joined(", ", "model library of "+cmp.Or(l.Maker, "the user"), l.Variant,
			prefixed("SHA-256 ", libraries)))
	}
	if layers := c.Says("gpu_layers"); layers != "" && layers != "0" {
		with = append(with, layers+" layers on the GPU")
	}
	with = append(with, prefixed("flash attention ", c.Says("flash_attention")), c.Worker(), c.Threads(), c.On())
	version = strings.NewReplacer("(", "", ")", "").Replace(version)
	return fmt.Sprintf("%s (%s)", strings.TrimSpace(c.Title()+" "+version),
		plain.Joined("; ", with...))
}

func modelWords(c *compare.Cell) string {
	m := c.Spec.Model
	if m.Format == record.Served {
		return m.Name + " (served; weights not verified)"
	}
	parameters := ""
	if m.Parameters > 0 {
		parameters = explain.Amount(float64(m.Parameters)) + " parameters"
	}
	return fmt.Sprintf("%s (%s)", m.Name, plain.Joined(", ", m.Architecture, parameters, strings.ToUpper(m.Format),
		m.DType, prefixed("SHA-256 ", shortHash(m.SHA256))))
}

// samenessWords say how the weights of an engine that converted a file compare with it.
func samenessWords(c *compare.Cell) string {
	s := c.Weights().String()
	if s == "" {
		return ""
	}
	return fmt.Sprintf("the weights in %s were compared with the model's file: %s", c.Title(), s)
}

// span is the range of a figure over cells; empty if it is not known.
func (m *methods) span(name string) string {
	var known []float64
	for _, c := range m.cells {
		if f := c.Figure(name); f.Known() {
			known = append(known, f.Center())
		}
	}
	if len(known) == 0 {
		return ""
	}
	return numbers(slices.Min(known), slices.Max(known))
}

// requests say what was asked of the engines, and along which axes cells differ.
func (m *methods) requests() {
	traffic := func(c *compare.Cell) string { return cmp.Or(c.Requested(axis.Traffic), "one request") }
	in, out := m.span(figure.Prompt), m.span(figure.Tokens)
	m.say("each %s measured %s, with %s", strings.Join(m.each((*compare.Cell).Repeated), " or "),
		strings.Join(m.each(traffic), " or "), cmp.Or(plain.Joined(" and ", suffixed(in, " prompt tokens"),
			suffixed(out, " generated tokens")), "an unknown number of tokens"))
	given := m.each(func(c *compare.Cell) string { return c.Requested(axis.Prompt) })
	texts := m.each(func(c *compare.Cell) string { return c.Spec.Prompt })
	if len(given) == 1 && len(texts) == 1 && len([]rune(given[0])) <= quotedPrompt {
		m.say("the prompt was “%s”", given[0])
	}
	if slices.ContainsFunc(m.cells, func(c *compare.Cell) bool { return c.Spec.Chat }) {
		m.say("prompts were rendered in the model's chat template")
	}
	switch hot := m.each(func(c *compare.Cell) string { return c.Requested(axis.Temperature) }); {
	case slices.Equal(hot, []string{"0"}):
		m.say("decoding was greedy (temperature 0)")
	default:
		m.say("the sampling temperature was %s", all(hot))
	}
	if windows := m.each(contextWords); len(windows) > 0 {
		m.say("the context window was %s tokens", all(windows))
	}
	switch caches := m.perEngine(func(c *compare.Cell) string { return c.Spec.PromptCache }); caches {
	case "":
	case record.CacheOff, record.CacheOn:
		m.say("prompt caches were %s", caches)
	default:
		m.say("prompt caches: %s", caches)
	}
	if varied := m.varied(); len(varied) > 0 {
		m.say("cells also differ in %s", all(varied))
	}
}

// quotedPrompt is the length of the longest prompt that is quoted.
const quotedPrompt = 120

func suffixed(value, unit string) string {
	if value == "" {
		return ""
	}
	return value + unit
}

func contextWords(c *compare.Cell) string {
	if n := c.Context(); n > 0 {
		return explain.Amount(float64(n))
	}
	return ""
}

// varied are the other axes along which cells differ, with their values.
func (m *methods) varied() (out []string) {
	told := []string{axis.Engine, axis.Model, axis.Traffic, axis.Temperature, axis.Context, axis.PromptCache}
	for _, x := range m.Axes() {
		value := func(c *compare.Cell) string { return x.Value(&c.Spec) }
		if all := m.each(value); len(all) > 1 && !slices.Contains(told, x.Name) {
			if x.Name == axis.Prompt {
				out = append(out, fmt.Sprintf("%s (%d)", x.Title, len(all)))
				continue
			}
			out = append(out, fmt.Sprintf("%s (%s)", x.Title, strings.Join(all, ", ")))
		}
	}
	return out
}

// procedure says how often and in which order cells were launched, and what does not count.
func (m *methods) procedure() {
	var counted []float64
	for _, c := range m.cells {
		counted = append(counted, float64(c.Launches.Counted))
	}
	several := strings.Join(m.each((*compare.Cell).Several), " or ")
	if slices.Max(counted) == 1 {
		several = strings.Join(m.each((*compare.Cell).Repeated), " or ")
	}
	cells := explain.Plural(len(m.cells), "the cell, a combination of engine, model and request, was",
		fmt.Sprintf("each of the %d cells, which are combinations of engine, model and request, was", len(m.cells)))
	m.say("%s measured in %s %s", cells, numbers(slices.Min(counted), slices.Max(counted)), several)
	if processes := m.each(isolationWords); len(processes) > 0 {
		m.say("%s ran in %s", strings.Join(m.each((*compare.Cell).Several), " or "), all(processes))
	}
	for _, run := range m.runs {
		m.conduct(run)
	}
	m.excluded()
}

// numbers are the range of two numbers.
func numbers[T int | float64](low, high T) string {
	from, to := explain.Amount(float64(low)), explain.Amount(float64(high))
	if from == to {
		return from
	}
	return from + " to " + to
}

func isolationWords(c *compare.Cell) string {
	x := axis.Named(axis.Isolation)
	return x.Names[x.Of(&c.Spec)]
}

// orders say in which order cells were launched.
var orders = map[conduct.Order]string{
	conduct.Grouped:   "all launches of a cell were made before those of the next one",
	conduct.Alternate: "launches of the cells alternated, so that slow changes of the machine affect all cells alike",
	conduct.Shuffled: "launches of the cells alternated in random order, so that slow changes of the machine affect all cells " +
		"alike",
	conduct.Mixed: "launches of cells alternated within groups of cells, one group after the other",
}

// conduct says how a run's launches were made, if that is not said of another run.
func (m *methods) conduct(run int) {
	how := m.Conduct(run)
	var out []string
	if how.Warmups.High > 0 {
		out = append(out, fmt.Sprintf("before, each cell had %s warm-up %s not counted",
			numbers(how.Warmups.Low, how.Warmups.High),
			explain.Plural(how.Warmups.High, "launch, which is", "launches, which are")))
	}
	if how.WarmupTokens.High > 0 {
		out = append(out, fmt.Sprintf("each launch generated %s tokens before the measurement",
			numbers(how.WarmupTokens.Low, how.WarmupTokens.High)))
	}
	if words := orders[how.Order]; words != "" {
		out = append(out, words)
	}
	if m.Runs[run].Against != "" {
		out = append(out, "launches alternated with those of another run")
	}
	for _, words := range out {
		if !slices.Contains(m.text, explain.Capital(words)+".") {
			m.say("%s", words)
		}
	}
}

// excluded says which launches and cells have no part in the figures, and why.
func (m *methods) excluded() {
	var lost evidence.Counts
	classes := map[string]bool{}
	for _, c := range m.Cells {
		lost.Add(c.Launches)
		for _, f := range c.Failures {
			classes[cmp.Or(string(f.Class), string(f.Status))] = true
		}
	}
	if words := lost.Lost(); words != "" {
		m.say("%s (%s) and enter no figure", words, explain.List(classes))
	}
	for _, c := range m.Cells {
		if c.Refused != "" {
			m.say("the cell %s was refused: %s", c.Label, strings.TrimSuffix(c.Refused, "."))
		}
	}
	for _, c := range m.cells {
		if s := c.Stop; s != nil {
			m.say("launches of %s were added until the interval of %s was narrow enough, checked at most %d times; its intervals "+
				"are wider by that", c.Label, s.Figure, s.Looks)
		}
	}
}

// measurement says where figures of memory and time are from.
func (m *methods) measurement() {
	known := func(name string) bool {
		return slices.ContainsFunc(m.cells, func(c *compare.Cell) bool { return c.Figure(name).Known() })
	}
	readers := m.readers()
	every := func(method string) string { return intervalWords(readers[method]) }
	if known(figure.PeakPSS) {
		m.say("memory is proportional set size (PSS), which counts a page that n processes share as 1/n in each, summed over all " +
			"processes of an engine")
		if readers[record.MethodSmapsRollup] > 0 {
			m.say("PSS was read from /proc/PID/smaps_rollup at intervals of at least %s and at the end of each phase",
				every(record.MethodSmapsRollup))
			if readers[record.MethodStatm] > 0 {
				m.say("in between, PSS is carried forward by the growth of resident memory, which was read from /proc/PID/statm at "+
					"intervals of at least %s", every(record.MethodStatm))
			}
		}
		m.say("peak memory is the highest total of a launch")
	}
	if known(figure.TTFT) {
		m.say("times were taken by the host's monotonic clock")
		if clock := m.clock(); clock > 0 {
			m.say("the page's clock was compared with it in each launch, with an error of at most %s ms",
				explain.Amount(clock.Seconds()*1000))
		}
		m.say("time to first token begins when the request is sent")
	}
	if known(figure.DecodeTPS) {
		m.say("decode speed is the number of tokens that arrived later than the first, divided by the time between the first and " +
			"the last")
	}
	m.slopes()
	if pieces := m.each(piecesWords); len(pieces) > 0 {
		m.say("%s %s pieces of text, whose tokens arrive together", all(pieces),
			explain.Plural(len(pieces), "reports", "report"))
	}
}

// slopes say how the KV cache and its growth with the context were obtained, if the plan varied contexts.
func (m *methods) slopes() {
	var from []string
	fitted := false
	for _, s := range m.Sweeps {
		if s.Axis != growth.AxisContext {
			continue
		}
		for _, r := range s.Rates {
			if fitted = fitted || r.Known(); r.Of != growth.OfReserved || !r.Known() {
				continue
			}
			how := "from WebGPU buffers of its size"
			if r.Method == evidence.EngineLog {
				how = "from the engine's log"
			}
			from = explain.AppendNew(from, how+" in "+m.Cells[s.Cells[0]].Title())
		}
	}
	if len(from) > 0 {
		m.say("the size of the KV cache was taken %s", all(from))
	}
	if fitted {
		m.say("memory per token of the context is the median slope between all pairs of launches of different contexts " +
			"(Theil–Sen), with Sen's interval")
	}
}

func piecesWords(c *compare.Cell) string {
	if c.BetweenPieces() {
		return c.Title()
	}
	return ""
}

// readers are the methods that read memory, with their shortest interval.
func (m *methods) readers() map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, run := range m.runs {
		for _, r := range m.Conduct(run).Readers {
			out[r.Method] = min(cmp.Or(out[r.Method], r.Every), r.Every)
		}
	}
	return out
}

func (m *methods) clock() (most time.Duration) {
	for _, run := range m.runs {
		most = max(most, m.Conduct(run).Clock)
	}
	return most
}

// intervalWords write an interval of readings: 100 ms, 2 s.
func intervalWords(d time.Duration) string {
	if d < time.Second {
		return explain.Amount(d.Seconds()*1000) + " ms"
	}
	return explain.Amount(d.Seconds()) + " s"
}

// statistics says what intervals and tests there are.
func (m *methods) statistics() {
	m.say("figures are medians over launches")
	if !slices.ContainsFunc(m.cells, func(c *compare.Cell) bool { return c.Launches.Counted >= explain.Enough }) {
		m.say("with fewer than %d launches, there are no confidence intervals", explain.Enough)
		return
	}
	m.say("the %s%% confidence intervals of medians are order-statistic intervals",
		explain.Percent(m.Statistics.Confidence))
	tests := 0
	for _, f := range m.Families {
		tests += f.Tests
	}
	if tests == 0 {
		return
	}
	over := fmt.Sprintf("the %d tests of the comparison", tests)
	if n := len(m.Families); n > 1 {
		over = fmt.Sprintf("the tests of each of the %d comparisons (%d tests in all)", n, tests)
	}
	m.say("those of ratios are percentiles of the exact bootstrap over launches")
	m.say("differences were tested by the exact Mann–Whitney test over launches, with Holm's correction over %s, at a family-wise "+
		"error rate of %s%%", over, explain.Percent(m.Statistics.Alpha))
	m.say("differences below %s%% are not reported as differences", explain.Percent(m.Statistics.MinEffect))
}

// machines says when and where the runs were made, once for runs on one machine.
func (m *methods) machines() {
	var days, machines []string
	for _, run := range m.runs {
		days = explain.AppendNew(days, m.Runs[run].Started.Format("2 January 2006"))
		machines = explain.AppendNew(machines, machineWords(m.Runs[run].Environment))
	}
	m.say("the measurements were made on %s on %s", all(days), strings.Join(machines, "; and on "))
	for _, run := range m.runs {
		if q := explain.Quiet(m.Runs[run].Environment); q.Answer != explain.Unknown {
			quiet, _, _ := strings.Cut(q.Why, ";")
			m.say("%s", quiet)
		}
	}
	if flags := m.each(flagWords); len(flags) > 0 {
		m.say("the flags of the browser include %s", strings.Join(flags, "; "))
	}
}

// machineWords are the machine's facts that a reader of a paper needs.
func machineWords(e record.Environment) string {
	rows := map[string]string{}
	for _, row := range plain.Machine(e) {
		rows[row[0]] = row[1]
	}
	if len(e.GPUs) == 0 {
		rows["GPUs"] = ""
	}
	if l := e.Limits; l == nil || l.CPUs == 0 && l.MemoryB == 0 {
		rows["limits"] = ""
	}
	memory := ""
	if e.MemoryB > 0 {
		memory = explain.Amount(float64(e.MemoryB)/(1<<30)) + " GiB of memory"
	}
	return plain.Joined(", ", "a machine with "+cmp.Or(e.CPU, "an unknown processor"),
		words.Count(e.Cores, "available core"), memory,
		prefixed("CPU frequency governor ", e.Governor), prefixed("GPUs: ", rows["GPUs"]), e.OS,
		prefixed("kernel ", e.Kernel), e.Arch, prefixed("in ", rows["runs in"]), prefixed("limits ", rows["limits"]))
}

// flagsThatMatter are parts of browser flags that change what is measured.
var flagsThatMatter = []string{"gpu", "vulkan", "angle", "headless", "sandbox", "js-flags", "single-process", "memory"}

// flagWords are a browser's flags, as far as they matter; empty for other programs.
func flagWords(c *compare.Cell) string {
	if c.Browser() == "" || c.Engine == nil {
		return ""
	}
	var out []string
	for _, arg := range c.Engine.Args {
		name := strings.ToLower(arg)
		if slices.ContainsFunc(flagsThatMatter, func(s string) bool { return strings.Contains(name, s) }) {
			out = append(out, arg)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// remarks names the warnings: they may change a conclusion.
func (m *methods) remarks() {
	var codes []string
	for _, w := range m.Warnings {
		codes = explain.AppendNew(codes, w.Code)
	}
	if len(codes) == 0 {
		m.say("the figures carry no warning of llmparity")
		return
	}
	n := len(m.OnceEach(m.Warnings))
	m.say("the figures carry %s of llmparity: %s", words.Count(n, "warning"), all(codes))
}
