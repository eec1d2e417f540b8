package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// staleNotices finds packages of others that NOTICE.md lacks, or has in another version.
func staleNotices() ([]string, error) {
	notices, err := os.ReadFile("NOTICE.md")
	if err != nil {
		return nil, err
	}
	modules, err := os.Open("go.mod")
	if err != nil {
		return nil, err
	}
	defer modules.Close()
	used := map[[2]string]bool{} // names and versions
	for s := bufio.NewScanner(modules); s.Scan(); {
		if words := strings.Fields(s.Text()); strings.HasPrefix(s.Text(), "\t") && len(words) > 1 {
			used[[2]string{words[0], words[1]}] = true
		}
	}
	text, err := os.ReadFile("assets/package-lock.json")
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Name    string // of what stands in another's place
			Version string
			Dev     bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, err
	}
	for path, p := range lock.Packages {
		if name, ok := strings.CutPrefix(path, "node_modules/"); ok && !p.Dev {
			used[[2]string{cmp.Or(p.Name, name), p.Version}] = true
		}
	}
	var out []string
	for p := range used {
		if !strings.Contains(string(notices), fmt.Sprintf("| %s | %s |", p[0], p[1])) {
			out = append(out, fmt.Sprintf("NOTICE.md has no %s %s: run scripts/notices", p[0], p[1]))
		}
	}
	if rows := strings.Count(string(notices), "\n| ") - 2; rows != len(used) { // but for two headers
		out = append(out, fmt.Sprintf("NOTICE.md has %d packages, %d are used: run scripts/notices", rows, len(used)))
	}
	return out, nil
}

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
