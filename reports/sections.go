package reports

import (
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/internal/figure"
)

// section is a heading with what stands below it. A result becomes sections once, and each format for people writes
// them without knowing what they are about.
type section struct {
	ID    string // of the page's element
	Title string // empty: no heading
	For   reader // formats that show it; 0: all
	Class string // of the page's element

	Sign   string   // PASS or FAIL
	Words  []string // how to read it, in a sentence or two
	Method []string // how it was obtained; the page folds it
	Lines  []string // a sentence or two each
	Mark   string   // before each line in a terminal; empty: lines are paragraphs
	Grid   *grid
	Draw   func(*view) []chart
	Charts []chart // what Draw gives, on the page
	Across string  // how the page lays out charts: duo, pair or quad; empty: one below another
	View   string  // the template of a part that only the page has
	Data   any     // that template's
	Folded bool    // the page folds it
	Parts  []section
}

// noMark is for lines that have marks of their own.
const noMark = " "

// reader is a set of formats.
type reader uint8

const (
	inTerminal reader = 1 << iota
	document          // Markdown
	onPage
)

// sections are all of a report in the order of the terminal; empty ones are left out later.
func sections(v *view) []section {
	all := []section{verdictSection(v.res), comparabilitySection(v.res), riskSection(v.res), gateSection(v.res.Gate),
		summarySection(v), pointsSection(v.res), ratiosSection(v.res), overTimeSection(), overTokensSection(v.res),
		peaksSection()}
	all = append(all, componentSection(v.res), predictionSection(v.res), breakdownSection(v.res), growthSection(v.res))
	all = append(all, hardwareSections(v.res)...)
	all = append(all, timesSections(v.res)...)
	all = append(all, latencySection(), lengthsSection(), trafficSection(v.res), paritySection(v))
	all = append(all, environmentSections(v)...)
	all = append(all, howSections(v.res)...)
	return append(all, warningsSection(v.res), notesSection(v.res))
}

// shownTo keeps what a format shows, without headings over nothing.
func shownTo(all []section, r reader) []section {
	var out []section
	for _, s := range all {
		if s.For != 0 && s.For&r == 0 {
			continue
		}
		s.Parts = shownTo(s.Parts, r)
		if s.Grid != nil || s.View != "" || len(s.Lines)+len(s.Parts)+len(s.Charts) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// drawn gives sections their charts.
func drawn(v *view, all []section) []section {
	all = slices.Clone(all)
	for i := range all {
		if draw := all[i].Draw; draw != nil {
			all[i].Charts = draw(v)
		}
		all[i].Parts = drawn(v, all[i].Parts)
	}
	return all
}

// grouped are names by key, in the order of the keys.
type grouped struct {
	keys []string
	of   map[string][]string
}

// add adds a name to a key, once.
func (g *grouped) add(key, name string) {
	if g.of == nil {
		g.of = map[string][]string{}
	}
	if _, known := g.of[key]; !known {
		g.keys = append(g.keys, key)
		g.of[key] = nil
	}
	if name != "" && !slices.Contains(g.of[key], name) {
		g.of[key] = append(g.of[key], name)
	}
}

// lines has one line per key.
func (g *grouped) lines(say func(key string, names []string) string) []string {
	var out []string
	for _, key := range g.keys {
		out = append(out, say(key, g.of[key]))
	}
	return out
}

// sentence is a remark on some cells.
func sentence(words string, cells []string) string {
	return strings.Join(cells, "; ") + ": " + strings.TrimSuffix(words, ".") + "."
}

func peaksSection() section {
	return section{ID: "peaks", Title: "Peaks", For: onPage, Draw: bars("peaks", figure.PeakPSS, "Peak memory"),
		Words: []string{barWords + " Memory is total PSS."}}
}

// barWords say how to read bars.
const barWords = "Bar: median. Dots: launches. Line: 95% interval of the median, from six launches on."

// How to read the distributions.
const (
	latencyWords  = "Share of requests, or of gaps between tokens, that took at most this long. Dots: p50, p90, p95 and p99."
	latencyMethod = "All counted launches together. Percentiles by nearest rank: of few values, the highest ones coincide. " +
		"The intervals in the tables treat each launch as one observation."
)

func latencySection() section {
	return section{ID: "latency", Title: "Distribution of times", For: onPage, Words: []string{latencyWords},
		Method: []string{latencyMethod},
		Draw:   latencies, Across: "pair"}
}

func lengthsSection() section {
	return section{ID: "lengths", Title: "By prompt length", For: onPage, Across: "pair",
		Draw: func(v *view) []chart { return v.drawnOver(figure.Lengths) }}
}

func overTimeSection() section {
	return section{ID: "timeline", Title: "Memory over time", For: onPage, Draw: memoryOverTime,
		Across: "pair", Words: []string{"Heavy line: total PSS. Thin lines: PSS of each process. Dashed: sum of RSS, which " +
			"counts shared pages more than once. Click the legend to show RSS by process."},
		Method: []string{"Bands are phases. The readings of a phase, also in the table, go from its start to the start of the " +
			"next phase, because the last one is taken just after its end."}}
}

// overTokensSection shows memory over tokens and how precisely those are timed.
func overTokensSection(res *compare.Result) section {
	s := section{ID: "overtokens", Title: "Memory over tokens", For: onPage, Mark: "- ",
		Draw: memoryOverTokens, Across: "pair"}
	clock := section{Title: "How precisely tokens are timed", Folded: true, Mark: "- "}
	for i := range res.Cells {
		c := &res.Cells[i]
		if c.OverTokens == nil {
			continue
		}
		s.Words = []string{titleCase(c.OverTokens.How) + "."}
		for _, n := range c.OverTokens.Notes {
			s.Lines = append(s.Lines, c.Label+": "+n+".")
		}
		if c.OverTokens.Clock != "" {
			clock.Lines = append(clock.Lines, c.Label+": "+c.OverTokens.Clock+".")
		}
	}
	if len(s.Words) > 0 {
		s.Parts = []section{clock}
	}
	return s
}
