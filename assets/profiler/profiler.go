// Package profiler has WebLLMProfiler, a module with which apps measure their own use of WebLLM, and what goes with it:
// types, instructions, and an example app.
//
// The module is one file. It is joined from profiler.js and the scripts that llmparity's own page uses, so that no code
// exists twice.
package profiler

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"llmparity/assets/bundle"
	"llmparity/assets/page"
)

//go:embed profiler.js webllm-profiler.d.ts README.md app
var files embed.FS

// Module is the name of the module.
const Module = "webllm-profiler.js"

// File is a file of the folder that `llmparity profiler` writes.
type File struct {
	Name string
	Text []byte
}

// Files returns all files. webllm has the scripts of WebLLM's package, of which the module uses tokens.js.
func Files(webllm fs.FS) ([]File, error) {
	module, err := joined(webllm)
	out := []File{{Module, []byte(module)}}
	for _, name := range []string{"webllm-profiler.d.ts", "README.md", "app/index.html", "app/app.js",
		"app/config.js"} {
		text, reading := files.ReadFile(name)
		err = errors.Join(err, reading)
		text = []byte(strings.ReplaceAll(string(text), "WEBLLM_VERSION", bundle.Version))
		out = append(out, File{path.Base(name), text})
	}
	return out, err
}

var (
	imported = regexp.MustCompile(`(?m)^import (?:\* as )?(\w+|\{[^}]*\}) from "([^"]+)";.*$`)
	exported = regexp.MustCompile(`(?m)^export ((?:async )?(?:const|let|class|function\*?) (\w+))`)
)

// joined is profiler.js with each import replaced by what the imported script makes in a scope of its own.
func joined(webllm fs.FS) (string, error) {
	text, err := files.ReadFile("profiler.js")
	if err != nil {
		return "", err
	}
	whole := imported.ReplaceAllStringFunc(string(text), func(line string) string {
		parts := imported.FindStringSubmatch(line)
		from, name := page.Files(), path.Base(parts[2])
		if strings.HasPrefix(parts[2], "./") {
			from = webllm
		}
		script, reading := fs.ReadFile(from, name)
		if reading == nil && imported.Match(script) {
			reading = fmt.Errorf("%s imports others, and so can't be joined", name)
		}
		err = errors.Join(err, reading)
		var names []string
		for _, found := range exported.FindAllStringSubmatch(string(script), -1) {
			names = append(names, found[2])
		}
		return fmt.Sprintf("const %s = (() => { // %s\n%s\nreturn { %s };\n})();", parts[1], name,
			strings.TrimRight(exported.ReplaceAllString(string(script), "$1"), "\n"), strings.Join(names, ", "))
	})
	return whole, err
}
