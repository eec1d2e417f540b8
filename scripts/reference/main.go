// Command reference writes the pages of docs/reference that are made from the program's own tables: the plan, from its
// schema; figures, from their table; formats, from the columns of exports.
//
// Other pages there have writers of their own: `go test ./cmd/llmparity ./compare/explain -update`.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	pages, err := pages()
	if err == nil {
		err = write("docs/reference", pages)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// pages are the generated pages, by file name.
func pages() (map[string][]byte, error) {
	plan, err := planPage()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"plan.md": plan, "figures.md": figuresPage(), "formats.md": formatsPage()}, nil
}

// write replaces the pages that changed.
func write(dir string, pages map[string][]byte) error {
	for name, text := range pages {
		path := filepath.Join(dir, name)
		if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, text) {
			continue
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
