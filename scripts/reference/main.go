// Command reference writes the pages of docs/reference that are made from the program's own tables: the plan, from its
// schema; figures and warnings, from their tables; formats, from the columns of exports.
//
// Commands and exit codes are written by a test of cmd/llmparity, which this runs.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	pages, err := pages()
	if err == nil {
		err = write("docs/reference", pages)
	}
	if err == nil {
		commands := exec.Command("go", "test", "./cmd/llmparity", "-run", "^TestReference", "-update")
		commands.Stdout, commands.Stderr = os.Stderr, os.Stderr // a failed test says why on its output
		err = commands.Run()
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
	return map[string][]byte{"plan.md": plan, "figures.md": figuresPage(), "formats.md": formatsPage(),
		"warnings.md": warningsPage()}, nil
}

// write replaces the pages.
func write(dir string, pages map[string][]byte) error {
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
