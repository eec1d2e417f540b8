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
	"cmd":            "",
	"reports":        "cmd internal/bench/doctor scripts/reference",
	"compare":        "cmd reports internal/bench/doctor internal/bench/reproduce internal/history/collect scripts/reference",
	"internal/stats": "compare internal/bench/bisect internal/bench/resolve internal/figure internal/gates internal/history internal/host/noise internal/host/sample/truth internal/predict/fit reports",
	"browser":        "cmd examples internal/kinds",
	"native":         "cmd internal/kinds",
	"native/logs":    "browser/wllama native", // the log of llama.cpp, wherever it runs

	"internal/history":          "cmd reports/dashboard",
	"internal/kinds":            "cmd scripts/reference",
	"internal/bench":            "cmd",
	"internal/bench/plan":       "cmd internal/bench scripts/reference",
	"internal/bench/resolve":    "cmd internal/bench internal/predict/fit",
	"internal/predict":          "cmd",
	"internal/predict/accuracy": "compare/memory internal/predict",
	"internal/predict/layout":   "internal/predict/estimate",
	"internal/predict/estimate": "cmd internal/bench internal/predict",
	"internal/engine":           "cmd browser examples internal/bench internal/kinds internal/predict native",
	"internal/host/sample":      "cmd browser examples internal/bench internal/engine internal/predict/fit native",

	// Tests compare engines with it. Only the example engines compute with it, also wrongly.
	"internal/models/tiny/reference": "examples internal/bench/resolve internal/models/tiny/damage",
	"internal/models/tiny/damage":    "examples",

	// A program contains all assets that its packages embed.
	"assets/bundle":          "assets/profiler browser/webllm cmd",
	"assets/wllama":          "browser/wllama",
	"assets/transformersjs":  "browser/transformersjs",
	"assets/page":            "assets/profiler browser",
	"assets/profiler":        "cmd",
	"assets/charts":          "browser/byhand cmd internal/bench/doctor reports",
	"assets/plans":           "cmd internal/bench/doctor scripts/reference",
	"assets/modellib":        "internal/models/modellib",
	"docs/reference/schemas": "cmd scripts/reference",
}

// imports has all that a package may import of ours. One without a row may import what importers lets it.
var imports = map[string]string{
	"internal/kit":    "",
	"internal/dtype":  "", // so that comparisons, records and model files share one table
	"internal/record": "internal/dtype internal/kit",
	"internal/host":   "internal/kit internal/record internal/stats",
	"internal/models": "assets/modellib internal/dtype internal/host internal/kit internal/record",
	"internal/engine": "internal/depth internal/host internal/kit internal/models internal/record",
	"internal/depth":  "",
	"compare":         "internal/axis internal/dtype internal/figure internal/gates internal/kit internal/record internal/stats internal/warning",
	"compare/answer":  "compare internal/axis internal/figure internal/gates internal/record internal/stats internal/warning",
	"compare/gate": "compare internal/axis internal/baseline internal/figure internal/gates internal/kit internal/record " +
		"internal/stats",
	"compare/growth": "compare/evidence compare/explain compare/memory internal/axis internal/figure internal/record internal/stats",
	"compare/memory": "compare/evidence compare/explain compare/hardware internal/dtype internal/figure " +
		"internal/predict/accuracy internal/record internal/stats",
	"compare/parity":           "compare/evidence compare/explain internal/figure internal/record internal/stats",
	"compare/matrix":           "compare/evidence compare/parity internal/axis internal/record",
	"compare/pairs":            "compare/evidence internal/axis internal/record",
	"compare/label":            "compare/evidence compare/explain internal/axis internal/dtype internal/kit internal/record",
	"compare/conduct":          "compare/evidence internal/record",
	"compare/ratio":            "compare/evidence compare/explain internal/stats",
	"compare/verdict":          "compare/evidence compare/explain compare/ratio internal/figure internal/stats",
	"compare/timing":           "compare/evidence compare/explain internal/figure internal/record internal/stats",
	"compare/explain":          "internal/record internal/stats internal/warning",
	"compare/evidence":         "compare/explain internal/axis internal/dtype internal/figure internal/kit internal/record internal/stats",
	"compare/validate":         "compare internal/kit internal/record",
	"compare/settings":         "compare/evidence compare/explain",
	"compare/cost":             "compare/evidence compare/ratio internal/figure internal/stats",
	"compare/ship":             "compare/evidence compare/ratio internal/stats",
	"compare/hardware":         "compare/evidence compare/explain internal/record internal/stats",
	"internal/history":         "internal/host/child internal/kit internal/stats",
	"internal/history/collect": "compare internal/axis internal/figure internal/history internal/kit internal/record internal/stats",
	"internal/history/change":  "internal/stats",
	"internal/stats":           "",
	"internal/warning":         "",
	"internal/axis":            "internal/dtype internal/record",
	"internal/figure":          "internal/kit internal/record internal/stats",
	"internal/gates":           "internal/figure internal/stats",
	"reports": "assets/charts compare internal/axis internal/figure internal/gates internal/kit internal/record " +
		"internal/stats",
	"reports/dashboard": "assets/charts internal/history internal/kit reports",
	"reports/section": "compare internal/axis internal/figure internal/gates internal/kit internal/record internal/stats " +
		"reports/chart reports/matrix reports/plain reports/sides",
	"reports/matrix": "compare internal/dtype reports/plain",
	"reports/sides":  "compare internal/figure internal/gates internal/kit internal/stats reports/plain",
	"reports/paper":  "compare internal/axis internal/figure internal/kit internal/record reports/plain reports/section",
	"reports/chart":  "compare internal/axis internal/figure internal/gates internal/record internal/stats reports/plain",
	"reports/plain":  "compare internal/kit internal/record",
	"reports/flame":  "internal/depth",
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

// within reports whether a package is one of those in a list, or below one.
func within(of, list string) bool {
	return slices.ContainsFunc(strings.Fields(list), func(one string) bool {
		return of == one || strings.HasPrefix(of, one+"/")
	})
}
