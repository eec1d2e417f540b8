package axis

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/record"
)

// Family identifies the model of which a file is a form; empty if its shape is unknown.
func Family(m *record.Model) string {
	if m.Layers == 0 {
		return ""
	}
	return fmt.Sprint(work(m), shape(m))
}

// FormName names a form by the dtype in the model's name, else by that of its weights.
func FormName(m *record.Model) string {
	return dtype.People(cmp.Or(dtype.InName(m.Name), m.DType, m.Name))
}

// FormNameAmong names a form by its dtype. Where another file has the same, it is named by its file, without what the
// names of all files begin with: a quantisation may fall back to the types of another one.
func FormNameAmong(m *record.Model, all []*record.Model) string {
	name := FormName(m)
	twin := func(o *record.Model) bool { return o.Values() != m.Values() && FormName(o) == name }
	if m.File != "" && slices.ContainsFunc(all, twin) {
		short := fileName(m)[common(m, all):]
		taken := func(o *record.Model) bool { return FormName(o) == short && FormName(o) != name }
		if slices.ContainsFunc(all, taken) {
			return fileName(m)
		}
		return short
	}
	return name
}

func fileName(m *record.Model) string { return strings.TrimSuffix(filepath.Base(m.File), ".gguf") }

// common is the length of what the names of all files begin with, up to a separator. It leaves something of each.
func common(m *record.Model, all []*record.Model) int {
	const separators = "-._ "
	own := fileName(m)
	n, shortest := len(own), len(own)
	for _, o := range all {
		if o.File == "" || o.File == m.File {
			continue
		}
		other := fileName(o)
		shortest = min(shortest, len(other))
		for n = min(n, len(other)); own[:n] != other[:n]; {
			n--
		}
	}
	if n < shortest && strings.ContainsRune(separators, rune(own[n])) {
		return n + 1
	}
	return 1 + strings.LastIndexAny(own[:min(n, shortest-1)], separators)
}
