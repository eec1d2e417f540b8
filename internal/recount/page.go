package recount

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"
)

// PageTable is a table of a page: what stands in its fields, the small print left out.
type PageTable struct {
	Head []string
	Rows [][]string
}

// Tables are those in a section of a page, in order.
func Tables(page, section string) ([]PageTable, error) {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return nil, err
	}
	at := find(doc, func(n *html.Node) bool { return attribute(n, "id") == section })
	if at == nil {
		return nil, fmt.Errorf("the page has no section %q", section)
	}
	var out []PageTable
	for n := range at.Descendants() {
		if n.Type != html.ElementNode || n.Data != "table" {
			continue
		}
		var t PageTable
		for row := range n.Descendants() {
			if row.Type != html.ElementNode || row.Data != "tr" {
				continue
			}
			var fields []string
			head := row.Parent.Data == "thead"
			for f := range row.ChildNodes() {
				if f.Type == html.ElementNode && (f.Data == "td" || f.Data == "th") {
					fields = append(fields, words(f, head))
				}
			}
			if head {
				t.Head = fields
			} else {
				t.Rows = append(t.Rows, fields)
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// Text is all that a section of a page says, in one line.
func Text(page, section string) (string, error) {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return "", err
	}
	at := find(doc, func(n *html.Node) bool { return attribute(n, "id") == section })
	if at == nil {
		return "", fmt.Errorf("the page has no section %q", section)
	}
	return words(at, true), nil
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

// words is a node's text in one line, with or without the small print.
func words(n *html.Node, small bool) string {
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
