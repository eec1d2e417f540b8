// Package devices has a plan run engines with the settings of several devices.
package devices

import (
	"fmt"
	"maps"
	"slices"

	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
)

// Vary lets the engines of a kind run with each of some settings, and with no other combination of their values. A
// setting that lacks a key runs with its first value.
func Vary(p *plan.Plan, k *engine.Kind, all []engine.Section) {
	said := maps.Clone(p.Sections[k.Section])
	if said == nil {
		said = engine.Section{}
	}
	values := map[string][]string{}
	for _, s := range all {
		for key, v := range s {
			if text := fmt.Sprint(v); !slices.Contains(values[key], text) {
				values[key] = append(values[key], text)
			}
		}
	}
	keys := slices.Sorted(maps.Keys(values))
	for _, key := range keys {
		said[key] = values[key]
	}
	p.Say(k.Section, said)
	for _, c := range combinations(keys, values) {
		if !slices.ContainsFunc(all, func(s engine.Section) bool { return means(s, c, values) }) {
			out := plan.Entry{}
			for key, text := range c {
				out[k.Field(key)] = []string{text}
			}
			p.Exclude = append(p.Exclude, out)
		}
	}
}

// combinations are all combinations of the values of some keys.
func combinations(keys []string, values map[string][]string) []map[string]string {
	out := []map[string]string{{}}
	for _, key := range keys {
		var next []map[string]string
		for _, c := range out {
			for _, v := range values[key] {
				more := maps.Clone(c)
				more[key] = v
				next = append(next, more)
			}
		}
		out = next
	}
	return out
}

// means reports whether a setting is this combination.
func means(s engine.Section, c map[string]string, values map[string][]string) bool {
	for key, v := range c {
		own, ok := s[key]
		if !ok {
			own = values[key][0]
		}
		if fmt.Sprint(own) != v {
			return false
		}
	}
	return true
}
