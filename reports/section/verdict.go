package section

import (
	"cmp"
	"fmt"
	"strings"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/evidence"
	"llmparity/compare/settings"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
)

// riskSection says of each cell whether its memory was thought to fit, where that was in doubt, and what would help.
func riskSection(res *compare.Result) Section {
	s := Section{ID: "risk", Title: "Risk of running out of memory", Class: "notice", Mark: "! "}
	for _, c := range res.Cells {
		r := c.Risk
		if r == nil || r.Level != record.RiskHigh && r.Level != record.RiskMedium && c.Refused == "" {
			continue
		}
		words := fmt.Sprintf("%s: predicted: %s", c.Label, r.Level.Words())
		if c.Refused != "" {
			words = fmt.Sprintf("%s: refused: %s", c.Label, c.Refused)
		} else if len(r.Reasons) > 0 {
			words += ": " + strings.Join(r.Reasons, "; ")
		}
		if len(r.Recommendations) > 0 {
			words += ". What would help: " + strings.Join(r.Recommendations, "; ")
		}
		s.Lines = append(s.Lines, strings.TrimSuffix(words, ".")+".")
	}
	return s
}

// WarningLines has a line a warning, with all that it is about.
func WarningLines(all []evidence.Warning, res *compare.Result) []string {
	var out []string
	for _, w := range res.OnceEach(all) {
		out = append(out, fmt.Sprintf("%s: %s (%s)", w.Where, w.Text, w.Code))
	}
	return out
}

// settingParts compare what engines report of their settings.
func settingParts(res *compare.Result) []Section {
	s := res.Settings
	if s == nil || len(s.Sides) < 2 {
		return nil
	}
	table := func(title string, rows []settings.Setting, same bool) Section {
		g := &plain.Grid{Name: title, Head: append([]string{"setting"}, plain.Lines(s.Sides)...)}
		if same {
			g.Head = append(g.Head, "same?")
		}
		for _, row := range rows {
			fields := []string{plain.Line(row.Title)}
			for _, v := range row.Values {
				fields = append(fields, cmp.Or(plain.Line(v), "–"))
			}
			if same {
				fields = append(fields, map[bool]string{true: "yes", false: "no"}[row.Same])
			}
			g.Rows = append(g.Rows, fields)
		}
		return Section{Title: title, For: Document | OnPage, Folded: true, Grid: g.OrNil()}
	}
	return []Section{table("Settings", s.Rows, true), table("Settings that only one engine reports", s.Only, false)}
}

// Headline is the answer with its two charts.
func Headline(a *answer.Answer) Section {
	return Section{ID: "headline", For: OnPage, View: "answer", Across: "duo",
		Data: newAnswerPart(a), Draw: chart.Headlines}
}

// answerCard is a card under the question that it answers, with the section that says more.
type answerCard struct {
	answer.Card
	Title, To string
}

// answerPart is what the page shows of an answer.
type answerPart struct {
	Cards    []answerCard
	Warnings []evidence.Warning
	Count    string
	More     int // warnings that are not shown
}

func newAnswerPart(a *answer.Answer) answerPart {
	p := answerPart{Warnings: a.Warnings, More: a.More,
		Count: words.Count(len(a.Warnings)+a.More, "warning") + " may change a conclusion."}
	for _, c := range []answerCard{{a.Ship, "What to ship", "ship"},
		{a.Place, "Browser or native", "ship"}, {a.Growth, "Growth", "growth"}, {a.Memory, "Memory", "memory"},
		{a.Speed, "Speed", "speed"}, {a.Output, "Output", "tokens"}, {a.Quality, "Quality", "quality"},
		{a.Sure, "How sure?", "measured"},
		{a.Quote, "May I quote it?", "measured"}} {
		if c.Headline != "" {
			p.Cards = append(p.Cards, c)
		}
	}
	return p
}
