package reports

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"llmparity/assets/charts"
	"llmparity/compare"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

//go:embed page/*.html
var page embed.FS

// What the page and what draws figures are made of.
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

// HTML writes one file with everything in it. Its policy forbids the browser to fetch anything and to run any script
// but those whose hashes it names, so that a hostile label stays a label.
func (own Colours) HTML(w io.Writer, res *compare.Result, runs ...*record.Run) error {
	if len(runs) != len(res.Runs) {
		return fmt.Errorf("the result was made of %d runs, not %d", len(res.Runs), len(runs))
	}
	library, unpacker, err := charts.Libraries()
	if err != nil {
		return err
	}
	scripts, hashes, err := inline(library, unpacker, unpackJS+marksJS+reportJS)
	if err != nil {
		return err
	}
	n := newNames(res)
	v := &view{res: n.shortened(res), runs: runs, own: own}
	all := shownTo(v.drawn(sections(v)), onPage)
	d := &htmlPage{Style: template.CSS(reportCSS), Scripts: scripts, Schema: res.Schema,
		Policy: "default-src 'none'; script-src " + strings.Join(hashes, " ") +
			"; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"}
	d.Title, d.Subtitle = titles(v.res)
	if d.Data, err = drawings(v, all); err != nil {
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
	_, err = t.Funcs(template.FuncMap{"clean": clean, "num": num, "line": n.sentence, "name": n.name, "plain": n.plain,
		"cell": n.cell, "key": ownKey, "named": named, "view": written,
		"numeric": func(columns []column, i int) bool { return i < len(columns) && columns[i].Number },
		"fails":   func(sign string) bool { return sign == "FAIL" || sign == "INCONCLUSIVE" },
		"next":    func(i int) int { return i + 1 }}).ParseFS(page, "page/*.html")
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
		d.Contents = append(d.Contents, entry{s.ID, s.Title})
	}
	if d.Whole, err = written("whole", n.whole); err != nil { // what was cut is known last
		return err
	}
	if len(n.whole) > 0 {
		d.Contents = append(d.Contents, entry{"whole", "Long texts in full"})
	}
	if err := t.Execute(w, d); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// htmlPage is what the page's template shows.
type htmlPage struct {
	Policy  string
	Style   template.CSS
	Scripts template.HTML
	Data    template.HTML // the charts' drawings

	Title, Subtitle, Schema string
	Banner, Sections, Whole template.HTML
	Contents                []entry
}

// entry is a line of the contents.
type entry struct{ ID, Title string }

// drawings is what the page draws its charts from.
func drawings(v *view, all []section) (template.HTML, error) {
	byID := map[string][]drawing{}
	eachChart(all, "", func(_ string, c *chart) { byID[c.ID] = c.Drawings })
	text, err := newNames(v.res).drawings(byID)
	if err != nil {
		return "", err
	}
	return packed("drawings", text)
}

// packed is a text within the page that only its script reads: DEFLATE in base64, which fflate undoes. Of what charts
// are drawn from, that is a seventh.
func packed(id string, text []byte) (template.HTML, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return "", err
	}
	if _, err := w.Write(text); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return template.HTML(fmt.Sprintf(`<script type="text/plain" id="%s" data-bytes="%d">%s</script>`, id, len(text),
		base64.StdEncoding.EncodeToString(b.Bytes()))), nil
}

// inline makes script elements, and the hashes by which the policy knows them.
func inline(scripts ...string) (elements template.HTML, hashes []string, err error) {
	for _, s := range scripts {
		s = strings.ReplaceAll(s, "\r\n", "\n") // as the browser's parser will
		if strings.Contains(strings.ToLower(s), "</script") || strings.Contains(s, "<!--") {
			return "", nil, fault.New(fault.NoBundle, "run make setup and build again",
				"an embedded library can't be put into a page: it ends a script element")
		}
		sum := sha256.Sum256([]byte(s))
		hashes = append(hashes, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
		elements += template.HTML("<script>" + s + "</script>\n")
	}
	return elements, hashes, nil
}
