package axis

import (
	"cmp"
	"fmt"

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
