package explain

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// docs/reference/warnings.md has a row for each sentence.
func TestWarningsAreDocumented(t *testing.T) {
	const path = "../../docs/reference/warnings.md"
	verb := regexp.MustCompile(`%[+.\d]*[a-z]`)
	var b strings.Builder
	b.WriteString("# Warnings\n\nWhat a comparison warns of, by code. Engines and runs have warnings of their own beside these.\n\n" +
		"| code | what it says | what to do |\n|---|---|---|\n")
	for _, code := range slices.Sorted(maps.Keys(sentences)) {
		s := sentences[code]
		if code == UnknownCache {
			code = PromptCache
		}
		text := strings.ReplaceAll(verb.ReplaceAllString(s.Text, "…"), "%%", "%")
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", code, text, s.Do)
	}
	was, err := os.ReadFile(path)
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if err != nil || string(was) != b.String() {
		t.Errorf("%s is out of date (%v): go test ./compare/explain -update", path, err)
	}
}
