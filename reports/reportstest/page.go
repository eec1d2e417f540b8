package reportstest

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

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
			add("\n"+n.Data+" ", WordsOf(n))
		case "p", "li", "dt", "dd", "summary", "figcaption", "blockquote", "option":
			add("", WordsOf(n))
		case "svg":
			add("", attribute(n, "aria-label"))
		case "tr":
			var fields []string
			for f := range n.ChildNodes() {
				if f.Type == html.ElementNode {
					fields = append(fields, WordsOf(f))
				}
			}
			add("| ", strings.Join(fields, " | "))
		}
	}
	return out
}

func sectionOf(t testing.TB, page, section string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && attribute(n, "id") == section {
			return n
		}
	}
	t.Fatalf("the page has no section %q", section)
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

// WordsOf is a node's text in one line.
func WordsOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
