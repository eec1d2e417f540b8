package warning_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/warning"
)

// A code that the program writes into records is a warning or a note: whoever adds one decides.
func TestEveryRecordedCodeIsClassified(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range warning.Table {
		for _, code := range append(r.Records, r.Code) {
			if seen[code] || slices.Contains(warning.Notes, code) {
				t.Errorf("%s is listed twice", code)
			}
			seen[code] = true
		}
	}
	for _, code := range warning.Notes {
		seen[code] = true
	}
	list, err := exec.Command("git", "-C", "../..", "ls-files", "*.go").Output()
	if err != nil {
		t.Skip("not a git checkout")
	}
	literal := regexp.MustCompile(`(?:Warning\{+Code: |[wW]arn\((?:[\w.]+, )?|notices\.(?:add|count)\()"([a-z-]+[a-z])"`)
	found := 0
	for _, path := range strings.Fields(string(list)) {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata/") {
			continue
		}
		text, err := os.ReadFile("../../" + path)
		if err != nil {
			continue
		}
		for _, m := range literal.FindAllStringSubmatch(string(text), -1) {
			if found++; !seen[m[1]] {
				t.Errorf("%s: code %q is neither a warning nor a note", path, m[1])
			}
		}
	}
	if found < 40 {
		t.Errorf("found only %d codes", found)
	}
}
