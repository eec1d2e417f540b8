package axis

import (
	"cmp"
	"fmt"
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

// FormName names a form by the dtypes in the model's name, else by the dtype of its weights.
func FormName(m *record.Model) string {
	words := slices.DeleteFunc(dtype.In(m.Name), func(word string) bool {
		return strings.EqualFold(word, "gguf") || strings.EqualFold(word, "mlc")
	})
	return dtype.People(cmp.Or(strings.Join(words, " "), m.DType, m.Name))
}

// FamilyName is a model's name without its dtype.
func FamilyName(m *record.Model) string {
	if m.Title != "" {
		return m.Title
	}
	name := m.Name
	for _, word := range dtype.In(name) {
		name = strings.Replace(name, word, "", 1)
	}
	return cmp.Or(strings.Trim(name, " -_."), m.Name)
}
