// Package section has what reports say. A result becomes sections once, and each format for people writes them. It
// computes no figure.
package section

import (
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/internal/figure"
	"llmparity/reports/chart"
	"llmparity/reports/matrix"
	"llmparity/reports/plain"
	"llmparity/reports/sides"
)

// Section is a heading with what stands below it. A result becomes sections once, and each format for people writes
// them without knowing what they are about.
type Section struct {
	ID    string // of the page's element
	Title string // empty: no heading
	For   Reader // formats that show it; 0: all
	Class string // of the page's element

	Sign   string   // PASS or FAIL
	Strong string   // in bold before the first line; a document has it
	Words  []string // how to read it, in a sentence or two
	Method []string // how it was obtained; the page folds it
	Lines  []string // a sentence or two each
	Mark   string   // before each line in a terminal; empty: lines are paragraphs
	Grid   *plain.Grid
	Draw   func(*chart.View) []chart.Chart
	Charts []chart.Chart // what Draw gives, on the page
	Across string        // how the page lays out charts: duo, pair or quad; empty: one below another
	Beside string        // the template of what stands beside the charts, in place of another one
	View   string        // the template of a part that only the page has
	Data   any           // that template's

	BesideData any  // that of Beside
	Folded     bool // the page folds it
	Parts      []Section
}

// noMark is for lines that have marks of their own.
const noMark = " "

// Reader is a set of formats.
type Reader uint8

// The formats for people.
const (
	InTerminal Reader = 1 << iota
	Document          // Markdown
	OnPage
)

// Verdict is the answer, below a head that says what it is: the gate, the table of sides, and the sentences. The page
// has Answer in its place.
func Verdict(res *compare.Result, a *answer.Answer) Section {
	out := Section{ID: "verdict"}
	if s := NewStrip(res.Gate); s != nil {
		out.Parts = []Section{{For: InTerminal, Lines: []string{s.Line() + "; " + s.After()}},
			{For: Document, Strong: s.Strong(), Lines: []string{s.Rest + "; " + s.After()}}}
	}
	if s := sides.New(res, a); s != nil && len(res.Forms) == 0 { // which have a table of their own
		out.Parts = append(out.Parts, Section{Grid: s.Grid(s.Figures())})
	}
	out.Parts = append(out.Parts, Section{Lines: a.Sentences()})
	return out
}

// All are all of a report but the answer, in the order of the terminal; empty ones are left out later.
func All(v *chart.View) []Section {
	res := v.Res
	return slices.Concat([]Section{
		riskSection(res), Gate(res.Gate),
		{ID: "support", Title: matrix.Title, Grid: matrix.Grid(res), Words: []string{matrix.Words},
			Method: []string{matrix.Method}, Parts: []Section{{Lines: matrix.Lines(res), Mark: "- "}}},
		shipSections(res), costSection(res), Ratios(res),
		// the page has a table of its own, with more figures and each one's interval
		{ID: "summary", Title: "Summary", Parts: []Section{
			{For: InTerminal | Document, Grid: summaryGrid(res), Words: summaryWords(res)}, summaryView(v)}},
		pointsSection(res),
		{ID: "timeline", Title: "Memory over time", For: OnPage, Draw: chart.MemoryOverTime, Across: "pair",
			Words: []string{timelineWords}, Method: []string{timelineMethod}},
		overTokensSection(res),
		{ID: "peaks", Title: "Peaks", For: OnPage, Draw: chart.Bars("peaks", figure.PeakPSS, "Peak memory"),
			Words: []string{barWords + " Memory is total PSS, which counts a page that several processes share once."}},
		componentSection(res), predictionSection(res), breakdownSection(res), growthSection(res),
	}, hardwareSections(res), timesSections(res), []Section{
		{ID: "latency", Title: "Distribution of times", For: OnPage, Words: []string{latencyWords},
			Method: []string{latencyMethod}, Draw: chart.Latencies, Across: "pair"},
		{ID: "lengths", Title: "By prompt length", For: OnPage, Across: "pair",
			Draw: func(v *chart.View) []chart.Chart { return v.DrawnOver(figure.Lengths) }},
		{ID: "axes", Title: "By other axes", For: OnPage, Across: "pair", Draw: (*chart.View).DrawnOverOthers},
		cpuSection(res), trafficSection(res), paritySection(v), qualitySection(res),
		{ID: "comparability", Title: "What may be compared", Class: "notice", Lines: res.Comparability, Mark: "- ",
			Parts: settingParts(res)},
	}, environmentSections(v), howSections(res), []Section{
		{ID: "warned", Title: "Warnings", Parts: []Section{
			{For: InTerminal | Document, Lines: WarningLines(res.Warnings, res), Mark: "! "},
			{For: OnPage, View: "warnings", Data: res.ByCode(res.Warnings)}}},
		// remarks that change no conclusion
		{ID: "notes", Title: "Notes", For: InTerminal | Document | OnPage, Folded: true, Mark: "- ",
			Lines: WarningLines(res.Notes, res)},
	})
}

