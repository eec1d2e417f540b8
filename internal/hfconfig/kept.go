package hfconfig

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// pattern is an entry of a config's list of modules that are not quantised.
type pattern struct {
	layer int            // of a single layer; -1: of all
	name  string         // within the layer, or of the whole model
	match *regexp.Regexp // in place of both: of a module's whole name
}

// patternOf reads an entry: a module's name, with * for anything, or a regular expression behind "re:".
func patternOf(module string) (pattern, error) {
	if text, ok := strings.CutPrefix(module, "re:"); ok {
		re, err := regexp.Compile("^(?:" + text + ")")
		return pattern{match: re}, err
	}
	if strings.Contains(module, "*") {
		re, err := regexp.Compile(`(?:^|\.)` + strings.ReplaceAll(regexp.QuoteMeta(module), `\*`, ".*") + `(?:\.|$)`)
		return pattern{match: re}, err
	}
	_, within, found := strings.Cut(module, "layers.")
	if !found {
		return pattern{layer: -1, name: strings.TrimPrefix(module, "model.")}, nil
	}
	number, rest, _ := strings.Cut(within, ".")
	layer, err := strconv.Atoi(number)
	if err != nil {
		return pattern{layer: -1, name: module}, nil // a module that is called something like layers
	}
	return pattern{layer: layer, name: rest}, nil
}

// keeps tells whether a weight of a layer stays as it was.
func (p pattern) keeps(layer int, name string) bool {
	if p.match != nil {
		module := strings.TrimSuffix(name, ".weight")
		for _, of := range []string{"model.layers.", "language_model.model.layers.", "model.language_model.layers."} {
			if p.match.MatchString(of + strconv.Itoa(layer) + "." + module) {
				return true
			}
		}
		return false
	}
	return (p.layer == -1 || p.layer == layer) &&
		(p.name == "" && p.layer >= 0 || strings.HasPrefix(name, p.name+".") || strings.Contains(name, "."+p.name+"."))
}

// Kept is how many of a weight's copies stay as they were, of a model of so many layers, by the config's list of
// modules.
func (q Quantized) Kept(w Weight, layers int) int64 {
	if len(q.kept) == 0 || !w.Linear || layers < 1 {
		return 0
	}
	names := []string{w.Name}
	if strings.Contains(w.Name, "shared_expert.") { // families differ in what they call them
		names = append(names, strings.Replace(w.Name, "shared_expert.", "shared_experts.", 1))
	}
	kept := 0
	for layer := range layers {
		if q.keeps(layer, names) {
			kept++
		}
	}
	if w.Times <= int64(layers) { // one a layer, and not in all of them
		return min(int64(kept), w.Times)
	}
	return int64(float64(w.Times) * float64(kept) / float64(layers))
}

func (q Quantized) keeps(layer int, names []string) bool {
	for _, p := range q.kept {
		for _, name := range names {
			if p.keeps(layer, name) {
				return true
			}
		}
	}
	return false
}

// note says what of the list is not understood.
func (q Quantized) note() string {
	return fmt.Sprintf("%d entries of the list of modules that are not quantised can't be read (%.60q): these are taken for quantised", len(q.notUnderstood), q.notUnderstood[0])
}
