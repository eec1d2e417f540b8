package reports

import (
	"slices"
	"strings"
)

// section is a heading of a report with what stands below it. A result becomes sections once; each format for people
// is a writer that walks them and knows nothing of what they are about.
type section struct {
	ID     string // of the page's element; empty: it is a part of another
	Title  string // empty: it goes on below what is before it
	Unseen bool   // the place says what the heading would
	For    reader // who is shown it; 0: everybody
	Class  string // how the page looks of it

	Sign   string   // of what passes or fails: a word that is seen at once
	Words  []string // how to read it, in a sentence or two
	Method []string // how it was obtained; the page folds it
	Lines  []string // what there is to say, a sentence or two each
	Mark   string   // before each line in a terminal; empty: lines are paragraphs
	Grid   *grid
	Draw   []func(*view) []chart
	Charts []chart // what Draw gives, for formats that can show it
	Across string  // how the page lays charts out: pair, triple; empty: one below the other
	View   string  // the template of what only the page has
	Data   any     // that template's
	Folded bool    // the page shows it below its title when that is clicked
	Parts  []section
}

// noMark is for lines of a list that bear marks of their own.
const noMark = " "

// reader is a set of formats for people.
type reader uint8

const (
	brief    reader = 1 << iota // the terminal
	detailed                    // the terminal, asked for details
	document                    // Markdown
	onPage
	inTerminal = brief | detailed
)

// sections are all of a report, in the order of every format. Those that a result has nothing of are empty.
func sections(v *view) []section {
	all := []section{verdictSection(v.res), comparabilitySection(v.res), riskSection(v.res), gateSection(v.res.Gate),
		summarySection(v), pointsSection(v.res), ratiosSection(v.res), overTimeSection(), overTokensSection(v.res),
		peaksSection()}
	all = append(all, componentSections(v.res)...)
	all = append(all, predictionSections(v.res)...)
	all = append(all, breakdownSections(v.res)...)
	all = append(all, growthSection(v.res))
	all = append(all, hardwareSections(v.res)...)
	all = append(all, timesSections(v.res)...)
	all = append(all, latencySection(), lengthsSection(), trafficSection(v.res), paritySection(v))
	all = append(all, environmentSections(v)...)
	all = append(all, howSections(v.res)...)
	return append(all, warningsSection(v.res), notesSection(v.res))
}

// shownTo leaves what a reader is shown, and no heading over nothing.
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
func (v *view) drawn(all []section) []section {
	all = slices.Clone(all)
	for i := range all {
		for _, draw := range all[i].Draw {
			all[i].Charts = append(all[i].Charts, draw(v)...)
		}
		all[i].Parts = v.drawn(all[i].Parts)
	}
	return all
}

// grouped are names by what they have in common, in the order in which that came first.
type grouped struct {
	keys []string
	of   map[string][]string
}

// add puts a name to a key's, once.
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

// lines are a line a key.
func (g *grouped) lines(say func(key string, names []string) string) []string {
	var out []string
	for _, key := range g.keys {
		out = append(out, say(key, g.of[key]))
	}
	return out
}

// sentence is what is said of some cells.
func sentence(words string, cells []string) string {
	return strings.Join(cells, "; ") + ": " + strings.TrimSuffix(words, ".") + "."
}
