package plan

import (
	"slices"

	"llmparity/internal/axis"
	"llmparity/internal/bench/gatefile"
	"llmparity/internal/engine"
	"llmparity/internal/gates"
)

// ParseGate reads a file with the contents of "gate" in a plan, with or without that word. Errors begin with file and
// line. Its checks may name fields of the engines' sections.
func ParseGate(text []byte, file string, kinds ...*engine.Kind) (*gates.Gate, error) {
	return gatefile.Parse(text, file, false, axisOf, scopes{kinds})
}

// GateIn reads the gate of a plan and ignores the rest; nil if it has none.
func GateIn(text []byte, file string, kinds ...*engine.Kind) (*gates.Gate, error) {
	return gatefile.Parse(text, file, true, axisOf, scopes{kinds})
}

// scopes are the axes that restrict checks of gates.
type scopes struct{ kinds engine.Kinds }

// Names are those without engines' own.
func (s scopes) Names() []string { return scopeNames(nil) }

// scopeNames are the axes of include and exclude, and what plans do not list.
func scopeNames(kinds engine.Kinds) []string {
	out := cellNames(ofKinds(kinds))
	for _, x := range axis.Of() {
		if !slices.Contains(out, x.Name) {
			out = append(out, x.Name)
		}
	}
	return out
}

// Named is the axis of a field, by any of its names; empty: none.
func (s scopes) Named(field string) string {
	return among(scopeNames(s.kinds), field)
}

// Values are an axis's values as a plan has them.
func (s scopes) Values(name string, values []string) ([]string, error) {
	all := Fields(s.kinds)
	i := slices.IndexFunc(all, func(f *Field) bool {
		return f.Name == name || name == axis.Input && f.Name == axis.Prompt
	})
	if i < 0 || name == axis.Prompt {
		return values, nil
	}
	for n, text := range values {
		v, err := all[i].value(text)
		if err == nil {
			err = all[i].known(v)
		}
		if err != nil {
			return nil, err
		}
		values[n] = v.Text
	}
	return values, nil
}
