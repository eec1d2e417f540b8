package differ

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"llmparity/internal/record"
)

// Version is the name of an engine's version.
const Version = "version"

// identified is an engine with its parts.
type identified struct {
	record.EngineInfo
	parts map[string]string
}

// Engines compares two engines of one name, and their parts. Of what goes with a version or a name, only that is named.
func Engines(was, is record.EngineInfo) []Difference {
	all := []property[identified]{
		{name: Version, kind: Engine, of: func(e identified) string { return e.Version }, always: true},
		{name: "program", kind: Engine, of: func(e identified) string { return e.SHA256 }, implied: true},
	}
	before, now := identified{was, was.Identity()}, identified{is, is.Identity()}
	keys := maps.Clone(before.parts)
	maps.Copy(keys, now.parts)
	for _, key := range slices.SortedFunc(maps.Keys(keys), namesFirst) {
		all = append(all, property[identified]{name: Part(is.Name, key), kind: kindOf(key), implied: true,
			always: key == "browser", of: func(e identified) string { return e.parts[key] }})
	}
	out := between(all, before, now)
	for i := range out {
		sameMaker := was.Library != nil && is.Library != nil && was.Library.Maker == is.Library.Maker
		if out[i].What == Part("", modelLibrary) && sameMaker {
			out[i].Kind = Kernels
		}
	}
	return out
}

// Part names a part of an engine for people.
func Part(engine, key string) string {
	return strings.ReplaceAll(strings.TrimPrefix(key, engine+"_"), "_", " ")
}

// namesFirst puts names before their properties, such as browser before browser_build_id.
func namesFirst(a, b string) int {
	head := func(s string) int {
		return map[string]int{"browser": -2, modelLibrary: -2, "model_library_source": -1}[s]
	}
	return cmp.Or(head(a)-head(b), cmp.Compare(a, b))
}

const modelLibrary = "model_library"

// kindOf says what a part of an engine belongs to.
func kindOf(key string) Kind {
	switch {
	case strings.HasPrefix(key, "browser") || key == "user_agent" || key == "javascript":
		return Browser
	case strings.HasPrefix(key, modelLibrary):
		return Library
	case strings.HasPrefix(key, "model"):
		return Model
	}
	return Engine
}
