package axis

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

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
	words := slices.DeleteFunc(dtypesIn(m.Name), func(word string) bool {
		return strings.EqualFold(word, "gguf") || strings.EqualFold(word, "mlc")
	})
	name := cmp.Or(strings.Join(words, " "), m.DType, m.Name)
	if ggufType.MatchString(name) {
		return strings.ToUpper(name)
	}
	return name
}

// ggufType is a quantisation of GGUF files, which people write in capitals.
var ggufType = regexp.MustCompile(`^i?q\d_[0-9a-z_]+$`)

// FamilyName is a model's name without its dtype.
func FamilyName(m *record.Model) string {
	name := m.Name
	for _, word := range dtypesIn(name) {
		name = strings.Replace(name, word, "", 1)
	}
	return cmp.Or(strings.Trim(name, " -_."), m.Name)
}

// dtypesIn finds the dtypes in a name, as it writes them.
func dtypesIn(name string) (out []string) {
	lower := strings.ToLower(name)
	if len(lower) != len(name) { // of other letters
		name = lower
	}
	for _, at := range dtypeWord.FindAllStringIndex(lower, -1) {
		out = append(out, name[at[0]:at[1]])
	}
	return out
}
