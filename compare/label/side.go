package label

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/axis"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
)

// Sides names the runs of an interleaved run by what differs between them; nil: nothing does.
func Sides(all []evidence.Subject, runs []*record.Run) []string {
	for _, of := range describers(all, runs) {
		if names := apart(len(runs), of); names != nil {
			for i, name := range names {
				names[i] = explain.Cut(name, mostOfSide)
			}
			return names
		}
	}
	return nil
}

// mostOfSide is how many letters a side's name has at most.
const mostOfSide = 48

// describers describe a run in ways that may name it, the best first: each gives the words for its cells.
func describers(all []evidence.Subject, runs []*record.Run) (out []func(run int) []string) {
	each := func(word func(*evidence.Subject) string) {
		out = append(out, func(run int) (words []string) {
			for i := range all {
				if c := &all[i]; c.Run == run && !c.Refused {
					words = append(words, word(c))
				}
			}
			return words
		})
	}
	each(build)
	each(func(c *evidence.Subject) string {
		if c.Engine == nil {
			return ""
		}
		if sum := Sum(c.Setup); sum != "" {
			return build(c) + " (" + sum + ")"
		}
		return ""
	})
	for _, x := range axis.Of(specs(all)...) {
		each(func(c *evidence.Subject) string {
			return cmp.Or(x.In(&c.Spec), "the default "+x.Title)
		})
	}
	for _, x := range evidence.AllReported()[1:] { // the first is the build
		if x.Word != nil {
			each(func(c *evidence.Subject) string { return x.Word(c.Setup) })
		}
	}
	return append(out, func(run int) []string { return requested(runs, run) })
}

// specs are what cells request.
func specs(all []evidence.Subject) []*record.Cell {
	out := make([]*record.Cell, len(all))
	for i := range all {
		out[i] = &all[i].Spec
	}
	return out
}

// build is what runs: the file of an engine's build, or else the engine with its version.
func build(c *evidence.Subject) string {
	if c.Engine == nil {
		return ""
	}
	if file, ok := strings.CutPrefix(c.Engine.Origin, record.OfFile); ok {
		return file
	}
	return words.Version(strings.TrimSpace(cmp.Or(c.Engine.Title, c.Title) + " " + c.Engine.Version))
}

// Sum is the beginning of the hash of what ran, if it is known: of the module in a browser, or else of the program.
func Sum(s *evidence.Setup) string {
	const digits = 7 // as many as Git shows
	if s.Engine == nil {
		return ""
	}
	sum := cmp.Or(s.Engine.Parts[record.BundlePart], s.Engine.SHA256)
	return sum[:min(digits, len(sum))]
}

// requested has the values that were requested for a side and not for the other.
func requested(runs []*record.Run, run int) (all []string) {
	keys := map[string]bool{}
	for _, other := range runs {
		if s := other.Meta.Side; s != nil {
			for key := range s.Differs {
				keys[key] = true
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value := ""
		if s := runs[run].Meta.Side; s != nil {
			value = s.Differs[key]
		}
		if value == "" {
			key, value = "default", key
		}
		all = append(all, strings.ReplaceAll(key+" "+value, "_", " "))
	}
	return all
}

// apart names runs by the words that not all of them have; nil: that does not distinguish them.
func apart(runs int, of func(run int) []string) []string {
	times := map[string]int{} // runs with a word
	all := make([][]string, runs)
	for run := range all {
		for _, word := range of(run) {
			all[run] = explain.AppendNew(all[run], word)
		}
		for _, word := range all[run] {
			times[word]++
		}
	}
	var names []string
	for _, words := range all {
		words = slices.DeleteFunc(words, func(word string) bool { return word == "" || times[word] == runs })
		name := strings.Join(words, ", ")
		if name == "" || slices.Contains(names, name) {
			return nil
		}
		names = append(names, name)
	}
	return names
}
