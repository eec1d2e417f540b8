// Command sentences draws sentences that people read, for a fresh reader to say in other words: ten each from help,
// documentation, warnings and a report's page. A sentence that is misread is rewritten.
//
//	go run ./scripts/sentences --seed 1 [--report results/latest/report.html]
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"golang.org/x/net/html"
)

// each is how many sentences are drawn of a kind.
const each = 10

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
			fmt.Printf("%2d  (%s) %s\n    %s\n\n", n, s.file, s.place, s.text)
		}
	}
	return nil
}

// sentencesOf are the different sentences of the files that match, in a fixed order.
func sentencesOf(matches []string) ([]sentence, error) {
	var out []sentence
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table))
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
			if filepath.Ext(path) == ".md" {
				var page bytes.Buffer
				if err := markdown.Convert(text, &page); err != nil {
					return nil, fmt.Errorf("%s: %w", path, err)
				}
				text = page.Bytes()
			}
			root, err := html.Parse(bytes.NewReader(text))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			r := reader{file: path}
			r.read(root)
			out = append(out, r.out...)
		}
	}
	slices.SortStableFunc(out, func(a, b sentence) int { return strings.Compare(a.text, b.text) })
	return slices.CompactFunc(out, func(a, b sentence) bool { return a.text == b.text }), nil
}
