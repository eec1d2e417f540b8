package main

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// least is how many words make a sentence.
const least = 5

// sentence is one to read, with the file that has it and the heading above it.
type sentence struct{ file, place, text string }

// reader collects the sentences of a page. Headings, code and names of things are no sentences.
type reader struct {
	file, heading string
	out           []sentence
}

var (
	ends   = regexp.MustCompile(`([^.][^.][.?!])\s+(\P{Ll}|ll)`) // but for "e.g. this"
	linked = regexp.MustCompile(`(\pL+: )?\[[^]]*\][,.]?\s*`)
	word   = regexp.MustCompile(`(?:^| )[(“]?\pL[\pL'’-]+[,.;:?!)”]*`)
)

func (r *reader) read(n *html.Node) {
	switch n.Data {
	case "head", "script", "style", "svg", "noscript", "blockquote", "nav", "caption", "pre", "thead":
	case "h1", "h2", "h3", "h4", "summary", "dt":
		r.heading = words(n)
	case "tr": // nobody reads a cell without its row
		var cells []string
		for c := range n.ChildNodes() {
			if s := words(c); s != "" {
				cells = append(cells, s)
			}
		}
		r.add(strings.Join(cells, " | "))
	case "dd", "li", "p", "figcaption", "footer":
		if b := n.FirstChild; b != nil && b.Data == "strong" {
			r.heading = words(b)
		}
		for s := range strings.SplitSeq(ends.ReplaceAllString(words(n), "$1\n$2"), "\n") {
			r.add(s)
		}
	default:
		for c := range n.ChildNodes() {
			r.read(c)
		}
	}
}

// add keeps a text of enough words that is no list of names or links.
func (r *reader) add(text string) {
	n, all := len(word.FindAllString(text, -1)), len(strings.Fields(text))
	if n < least || 2*n < all || strings.Count(text, "-") > n || linked.ReplaceAllString(text, "") == "" {
		return
	}
	r.out = append(r.out, sentence{r.file, r.heading, text})
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