// ShownTo keeps what a format shows, without headings over nothing.
func ShownTo(all []Section, r Reader) []Section {
	var out []Section
	for _, s := range all {
		if s.For != 0 && s.For&r == 0 {
			continue
		}
		s.Parts = ShownTo(s.Parts, r)
		if s.Grid != nil || s.View != "" || s.Beside != "" || len(s.Lines)+len(s.Parts)+len(s.Charts) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// OpenFirst leaves the first table of a section open, however long it is; the page shows its first rows. It reports
// whether the section has a table that is not folded.
func OpenFirst(s *Section) bool {
	const widest = 12 // columns, which a narrow screen has below one another
	if s.Grid != nil && len(s.Grid.Head) <= widest {
		g := *s.Grid
		g.First, s.Grid = true, &g
		return true
	}
	for i := range s.Parts {
		if !s.Parts[i].Folded && OpenFirst(&s.Parts[i]) {
			return true
		}
	}
	return false
}

// Drawn gives sections their charts.
func Drawn(v *chart.View, all []Section) []Section {
	all = slices.Clone(all)
	for i := range all {
		if draw := all[i].Draw; draw != nil {
			all[i].Charts = draw(v)
		}
		all[i].Parts = Drawn(v, all[i].Parts)
	}
	return all
}

// sentence is a remark on some cells.
func sentence(words string, cells []string) string {
	return strings.Join(cells, "; ") + ": " + strings.TrimSuffix(words, ".") + "."
}

// barWords say how to read bars.
const barWords = "Bar: median. Dots: launches. Line: 95% interval of the median, which needs six launches."

// How to read the distributions.
const (
	latencyWords  = "Curve: the share of requests, or of gaps between tokens, that took at most this time. Dots: p50, p90, p95 and p99."
	latencyMethod = "The curves combine all counted launches. Percentiles are by nearest rank, so several percentiles are equal if there are few values. " +
		"The intervals in the tables treat each launch as one observation."
)

// How to read memory over time.
const (
	timelineWords = "Heavy line: total PSS. Thin lines: PSS of each process. Dashed: sum of RSS, which counts shared pages " +
		"more than once. Click the legend to show RSS by process."
	timelineMethod = "Bands are phases. In the chart and the table, a phase has the readings up to the start of the " +
		"next phase, because the last reading of a phase is taken just after the phase ends."
)

// overTokensSection shows memory over tokens and how precisely those are timed.
func overTokensSection(res *compare.Result) Section {
	s := Section{ID: "overtokens", Title: "Memory over tokens", For: OnPage, Mark: "- ",
		Draw: chart.MemoryOverTokens, Across: "pair"}
	clock := Section{Title: "How precisely tokens are timed", Folded: true, Mark: "- "}
	for _, c := range res.Cells {
		if c.OverTokens == nil {
			continue
		}
		s.Words = []string{plain.TitleCase(c.OverTokens.How) + "."}
		for _, n := range c.OverTokens.Notes {
			s.Lines = append(s.Lines, c.Label+": "+n+".")
		}
		if c.OverTokens.Clock != "" {
			clock.Lines = append(clock.Lines, c.Label+": "+c.OverTokens.Clock+".")
		}
	}
	if len(s.Words) > 0 {
		s.Parts = []Section{clock}
	}
	return s
}
