package main

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// least is how many words make a sentence.
const least = 5

// sentence is one to read, with the file that has it and what a reader of this file sees above it or beside it.
type sentence struct{ file, place, text string }

// reader collects the sentences of a page. Headings, code and names of things are no sentences.
type reader struct {
	file string
	out  []sentence

	headings [2]string // of the section, and of the part of the section
	lead     string    // the sentence that introduces a list
	columns  []string  // of the table
	term     string    // that a list of definitions defines
}

var (
	ends   = regexp.MustCompile(`([^.][^.][.?!])\s+(\P{Ll}|ll)`) // but for "e.g. this"
	linked = regexp.MustCompile(`(\pL+: )?\[[^]]*\][,.]?\s*`)
	word   = regexp.MustCompile(`(?:^| )[(“]?\pL[\pL'’-]+[,.;:?!)”]*`)
)

func (r *reader) read(n *html.Node) {
	switch n.Data {
	case "head", "script", "style", "svg", "noscript", "blockquote", "nav", "caption":
	case "pre":
		r.lead = ""
	case "h1", "h2":
		r.headings, r.lead = [2]string{words(n), ""}, ""
	case "h3", "h4", "summary":
		r.headings[1], r.lead = words(n), ""
	case "tr":
		r.row(n)
	case "dt":
		r.term = words(n)
	case "dd":
		r.add(r.term, words(n))
	case "li":
		if lead := strings.TrimSuffix(r.lead, ":"); lead != r.lead {
			r.add("", r.lead+" "+words(n))
		} else {
			r.sentences(n)
		}
	case "p", "figcaption", "footer":
		if b := n.FirstChild; b != nil && b == n.LastChild && b.Data == "strong" { // a heading
			r.headings[1] = words(n)
			return
		}
		r.sentences(n)
	default:
		if term := n.FirstChild; term != nil && class(n) == "definition" {
			r.headings = [2]string{"definition of a figure", words(term)}
			n.RemoveChild(term)
		}
		for c := range n.ChildNodes() {
			r.read(c)
		}
		switch n.Data {
		case "ul":
			r.lead = ""
		case "figure", "details":
			r.headings[1] = ""
		}
	}
}

// row reads the cells of a table, each with its row and column: nobody reads a cell without them.
func (r *reader) row(n *html.Node) {
	var cells []string
	head := n.Parent.Data == "thead"
	for c := range n.ChildNodes() {
		if c.Data == "td" || c.Data == "th" {
			cells = append(cells, words(c))
		}
	}
	if head {
		r.columns = cells
		return
	}
	for i, cell := range cells {
		var place []string
		if before := named(cells[:i]); before != "" {
			place = append(place, "row “"+before+"”")
		}
		if i < len(r.columns) && r.columns[i] != "" {
			place = append(place, "column “"+r.columns[i]+"”")
		}
		r.add(strings.Join(place, ", "), cell)
	}
}

// named joins the cells that name a row, or what a row is about.
func named(cells []string) string {
	const short = 40
	long := func(s string) bool { return s == "" || len(s) > short }
	return strings.Join(slices.DeleteFunc(slices.Clone(cells), long), " | ")
}

// sentences reads a text sentence by sentence.
func (r *reader) sentences(n *html.Node) {
	r.lead = ""
	for s := range strings.SplitSeq(ends.ReplaceAllString(words(n), "$1\n$2"), "\n") {
		r.lead = s
		if !strings.HasSuffix(s, ":") { // that is read with what it introduces
			r.add("", s)
		}
	}
}

// add keeps a text of enough words that is no list of names or links.
func (r *reader) add(place, text string) {
	n, all := len(word.FindAllString(text, -1)), len(strings.Fields(text))
	if n < least || 2*n < all || strings.Count(text, "-") > n || linked.ReplaceAllString(text, "") == "" {
		return
	}
	where := ""
	for _, s := range []string{r.headings[0], r.headings[1], place} {
		if s != "" && where != "" {
			where += " › "
		}
		where += s
	}
	r.out = append(r.out, sentence{r.file, where, text})
}

// words are a node's text on one line. Code, emphasis and links are marked, as a reader sees them.
func words(n *html.Node) string {
	var b strings.Builder
	write(&b, n)
	return strings.Join(strings.Fields(b.String()), " ")
}

var marks = map[string][2]string{"code": {"`", "`"}, "em": {"*", "*"}, "a": {"[", "]"}, "br": {" "}, "small": {" "},
	"span": {" "}}

func write(b *strings.Builder, n *html.Node) {
	if n.Type == html.TextNode {
		b.WriteString(n.Data)
	}
	mark := marks[n.Data]
	if n.Type != html.ElementNode || n.FirstChild == nil && n.Data == "a" { // an anchor
		mark = [2]string{}
	}
	b.WriteString(mark[0])
	for c := range n.ChildNodes() {
		write(b, c)
	}
	b.WriteString(mark[1])
}

func class(n *html.Node) string {
	for _, a := range n.Attr {
		if a.Key == "class" {
			return a.Val
		}
	}
	return ""
}
