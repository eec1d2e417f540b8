package section

import (
	"cmp"
	"fmt"
	"strings"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/evidence"
	"llmparity/compare/settings"
	"llmparity/internal/gates"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
	"llmparity/reports/sides"
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

// Answer are the parts of the page's first screen: the gate and the cards, the picture of the question beside the table
// of sides, and the warnings. What the answer says in sentences is folded below.
func Answer(v *chart.View, a *answer.Answer) []Section {
	out := []Section{{ID: "headline", For: OnPage, View: "answer", Data: newAnswerPart(v.Res.Gate, a)}}
	if len(v.Res.Forms) == 0 { // else the section about forms has both
		out[0].Across, out[0].Draw, out[0].Beside, out[0].BesideData = "duo", picture(a), "sides", sides.New(v.Res, a)
	}
	if n := len(a.Warnings) + a.More; n > 0 {
		out = append(out, Section{ID: "noted", For: OnPage, View: "noted",
			Data: notedPart{a.Warnings, words.Count(n, "warning") + a.Effect + ".", a.More}})
	}
	return append(out, Section{ID: "sentences", Title: "The answer in sentences", For: OnPage, Folded: true,
		Lines: a.Sentences()})
}

// answerCard is a card under the question that it answers, with the section that says more.
type answerCard struct {
	answer.Card
	Title, To string
}

// answerPart is what the page shows of an answer.
type answerPart struct {
	Gate  *Strip
	Cards []answerCard
}

// notedPart is what the page shows of the warnings below the answer.
type notedPart struct {
	Warnings []compare.Remarks
	Count    string
	More     int // codes that are not shown
}

func newAnswerPart(g *gates.Outcome, a *answer.Answer) answerPart {
	p := answerPart{Gate: NewStrip(g)}
	for _, c := range []answerCard{{a.Ship, "What to ship", "ship"}, {a.Place, "Browser or native", "ship"},
		{a.Cost, "The browser's cost", "cost"},
		{a.Growth, "Growth", "growth"}, {a.Speed, "Speed", "speed"},
		{a.Memory, "Memory", "memory"}, {a.Output, "Output", "tokens"}, {a.Quality, "Quality", "quality"},
		{a.Sure, "How sure?", "measured"}, {a.Quote, "May I quote it?", "measured"}} {
		// the table has intervals
		if c.Headline != "" && !a.InTable(&c.Card) && (c.Title != "How sure?" || c.Unknown || c.Without != "") {
			p.Cards = append(p.Cards, c)
		}
	}
	return p
}
