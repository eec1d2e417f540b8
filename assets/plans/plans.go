// Package plans embeds the plans that come with the program: the one that runs when none is named, the presets, and the
// one that a new plan is begun with. It holds their text; package plan reads it.
package plans

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

// Default is what runs when no plan is named.
//
//go:embed default.yaml
var Default []byte

// Init is what a new plan is begun with: all that a plan can say, most of it commented out.
//
//go:embed init.yaml
var Init []byte

//go:embed *.yaml
var files embed.FS

// Names are the presets, in the order in which one meets them.
func Names() []string {
	return []string{"smoke", "compare", "kv-growth", "concurrency", "seqlen", "mixed", "engines"}
}

// Preset is a preset's text, without engines: which run in it their kinds say.
func Preset(name string) ([]byte, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("there is no preset %q, there are: %s", name, strings.Join(Names(), ", "))
	}
	return files.ReadFile(name + ".yaml")
}

// What says what a preset is for: the comment that it begins with, in one line.
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
