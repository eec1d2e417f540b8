// Command sentences draws sentences that people read, for a fresh reader to say in other words: ten each from help,
// documentation, warnings and a report's page. A sentence that is misread is rewritten.
//
//	go run ./scripts/sentences --seed 1 [--report results/latest/report.html]
package main

import (
	"flag"
	"fmt"
	"html"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// each is how many sentences are drawn of a kind; least is how many words make one.
const each, least = 10, 5

func main() {
	seed := flag.Uint64("seed", 1, "seed of the draw")
	report := flag.String("report", "results/latest/report.html", "a report, for the texts of its page")
	flag.Parse()
	if err := draw(*seed, *report); err != nil {
		fmt.Fprintln(os.Stderr, "sentences:", err)
		os.Exit(1)
	}
}

func draw(seed uint64, report string) error {
	random := rand.New(rand.NewPCG(seed, 0))
	n := 0
	for _, kind := range []struct {
		name    string
		matches []string
	}{
		{"help", []string{"docs/reference/commands.md", "docs/reference/exit-codes.md"}},
		{"docs", []string{"README.md", "docs/README.md", "docs/[eht]*/*.md", "docs/reference/plan.md",
			"docs/reference/figures.md"}},
		{"warnings", []string{"docs/reference/warnings.md"}},
		{"page", []string{report}},
	} {
		all, err := sentencesOf(kind.matches)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, s := range all[:min(each, len(all))] {
			n++
			fmt.Printf("%2d  %s\n    (%s: %s)\n", n, s.text, s.from, s.near)
		}
	}
	return nil
}

// sentence is one to read, with the file that has it, and what stands near it there.
type sentence struct{ text, from, near string }

// sentencesOf are the different sentences of the files that match, in a fixed order.
func sentencesOf(matches []string) ([]sentence, error) {
	var out []sentence
	for _, m := range matches {
		paths, err := filepath.Glob(m)
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("%s: %w", m, fs.ErrNotExist)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			of := fromMarkdown
			if filepath.Ext(path) == ".html" {
				of = fromHTML
			}
			for _, s := range of(string(text)) {
				s.from = path
				out = append(out, s)
			}
		}
	}
	slices.SortFunc(out, func(a, b sentence) int { return strings.Compare(a.text, b.text) })
	return slices.CompactFunc(out, func(a, b sentence) bool { return a.text == b.text }), nil
}

var (
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$|^    .*?$|<!--.*?-->")
	links    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	ends     = regexp.MustCompile(`([^.][^.g][.?!])\s+`) // but for "e.g."
	hidden   = regexp.MustCompile(`(?s)^.*<body|<(?:script|style|svg|noscript)\b.*?</(?:script|style|svg|noscript)>`)
	bars     = regexp.MustCompile(`\s*\|\s*`)
	headings = regexp.MustCompile(`(?s)<h[1-4][^>]*>(.*?)</h[1-4]>`)
	inline   = regexp.MustCompile(`</?(?:b|i|em|strong|a|span|abbr|code|sup|sub|small|button)\b[^>]*>`)
	tags     = regexp.MustCompile(`<[^>]*>`)
	word     = regexp.MustCompile(`(?:^| )\(?\pL[\pL'’-]+[,.;:?!)]*`)
)

// fromMarkdown are the sentences of paragraphs, lists and cells of tables, with the heading above them; a cell has its
// row and column, too.
func fromMarkdown(text string) []sentence {
	text = links.ReplaceAllString(fenced.ReplaceAllString(text, "\n\n"), "[$1]")
	var out []sentence
	heading, columns := "", []string(nil)
	text = strings.ReplaceAll(text, "\n#", "\n\n#")
	for _, block := range regexp.MustCompile(`\n\s*\n|\n(?:- |\|)`).Split(text, -1) {
		block = strings.Join(strings.Fields(block), " ")
		if title := strings.TrimLeft(block, "#"); title != block {
			heading, columns = strings.TrimSpace(title), nil
			out = append(out, split(heading, "")...)
			continue
		}
		if !strings.Contains(block, " | ") {
			out = append(out, split(block, heading)...)
			continue
		}
		cells := bars.Split(strings.Trim(block, "| "), -1)
		if columns == nil {
			columns = cells
		}
		for i, cell := range cells {
			near := fmt.Sprintf("%s; in the row of %s", heading, cells[0])
			if i < len(columns) && i > 0 {
				near += ", column " + columns[i]
			}
			out = append(out, split(cell, near)...)
		}
	}
	return out
}

// fromHTML are the sentences of a page's text, with the heading above them.
func fromHTML(text string) []sentence {
	var out []sentence
	heading := ""
	text = headings.ReplaceAllString(hidden.ReplaceAllString(text, " "), "<x>#$1<x>")
	for _, part := range tags.Split(inline.ReplaceAllString(text, ""), -1) {
		part = html.UnescapeString(part)
		if title, ok := strings.CutPrefix(part, "#"); ok {
			part, heading = title, title
		}
		out = append(out, split(part, heading)...)
	}
	return out
}

// split cuts a text into sentences of enough words.
func split(text, near string) []sentence {
	var out []sentence
	for s := range strings.SplitSeq(ends.ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1\n"), "\n") {
		s = strings.Trim(s, "|- ")
		words := len(word.FindAllString(s, -1))
		if words >= least && strings.Count(s, "-") < words { // no lists of names
			out = append(out, sentence{text: s, near: near})
		}
	}
	return out
}
