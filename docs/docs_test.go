// Package docs_test checks the documentation: links, reachability, size, and the paths that the program names.
package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"llmparity/internal/record/rounding"
)

const root = ".."

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	named   = regexp.MustCompile(`\b(?:docs|examples)/[\w/.-]+\.(?:md|ya?ml)\b`)
)

// pages are the Markdown files that people read, by path from the root of the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, path := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"} {
		out[path] = read(t, path)
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".md") {
			path = filepath.Join("docs", path)
			out[path] = read(t, path)
		}
		return err
	})
	if err != nil || len(out) < 20 {
		t.Fatalf("%d pages, %v", len(out), err)
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// anchors are the fragments that GitHub gives the headings of a page.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		out[strings.Map(func(r rune) rune {
			switch r = unicode.ToLower(r); {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return r
			}
			return -1
		}, m[1])] = true
	}
	return out
}

func TestLinksLead(t *testing.T) {
	all := pages(t)
	for path, text := range all {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to, fragment, _ := strings.Cut(m[1], "#")
			target := path
			if to != "" {
				target = filepath.Join(filepath.Dir(path), to)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			} else if fragment != "" && !anchors(all[target])[fragment] {
				t.Errorf("%s links to %s: no such heading", path, m[1])
			}
		}
	}
}

func TestEveryPageIsReachable(t *testing.T) {
	all := pages(t)
	seen := map[string]bool{}
	var visit func(path string)
	visit = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		if filepath.Ext(path) == "" { // a folder
			for other := range all {
				if filepath.Dir(other) == path {
					visit(other)
				}
			}
		}
		for _, m := range link.FindAllStringSubmatch(all[path], -1) {
			to, _, _ := strings.Cut(m[1], "#")
			if to != "" && !strings.Contains(to, "://") {
				visit(filepath.Join(filepath.Dir(path), to))
			}
		}
	}
	visit("docs/README.md")
	for path := range all {
		if strings.HasPrefix(path, "docs/") && !seen[path] {
			t.Errorf("no link leads from docs/README.md to %s", path)
		}
	}
}

// Help texts, errors, comments and scripts name files that exist.
func TestNamedPathsExist(t *testing.T) {
	for _, dir := range []string{"assets/plans", "browser", "cmd", "compare", "examples", "internal",
		"native", "reports", "scripts", ".ci"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				if d != nil && d.Name() == "testdata" {
					return fs.SkipDir
				}
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range named.FindAllStringIndex(string(text), -1) {
				name := string(text[m[0]:m[1]])
				if m[0] > 0 && text[m[0]-1] == '/' && !strings.HasSuffix(string(text[:m[0]]), "../") {
					continue // of another repository
				}
				if _, missing := os.Stat(filepath.Join(root, name)); missing != nil && !foreign[name] {
					t.Errorf("%s names %s, which does not exist", path, name)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// foreign are files of other repositories, cited as sources.
var foreign = map[string]bool{
	"docs/hub/transformers.md": true, "docs/source/en/models.md": true,
	"docs/mddocs/Quickstart/llama_cpp_quickstart.md": true, "examples/llama-bench/README.md": true,
}

func TestReadmeIsShort(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(read(t, "README.md"), "\n"), "\n")
	if len(lines) > 130 {
		t.Errorf("%d lines, the limit is 130", len(lines))
	}
	for n, l := range lines {
		if columns := utf8.RuneCountInString(l); columns > 100 {
			t.Errorf("line %d: %d columns, the limit is 100", n+1, columns)
		}
	}
}

func TestDocsHaveAtMost26000Words(t *testing.T) {
	words := 0
	for path, text := range pages(t) {
		if strings.HasPrefix(path, "docs/") && !strings.HasPrefix(path, "docs/reference/") {
			words += len(strings.Fields(text))
		}
	}
	if words > 26000 {
		t.Errorf("%d words outside docs/reference, the limit is 26,000", words)
	}
	t.Log(words, "words")
}

// The page on parity has the tolerances that the program uses.
func TestTolerancesAreDocumented(t *testing.T) {
	page := read(t, "docs/explanation/parity.md")
	for _, r := range rounding.Table() {
		if row := fmt.Sprintf("| %s | %g | %s |", r.Arithmetic, r.Nats, r.Basis); !strings.Contains(page, row) {
			t.Errorf("docs/explanation/parity.md lacks %q", row)
		}
	}
}
