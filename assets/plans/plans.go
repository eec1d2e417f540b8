// Package plans embeds the built-in plans: the default, the presets, and the template of plan init. Package plan reads
// them.
package plans

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

// Default is the plan of a run without a plan.
//
//go:embed default.yaml
var Default []byte

// Init is the template of a new plan, with optional fields in comments.
//
//go:embed init.yaml
var Init []byte

//go:embed *.yaml
var files embed.FS

// Names are the presets.
func Names() []string {
	return []string{"smoke", "compare", "kv-growth", "concurrency", "seqlen", "mixed", "engines", "matrix"}
}

// Preset is a preset's text. It names no engines: those whose kind belongs to the preset run.
func Preset(name string) ([]byte, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("unknown preset %q; available: %s", name, strings.Join(Names(), ", "))
	}
	return files.ReadFile(name + ".yaml")
}

// What describes a preset: its first comment, in one line.
func What(name string) (string, error) {
	text, err := Preset(name)
	if err != nil {
		return "", err
	}
	var words []string
	for line := range strings.Lines(string(text)) {
		comment, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		words = append(words, strings.Fields(comment)...)
	}
	return strings.Join(words, " "), nil
}
