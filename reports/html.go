package reports

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"llmparity/assets/charts"
	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/internal/figure"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
	"llmparity/reports/chart"
	"llmparity/reports/paper"
	"llmparity/reports/plain"
	"llmparity/reports/section"
)

//go:embed page/*.html
var page embed.FS

var (
	//go:embed page/report.css
	reportCSS string
	//go:embed page/unpack.js
	unpackJS string
	//go:embed page/marks.js
	marksJS string
	//go:embed page/report.js
	reportJS string
	//go:embed page/figures.js
	figuresJS string
)

// Colours are engines' own colours: numbers of the style sheet's, from 1. An engine has the same one in every chart
// and report; one without takes what is left.
type Colours map[string]int

// HTML writes one file with everything in it. Its content security policy forbids the browser to fetch anything and to
// run any script whose hash it does not list, so a hostile label stays a label.
func (own Colours) HTML(w io.Writer, res *compare.Result, runs ...*record.Run) error {
	if len(runs) != len(res.Runs) {
		return fmt.Errorf("the result has %d runs, got %d records", len(res.Runs), len(runs))
	}
	library, unpacker, err := charts.Libraries()
	if err != nil {
		return err
	}
	scripts, hashes, err := inline(unpacker+";"+unpackJS, marksJS+reportJS)
	if err != nil {
		return err
	}
	n := newNames(res)
	v := &chart.View{Res: res, Runs: runs, Own: own}
	d := &htmlPage{Answer: answer.Of(res), Style: template.CSS(reportCSS), Scripts: scripts,
		Schema: resultSchema,
		Policy: "default-src 'none'; script-src " + strings.Join(append(hashes, hashOf(library)), " ") +
			"; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"}
	all := chapters(v, d.Answer)
	if d.Data, err = data(n, all, library); err != nil {
		return err
	}
	t := template.New("report.html")
	written := func(view string, data any) (template.HTML, error) {
		var b strings.Builder
		if err := t.ExecuteTemplate(&b, view, data); err != nil {
			return "", fmt.Errorf("writing the report's %s: %w", view, err)
		}
		return template.HTML(b.String()), nil
	}
	terms, ids := &terms{other: n.name}, &ids{taken: map[string]bool{}}
	_, err = t.Funcs(template.FuncMap{"line": n.sentence, "name": n.name, "headline": n.headline, "plain": n.plain,
		"cell": n.cell, "title": plain.TitleCase,
		"ids": func(ids []int) string { return strings.Trim(fmt.Sprint(ids), "[]") },
		"key": plain.OwnKey, "named": plain.Named, "view": written,
		"term": terms.link, "id": ids.of,
		"numeric": func(columns []plain.Column, i int) bool { return i < len(columns) && columns[i].Number },
		"grade":   grade,
		"fails":   func(sign string) bool { return grade(sign) != "passes" },
	}).ParseFS(page, "page/*.html")
	if err != nil {
		return fmt.Errorf("reading the report's template: %w", err)
	}
	if d.Banner, err = written("banner", d); err != nil {
		return err
	}
	for _, s := range all {
		text, err := written("section", s)
		if err != nil {
			return err
		}
		d.Sections += text
		if n := len(d.Answer.Warnings) + d.Answer.More; s.ID == "warnings" && n > 0 {
			s.Title = words.Count(n, "warning")
		}
		d.Contents = append(d.Contents, s)
	}
	d.Terms = terms.used // complete only now
	if err := t.Execute(w, d); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// grade is the class of a gate's sign.
func grade(sign string) string {
	switch sign {
	case "FAIL":
		return "fails"
	case "INCONCLUSIVE":
		return "open"
	}
	return "passes"
}

// htmlPage is what the page's template shows.
type htmlPage struct {
	Answer           *answer.Answer
	Policy, Schema   string
	Style            template.CSS
	Scripts, Data    template.HTML
	Banner, Sections template.HTML
	Contents         []section.Section
	Terms            []*figure.Row
}

// chapters are the page's sections in the order in which readers ask. What most readers skip is folded.
func chapters(v *chart.View, a *answer.Answer) []section.Section {
	of := map[string]section.Section{}
	first := section.Drawn(v, section.Answer(v, a))
	drawn := section.Drawn(v, append(section.All(v), section.Unpictured(a), paper.Section(v.Res)))
	for _, s := range section.ShownTo(drawn, section.OnPage) {
		of[s.ID] = s
	}
	bare := func(id string) section.Section { s := of[id]; s.Title = ""; return s }
	folded := func(id string) section.Section { s := of[id]; s.Folded = true; return s }
	chapter := func(id, title string, parts ...section.Section) section.Section {
		return section.Section{ID: id, Title: title, Parts: section.ShownTo(parts, section.OnPage)}
	}
	grows := folded("growth")
	grows.Folded = len(v.Res.Sweeps) == 0 // one context shows no growth
	overTime, others := bare("timeline"), section.Section{}
	if most := 2; len(v.Res.Cells) > chart.MostNarrow && len(overTime.Charts) > most { // a chart a cell is long
		others = section.Section{ID: "timeline-others", Title: words.Count(len(overTime.Charts)-most, "more cell"),
			Across: overTime.Across, Charts: overTime.Charts[most:], Folded: true}
		overTime.Charts = overTime.Charts[:most:most]
	}
	figures := folded("summary")
	figures.Title = "All figures of each cell"
	summary := append(slices.Insert(first, 1, of["ship"]), figures) // forms of a model are the picture
	if v.Res.Surveys() {
		summary = slices.Insert(summary, 1, of["support"])
	} else {
		summary = append(summary, folded("support"))
	}
	differences := chapter("differences", "Differences", bare("ratios"))
	if len(v.Res.Cells) == 2 { // the summary has them, and these tables are folded
		summary, differences = append(summary, bare("ratios")), section.Section{}
	}
	all := []section.Section{chapter("answer", "Summary", summary...), of["gate"], of["risk"], differences,
		chapter("speed", "Speed", of["cost"], bare("times"), of["traffic"], of["lengths"], of["axes"],
			folded("latency"), folded("reported"), folded("server")),
		chapter("memory", "Memory", bare("peaks"), bare("points")),
		chapter("where", "Where memory goes", of["stack"], bare("components"), grows, of["hardware"],
			folded("forecast"), folded("breakdown")),
		chapter("tokens", "Tokens", bare("parity")),
		chapter("quality", "Quality", bare("quality")),
		chapter("over-time", "Over time", overTime, others, folded("overtokens")),
		chapter("measured", "How it was measured", bare("comparability"), folded("identity"), folded("environment"),
			folded("how"), folded("sampler"), of["paper"]),
		chapter("warnings", "Warnings", bare("warned"), folded("notes"))}
	all = section.ShownTo(all, section.OnPage)
	for i := range all {
		section.OpenFirst(&all[i])
	}
	return all
}

// data is what the page's script reads: the chart library, and what the charts are drawn from.
func data(n *names, all []section.Section, library string) (template.HTML, error) {
	byID := map[string][]chart.Drawing{}
	eachChart(all, "", func(_ string, c *chart.Chart) { byID[c.ID] = c.Drawings })
	text, err := n.drawings(byID)
	if err != nil {
		return "", err
	}
	drawings, err := packed(text)
	if err != nil {
		return "", err
	}
	echarts, err := packed([]byte(library))
	return element("echarts", len(library), echarts) + element("drawings", len(text), drawings), err
}

func element(id string, size int, text string) template.HTML {
	return template.HTML(fmt.Sprintf("<script type=\"text/plain\" id=\"%s\" data-bytes=\"%d\">%s</script>\n", id, size,
		text))
}

// packed is DEFLATE in base64, which makes a page a third as large.
func packed(text []byte) (string, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write(text)
		err = errors.Join(err, w.Close())
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), err
}

// inline makes script elements, and the hashes by which the policy knows them.
func inline(scripts ...string) (elements template.HTML, hashes []string, err error) {
	for _, s := range scripts {
		s = strings.ReplaceAll(s, "\r\n", "\n") // as the browser's parser will
		if strings.Contains(strings.ToLower(s), "</script") || strings.Contains(s, "<!--") {
			return "", nil, fault.New(fault.NoBundle, "run make setup and build again",
				"an embedded library cannot be put into a page: it ends a script element")
		}
		hashes = append(hashes, hashOf(s))
		elements += template.HTML("<script>" + s + "</script>\n")
	}
	return elements, hashes, nil
}

func hashOf(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Style is the report's style sheet, for other pages.
func Style() string { return reportCSS }
