package main

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is what imports of our own packages begin with.
const module = "llmparity/"

// Packages in these tables stand for themselves and what is below them. Of several rows about a package the longest
// counts. Parts of one row's package may import each other; tests, and packages for tests, may import what they like.

// importers has who alone may import a package. One without a row is for all.
var importers = map[string]string{
	"cmd":           "",
	"reports":       "cmd internal/doctor scripts/reference",
	"compare":       "cmd reports internal/doctor internal/reproduce scripts/reference",
	"compare/stats": "cmd compare internal/figure internal/fit internal/gates internal/resolve internal/truth reports",
	"browser":       "cmd internal/fit internal/inspect internal/kinds",
	"native":        "cmd internal/kinds",

	"internal/kinds":     "cmd scripts/reference",
	"internal/doctor":    "cmd",
	"internal/dryrun":    "cmd",
	"internal/fit":       "cmd",
	"internal/inspect":   "cmd",
	"internal/progress":  "cmd",
	"internal/reproduce": "cmd",
	"internal/resolve":   "cmd internal/dryrun internal/fit",
	"internal/run":       "cmd internal/progress internal/resolve",
	"internal/plan":      "cmd internal/doctor internal/reproduce internal/resolve internal/run scripts/reference",
	"internal/engine": "cmd browser examples native internal/doctor internal/dryrun internal/estimate internal/fit " +
		"internal/inspect internal/kinds internal/model internal/plan internal/prompts internal/reproduce internal/resolve internal/run",
	"internal/sample": "cmd browser examples native internal/doctor internal/engine internal/fit internal/reproduce " +
		"internal/resolve internal/run internal/truth internal/watch",

	// Tests compare engines with it. Only the example engines compute with it, also wrongly.
	"internal/tiny/reference": "examples internal/resolve internal/tiny/damage",
	"internal/tiny/damage":    "examples",

	// Whoever imports what embeds assets has them in its program.
	"assets/page":            "cmd browser/webllm",
	"assets/charts":          "cmd internal/doctor reports",
	"assets/plans":           "cmd internal/doctor scripts/reference",
	"assets/modellib":        "internal/modellib",
	"docs/reference/schemas": "cmd scripts/reference",
}

// imports has all that a package may import of ours. One without a row may import what importers lets it.
var imports = map[string]string{
	"compare":        "internal/accuracy internal/fault internal/figure internal/gates internal/record internal/rounding internal/warning",
	"compare/answer": "compare internal/figure internal/record internal/warning",
	"compare/gate":   "compare internal/baseline internal/fault internal/figure internal/gates internal/record internal/words",
	"compare/growth": "compare/evidence compare/explain compare/memory compare/stats internal/figure internal/record",
	"compare/memory": "compare/evidence compare/explain compare/hardware compare/stats internal/accuracy internal/figure " +
		"internal/gguf internal/record",
	"compare/parity":   "internal/figure internal/record internal/rounding",
	"compare/ratio":    "compare/evidence compare/explain compare/stats",
	"compare/timing":   "compare/evidence compare/explain compare/stats internal/figure internal/record",
	"compare/explain":  "compare/stats internal/record internal/warning",
	"compare/evidence": "compare/explain compare/stats internal/figure internal/record internal/words",
	"compare/validate": "compare internal/fault internal/record",
	"compare/settings": "compare/evidence compare/explain",
	"compare/hardware": "compare/evidence compare/explain compare/stats internal/record",
	"compare/stats":    "",
	"internal/warning": "",
	"reports":          "compare assets/charts internal/fault internal/figure internal/gates internal/record internal/whole internal/words",
	"reports/section":  "compare internal/figure internal/gates internal/record internal/words reports/chart reports/plain",
	"reports/chart":    "compare internal/figure internal/record reports/plain",
	"reports/plain":    "compare internal/record",
	"internal/engine":  "internal/child internal/fault internal/nearest internal/record internal/sample",
	"internal/record":  "internal/fault internal/lines internal/whole",
	"internal/figure":  "compare/stats internal/nearest internal/record",
	"internal/fault":   "",
	"internal/gates":   "compare/stats internal/figure",
}

// againstArrows finds imports that the tables do not have.
func againstArrows(file *ast.File, name string) []string {
	from := path.Dir(name)
	if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(from, "test") {
		return nil
	}
	var out []string
	for _, spec := range file.Imports {
		quoted, err := strconv.Unquote(spec.Path.Value)
		to, ours := strings.CutPrefix(quoted, module)
		if err != nil || !ours {
			continue
		}
		if key, may := row(importers, to); key != "" && !within(from, key+" "+may) {
			out = append(out, fmt.Sprintf("%s imports %s, which is only for: %s", name, to, may))
		}
		if key, may := row(imports, from); key != "" && !within(to, key+" "+may) {
			out = append(out, fmt.Sprintf("%s imports %s; %s may import only: %s", name, to, key, may))
		}
	}
	return out
}

// row is the longest in a table that is about a package; there may be none.
func row(table map[string]string, of string) (key, may string) {
	for ; of != "."; of = path.Dir(of) {
		if may, ok := table[of]; ok {
			return of, may
		}
	}
	return "", ""
}

// within tells whether a package is one of those in a list, or below one.
func within(of, list string) bool {
	return slices.ContainsFunc(strings.Fields(list), func(one string) bool {
		return of == one || strings.HasPrefix(of, one+"/")
	})
}
