package main

import (
	"fmt"
	"os"
	"strings"
)

// unlisted finds packages that the table of CONTRIBUTING.md lacks. A package for tests belongs to the one above it.
func unlisted(packages []string) ([]string, error) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		return nil, err
	}
	_, table, _ := strings.Cut(string(text), "## Packages")
	var out []string
	for _, name := range packages {
		if !strings.HasSuffix(name, "test") && !strings.Contains(table, "`"+name+"`") && name != "docs" {
			out = append(out, fmt.Sprintf("CONTRIBUTING.md: the table of packages lacks %s", name))
		}
	}
	return out, nil
}
