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

//go:embed page
var page embed.FS

// HTML writes one file with everything in it. Its policy forbids the browser to fetch anything and to run any script
// but those whose hashes it names, so that a hostile label stays a label.
func HTML(w io.Writer, res *compare.Result, runs ...*record.Run) error {
	if len(runs) != len(res.Runs) {
		return fmt.Errorf("the result was made of %d runs, not %d", len(res.Runs), len(runs))
	}
	library, unpacker, err := charts.Libraries()
	if err != nil {
		return err
	}
	own := ""
	for _, name := range []string{"unpack.js", "marks.js", "report.js"} {
		text, err := page.ReadFile("page/" + name)
		if err != nil {
			return err
		}
		own += string(text)
	}
	style, err := page.ReadFile("page/report.css")
	if err != nil {
		return err
	}
	scripts, hashes, err := inline(library, unpacker, own)
	if err != nil {
		return err
	}
	n := newNames(res)
	d, err := newDocument(&view{res: n.shortened(res), runs: runs})
	if err != nil {
		return err
	}
	d.Policy = "default-src 'none'; script-src " + strings.Join(hashes,
		" ") + "; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
	d.names = n // of the names as they are
	d.Style, d.Scripts = template.CSS(style), scripts
	t, err := template.New("report.html").Funcs(
		template.FuncMap{"clean": clean, "num": num, "line": n.sentence, "name": n.name, "plain": n.plain,
			"cell": n.cell, "key": ownKey, "named": named,
			"numeric": func(columns []column, i int) bool { return i < len(columns) && columns[i].Number },
			"next":    func(i int) int { return i + 1 }}).ParseFS(page, "page/*.html")
	if err != nil {
		return fmt.Errorf("reading the report's template: %w", err)
	}
	for _, part := range []struct {
		name string
		to   *template.HTML
	}{{"banner", &d.Banner}, {"sections", &d.Sections}, {"whole", &d.Whole}} { // what was cut is known last
		var b strings.Builder
		if err := t.ExecuteTemplate(&b, part.name, d); err != nil {
			return fmt.Errorf("writing the report's %s: %w", part.name, err)
		}
		*part.to = template.HTML(b.String())
	}
	d.Contents = contents(string(d.Sections + d.Whole))
	if err := t.Execute(w, d); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
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
