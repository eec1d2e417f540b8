package plan_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"llmparity/internal/check"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
	"llmparity/internal/schematest"
)

// All plans in the documentation are valid.
func TestPlansInTheDocuments(t *testing.T) {
	root := schematest.Root(t)
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	check.Err(t, err)
	found := 0
	for _, path := range append(paths, filepath.Join(root, "README.md")) {
		text := check.Read(t, path)
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if !regexp.MustCompile(`(?m)^models?:`).MatchString(block[1]) {
				continue // of something else
			}
			found++
			if _, err := plan.Parse([]byte(block[1]), "plan.yaml", kinds.All...); err != nil {
				t.Errorf("%s: %v in\n%s", path, err, block[1])
			}
			if err := schematest.Validator(t, "plan")(asJSON(t, []byte(block[1]))); err != nil {
				t.Errorf("%s: %v in\n%s", path, err, block[1])
			}
		}
	}
	if found < 5 {
		t.Errorf("%d plans in the documents", found)
	}
}
