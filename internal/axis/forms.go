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

// FormNameAmong names a form by its dtype, or by its file where another file has the same: a quantisation may fall back
// to the types of another one.
func FormNameAmong(m *record.Model, all []*record.Model) string {
	name := FormName(m)
	twin := func(o *record.Model) bool { return o.Values() != m.Values() && FormName(o) == name }
	if m.File != "" && slices.ContainsFunc(all, twin) {
		return strings.TrimSuffix(filepath.Base(m.File), ".gguf")
	}
	return name
}
