package plan

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Cells names cells by values of axes, e.g. {engine: webllm, context: [1024, 2048]}.
type Cells map[string][]string

// cellNames are the fields, in the order in which they are written.
func cellNames(versions []string) []string {
	out := []string{"model", "engine"}
	for _, a := range axes(nil) {
		switch a {
		case ofThreads:
			out = append(append(out, versions...), a.name(nil))
		case ofEngine:
			out = append(out, "input_length")
		default:
			out = append(out, a.name(nil))
		}
	}
	return out
}

// read accepts single values and lists, and the names of either.
func (c *Cells) read(r *reader, n *node, path string) error {
	if !n.grouped() {
		return mistyped(n, path, groupOfSettings)
	}
	*c = Cells{}
	names := cellNames(r.kinds.VersionAxes())
	for _, e := range n.fields {
		name := cellName(e.name, names)
		at := join(path, e.name)
		if name == "" {
			return unknownField(e, path, names)
		}
		if _, twice := (*c)[name]; twice {
			return wrong(e.key, at, "duplicate field")
		}
		var values []string
		if err := r.value(e.value, reflect.ValueOf(&values).Elem(), at); err != nil {
			return err
		}
		if len(values) == 0 {
			return wrong(e.key, at, "no value")
		}
		(*c)[name] = values
	}
	if len(*c) == 0 {
		return wrong(n, path, "empty; name cells, e.g. {engine: webllm}")
	}
	return nil
}

// cellName is the axis that a name stands for; empty: none.
func cellName(name string, names []string) string {
	if name = canonical(name); name == "max_tokens" {
		name = "output_length"
	}
	for _, known := range names {
		if name == known || name == listOf(known) {
			return known
		}
	}
	return ""
}

// MarshalYAML writes the fields in order.
func (c Cells) MarshalYAML() (any, error) {
	var out yaml.MapSlice
	versions := slices.DeleteFunc(slices.Sorted(maps.Keys(c)),
		func(name string) bool { return !strings.HasSuffix(name, "_version") })
	for _, name := range cellNames(versions) {
		values, ok := c[name]
		if !ok {
			continue
		}
		written := make([]any, len(values))
		for i, v := range values {
			written[i] = v
			if n, err := strconv.Atoi(v); err == nil && strconv.Itoa(n) == v {
				written[i] = n
			}
		}
		if len(written) == 1 {
			out = append(out, yaml.MapItem{Key: name, Value: written[0]})
		} else {
			out = append(out, yaml.MapItem{Key: name, Value: written})
		}
	}
	return out, nil
}
