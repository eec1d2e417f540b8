package plan

import (
	"llmparity/internal/engine"
)

// Bare is a plan without where it is from.
func Bare(p Plan) Plan {
	p.from = source{}
	return p
}

// ScopeNames are the axes that checks of a gate are restricted by.
func ScopeNames(kinds engine.Kinds) []string { return scopeNames(kinds) }

// EntryNames are the fields of entries of include and exclude: axes, and their lists.
func EntryNames(kinds engine.Kinds) (out []string) {
	for _, name := range cellNames(ofKinds(kinds)) {
		out = append(out, name)
		if list := listOf(name); list != name {
			out = append(out, list)
		}
	}
	return out
}
