// Package reportstest holds what renderers print against one another, for tests: the terminal's table, the page and
// Markdown.
package reportstest

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	markdown "github.com/yuin/goldmark/renderer/html"

	"llmparity/compare"
	"llmparity/internal/record"
	"llmparity/reports"
)

// SameDigits fails where the terminal, the page and Markdown print another figure, or where one lacks a sentence.
// Tables that all of them have in common are not looked at.
func SameDigits(t testing.TB, res *compare.Result, runs ...*record.Run) {
	t.Helper()
	terminal := rendered(t, func(w io.Writer) error { return reports.Details(w, res) })
	page := rendered(t, func(w io.Writer) error { return reports.Colours{}.HTML(w, res, runs...) })
	document := rendered(t, func(w io.Writer) error { return reports.Markdown(w, res) })
	sameSentences(t, res, terminal, page, document)
	if len(res.Cells) == 0 {
		return
	}
	inPage, inDocument := Tables(t, page, "summary"), documentTables(t, document)
	var pagePoints PageTable
	if strings.Contains(page, `id="points"`) {
		pagePoints = Tables(t, page, "points")[0]
	}
	for i, row := range terminalTable(terminal, "") {
		want := firstWords(row)
		same(t, "Markdown's summary", firstWords(inDocument["Summary"].Rows[i]), want)
		for terminalColumn, title := range map[int]string{2: "Peak", 3: "Increase", 4: "Load", 5: "First token",
			6: "Inter-token p50", 7: "Decode"} {
			got := inPage[0].Rows[i][inPage[0].Column(title)]
			if points := res.Cells[i].Points(); points.Of != "total PSS" && terminalColumn < 4 {
				continue // there the page has the sum of RSS, which the terminal has in its table of three points
			}
			same(t, "the page's "+title, firstWords([]string{got}), want[terminalColumn:terminalColumn+1])
		}
		same(t, "the page's parity", []string{inPage[0].Rows[i][inPage[0].Column("Same tokens")]},
			[]string{dashed(row[8])})
	}
	for i, row := range terminalTable(terminal, "Memory at three points") {
		want := firstWords(row[2:])
		same(t, "Markdown's points", firstWords(inDocument["Memory at three points"].Rows[i][2:]), want)
		same(t, "the page's points", firstWords(pagePoints.Rows[i][2:]), want)
	}
	at := 0
	for _, row := range terminalTable(terminal, "Memory by component") {
		got := inDocument["Memory by component"].Rows[at]
		same(t, "Markdown's components", firstWords(got[1:len(got)-1]), firstWords(row[1:len(row)-1]))
		at++
	}
	if counted := slices.IndexFunc(res.Cells, func(c compare.Cell) bool { return c.Parts != nil }); at == 0 &&
		counted >= 0 {
		t.Errorf("no row of components was found in\n%s", terminal)
	}
}

// same holds figures against the terminal's.
func same(t testing.TB, where string, got, terminal []string) {
	t.Helper()
	if !slices.Equal(got, terminal) {
		t.Errorf("%s: %q, and in the terminal %q", where, got, terminal)
	}
}

var gaps = regexp.MustCompile(` {2,}`)

// terminalTable reads the rows of the table below a title, or of the first one.
func terminalTable(text, title string) [][]string {
	lines := strings.Split(text, "\n")
	if title != "" {
		at := slices.Index(lines, title)
		if at < 0 {
			return nil
		}
		lines = lines[at:]
	}
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "---") })
	var columns int
	var out [][]string
	for _, l := range lines[at+1:] {
		fields := gaps.Split(strings.TrimSpace(l), -1)
		if columns == 0 {
			columns = len(fields)
		}
		if len(fields) != columns || columns < 2 {
			break
		}
		out = append(out, fields)
	}
	return out
}

// firstWords are the figures, without what is said of their spread.
func firstWords(fields []string) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i], _, _ = strings.Cut(dashed(f), " ")
	}
	return out
}

// dashed is a field whose figure is not there, as the page has it.
func dashed(field string) string {
	if field == "-" {
		return "–"
	}
	return field
}

// documentTables are Markdown's, by the headings above them.
func documentTables(t testing.TB, document string) map[string]PageTable {
	t.Helper()
	out := map[string]PageTable{}
	for _, part := range regexp.MustCompile("\n####? ").Split(document, -1)[1:] {
		title, rest, _ := strings.Cut(part, "\n")
		tables := Tables(t, `<div id="all">`+AsHTML(t, rest)+"</div>", "all")
		if len(tables) > 0 {
			out[title] = tables[0]
		}
	}
	return out
}

// sameSentences looks for what is said in words.
func sameSentences(t testing.TB, res *compare.Result, terminal, page, document string) {
	t.Helper()
	inPage := text(t, page)
	said := slices.Clone(res.Comparability)
	a := res.Answer()
	for _, c := range []compare.Card{a.Memory, a.Speed, a.Output, a.Sure} {
		said = append(said, c.Headline, c.Text)
	}
	for _, p := range res.Parity {
		said = append(said, p.Verdict)
	}
	for _, w := range res.Warnings {
		said = append(said, w.Text)
	}
	for _, c := range res.Comparisons { // the terminal has a table of them
		for _, r := range c.Ratios {
			if !strings.Contains(inPage, words(r.Verdict)) ||
				!strings.Contains(text(t, AsHTML(t, document)), words(r.Verdict)) {
				t.Errorf("the page or Markdown does not say %q", r.Verdict)
			}
		}
	}
	for where, shown := range map[string]string{"the terminal": words(terminal), "the page": inPage,
		"Markdown": text(t, AsHTML(t, document))} {
		for _, s := range said {
			if !strings.Contains(shown, words(s)) {
				t.Errorf("%s does not say %q", where, s)
			}
		}
	}
}

// text is all that a page says, in one line.
func text(t testing.TB, page string) string {
	t.Helper()
	return Text(t, `<body id="all">`+page, "all")
}

func words(s string) string { return strings.Join(strings.Fields(s), " ") }

var packed = regexp.MustCompile(`<script type="text/plain" id="drawings" data-bytes="(\d+)">([^<]*)</script>`)

// Drawings is what the charts of a page are drawn from, which it holds packed.
func Drawings(t testing.TB, page []byte) []byte {
	t.Helper()
	m := packed.FindSubmatch(page)
	if m == nil {
		t.Fatal("the page holds no drawings")
	}
	text, err := io.ReadAll(flate.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(m[2]))))
	if err != nil || strconv.Itoa(len(text)) != string(m[1]) {
		t.Fatalf("%d bytes of drawings, and the page says %s: %v", len(text), m[1], err)
	}
	return text
}

// AsHTML renders Markdown as GitHub does, raw HTML let through.
func AsHTML(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	m := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(markdown.WithUnsafe()))
	if err := m.Convert([]byte(text), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func rendered(t testing.TB, render func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := render(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
