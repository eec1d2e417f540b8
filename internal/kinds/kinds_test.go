package kinds_test

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
	"llmparity/internal/schematest"
	"llmparity/native/llamacpp"
)

// engines maps the names of an engine to its own code.
var engines = []struct {
	name *regexp.Regexp
	own  string
}{
	{regexp.MustCompile(`(?i)webllm|web-llm`), "browser/webllm/"},
	{regexp.MustCompile(`(?i)llama[._-]?cpp|llama-server|llama-completion`), "native/llamacpp/"},
	{regexp.MustCompile(`(?:^|[^nN])(?i:ollama)`), "native/ollama/"},
	{regexp.MustCompile(`(?i)openai`), "native/openai/"},
}

// elsewhere lists files and folders that may name engines, with the reason.
var elsewhere = map[string]string{
	"internal/kinds/kinds.go": "the registry",
	"assets/page/":            "WebLLM's page",
	"scripts/lint/arrows.go":  "imports of that page",
	"scripts/reference/":      "a minimal plan",
	"internal/catalogue/":     "WebLLM's catalogue",
	"internal/model/":         "models of that catalogue",
	"internal/mlc/":           "packages that WebLLM loads",
	"internal/modellib/":      "libraries that WebLLM loads",
	"internal/plan/":          "an example in a message",
	"internal/resolve/":       "an example in a message",
	"internal/estimate/":      "llama.cpp's formulas, and WebLLM's formats",
	"internal/fault/":         "the names of exit codes",
	"internal/gguf/":          "which program repairs a file",
	"internal/tiny/":          "where llama.cpp differs from the reference",
	"internal/figure/":        "names in records",
	"compare/comparetest/":    "artificial records",
	"reports/tables/":         "an example of a label",
	"native/openai/":          "servers with OpenAI's API",
	"internal/calculator/":    "hints by engine",
	"internal/doctor/":        "Python packages, and where servers listen",
	"internal/modelsize/":     "sizes of models by engine",
	"internal/dryrun/":        "the field webllm_version of --dry-run --json",
	"internal/fit/":           "estimates depend on the engine",
	"internal/inspect/":       "describes WebLLM packages",

	"cmd/llmparity/plan.go":     "packages have their own dtype",
	"cmd/llmparity/convert.go":  "makes WebLLM packages",
	"cmd/llmparity/model.go":    "makes WebLLM packages",
	"cmd/llmparity/info.go":     "describes WebLLM packages",
	"cmd/llmparity/list.go":     "lists WebLLM's catalogue",
	"cmd/llmparity/random.go":   "help",
	"cmd/llmparity/run.go":      "help",
	"cmd/llmparity/generate.go": "help",
	"cmd/llmparity/watch.go":    "help",
	"cmd/llmparity/doctor.go":   "help",
	"cmd/llmparity/help.go":     "flags of other tools",
	"cmd/llmparity/estimate":    "estimates depend on the engine",
	"cmd/llmparity/removed.go":  "removed commands",
}

// What llmparity knows about an engine belongs in the engine's package. Other files that name one must be listed above.
func TestEnginesAreNamedInTheirOwnPackages(t *testing.T) {
	root, err := schematest.Root()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path, err = filepath.Rel(root, path)
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		example := strings.HasPrefix(path, "examples/")
		if err != nil || example || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		for _, e := range engines {
			if strings.HasPrefix(path, e.own) {
				continue
			}
			line := names(text, e.name)
			if line == 0 {
				continue
			}
			entry := allowed(path)
			used[entry] = true
			if entry == "" {
				t.Errorf("%s:%d names an engine that is in %s", path, line, e.own)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path := range elsewhere {
		if !used[path] {
			t.Errorf("%s names no engine; take it off the list", path)
		}
	}
}

// Top-level keys of a kind must not clash with fields of plans or other kinds.
func TestKindsDoNotClash(t *testing.T) {
	if err := clash(kinds.All); err != nil {
		t.Error(err)
	}
	own := func() engine.Config { return new(llamacpp.Config) }
	for name, k := range map[string]*engine.Kind{
		"a section": {Section: "timeout", Config: own}, "another name of a field": {Section: "prompt", Config: own},
		"a field of another tool": {Section: "model_id", Config: own}, "keys at the top": {Section: "x", Root: true,
			Config: func() engine.Config { return keyed{} }},
		"versions": {VersionAxis: "webllm_version"}, "a section of its own": {Section: "ollama", Config: own},
		"versions that are none": {VersionAxis: "release"},
	} {
		if clash(append(slices.Clone(kinds.All), k)) == nil {
			t.Errorf("%s: a clash is accepted", name)
		}
	}
}

// keyed is a configuration with a key that plans have.
type keyed struct{ engine.Config }

func (keyed) Fields() []engine.Field { return []engine.Field{{To: new(string), Key: "order"}} }

// clash returns an error if a top-level key of a kind is taken.
func clash(ks engine.Kinds) error {
	seen := map[string]reflect.Type{} // by key
	for _, k := range ks {
		var names []string
		var config reflect.Type
		if k.VersionAxis != "" {
			names = append(names, k.VersionAxis, k.VersionList())
			if !strings.HasSuffix(k.VersionAxis, "_version") {
				return fmt.Errorf("%s: a version axis must be named ENGINE_version", k.VersionAxis)
			}
		}
		if k.Config != nil {
			config = reflect.TypeOf(k.Config())
			names = append(names, k.Section)
		}
		if k.Root {
			names = names[:len(names)-1]
			for _, f := range k.Config().Fields() {
				if f.Key != "" {
					names = append(names, f.Key)
				}
			}
		}
		for _, name := range names {
			if other, taken := seen[name]; taken && (config == nil || other != config) {
				return fmt.Errorf("%s belongs to two kinds", name)
			}
			seen[name] = config
			if _, err := plan.Parse([]byte(name+": x\n"), "p"); !strings.Contains(err.Error(), "unknown field") {
				return fmt.Errorf("%s is a field of plans: %w", name, err)
			}
		}
	}
	return nil
}

// allowed returns the entry of elsewhere for a file; empty: none.
func allowed(path string) string {
	for prefix := range elsewhere {
		if strings.HasPrefix(path, prefix) {
			return prefix
		}
	}
	return ""
}

// names returns the first line with an identifier or string that contains a name; 0: none. Comments are ignored.
func names(text []byte, name *regexp.Regexp) int {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		pos, tok, literal := s.Scan()
		switch {
		case tok == token.EOF:
			return 0
		case (tok == token.IDENT || tok == token.STRING) && name.MatchString(literal):
			return file.Line(pos)
		}
	}
}
