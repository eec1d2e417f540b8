package reportstest

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// PageTable is a table of a page: what stands in its fields, the small print left out.
type PageTable struct {
	Head []string
	Rows [][]string
}

// Tables are those in a section of a page, in order.
func Tables(t testing.TB, page, section string) []PageTable {
	t.Helper()
	at := sectionOf(t, page, section)
	var out []PageTable
	for n := range at.Descendants() {
		if n.Type != html.ElementNode || n.Data != "table" {
			continue
		}
		var table PageTable
		for row := range n.Descendants() {
			if row.Type != html.ElementNode || row.Data != "tr" {
				continue
			}
			var fields []string
			head := row.Parent.Data == "thead"
			for f := range row.ChildNodes() {
				if f.Type == html.ElementNode && (f.Data == "td" || f.Data == "th") {
					fields = append(fields, wordsOf(f, head))
				}
			}
			if head {
				table.Head = fields
			} else {
				table.Rows = append(table.Rows, fields)
			}
		}
		out = append(out, table)
	}
	return out
}

// Lines are what a section of a page says, or all of it, a line a block of text and a row of a table. It fails where
// there is an element that reports have not, or a link that leads away: a name has become one.
func Lines(t testing.TB, page, section string) []string {
	t.Helper()
	if section == "" {
		page, section = strings.Replace(page, "<body>", `<body id="all">`, 1), "all"
	}
	var out []string
	add := func(prefix, text string) {
		if text != "" {
			out = append(out, prefix+text)
		}
	}
	for n := range sectionOf(t, page, section).Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "img", "iframe", "b":
			if n.Data != "b" || n.Parent.Data != "li" && n.Parent.Data != "dd" {
				t.Errorf("a name has become <%s>", n.Data)
			}
		case "a":
			if !strings.HasPrefix(attribute(n, "href"), "#") {
				t.Errorf("a link leads to %s", attribute(n, "href"))
			}
		case "h1", "h2", "h3", "h4":
			add("\n"+n.Data+" ", wordsOf(n, true))
		case "p", "li", "dt", "dd", "summary", "figcaption", "blockquote", "option":
			add("", wordsOf(n, true))
		case "svg":
			add("", attribute(n, "aria-label"))
		case "tr":
			var fields []string
			for f := range n.ChildNodes() {
				if f.Type == html.ElementNode {
					fields = append(fields, wordsOf(f, true))
				}
			}
			add("| ", strings.Join(fields, " | "))
		}
	}
	return out
}

// Text is all that a section of a page says, in one line.
func Text(t testing.TB, page, section string) string {
	t.Helper()
	return wordsOf(sectionOf(t, page, section), true)
}

func sectionOf(t testing.TB, page, section string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	at := find(doc, func(n *html.Node) bool { return attribute(n, "id") == section })
	if at == nil {
		t.Fatalf("the page has no section %q", section)
	}
	return at
}

// Column is the number of the column whose title begins so; -1 where there is none.
func (t PageTable) Column(title string) int {
	for i, head := range t.Head {
		if strings.HasPrefix(strings.ToLower(head), strings.ToLower(title)) {
			return i
		}
	}
	return -1
}

func find(n *html.Node, is func(*html.Node) bool) *html.Node {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && is(d) {
			return d
		}
	}
	return nil
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// wordsOf is a node's text in one line, with or without the small print.
func wordsOf(n *html.Node, small bool) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		if !small && n.Type == html.ElementNode && n.Data == "small" {
			return
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
	}
	walk(n)
	return strings.Join(strings.Fields(b.String()), " ")
}

// Digits is how a report prints a figure: about four digits.
func Digits(v float64) string {
	decimals := 0
	switch a := math.Abs(v); {
	case a >= 999.5 || a == math.Trunc(a):
	case a >= 99.95:
		decimals = 1
	case a >= 9.995:
		decimals = 2
	case a >= 0.01:
		decimals = 3
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
