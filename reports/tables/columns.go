package tables

import (
	"slices"
	"strings"

	"llmparity/internal/figure"
)

// always are columns that say what a row is about. Every summary has them.
var always = []string{"run", "run_name", "cell", "label", "engine", "engine_version", "model", "model_sha256", "dtype",
	"prompt_id", "max_tokens", "temperature", "launches_planned", "launches_counted"}

// usual are values that go without saying where all rows have them, or none.
var usual = map[string]string{"isolation": "launch", "reused": "false", "shared": "false", "prompt_cache": "off",
	"launches_failed": "0", "launches_interrupted": "0", "setup": "1", "traffic": "one request", "requests": "1",
	"batch_size": "1", "turns": "1", "cached_prompt_tokens": "0", "multi_gpu_overhead_mb": "0"}

// Left says of a column of the summary in which case it is left out.
func Left(column string) string {
	value, has := usual[column]
	switch {
	case slices.Contains(always, column):
		return "never left out"
	case has:
		return "left out if it is " + value + " in every row"
	}
	return ""
}

// Needed leaves out the columns of a summary that say nothing of its cells: those that are absent in every row or have
// the usual value. Of a figure, those are also intervals without a width and numbers of launches that are all
// launches_counted.
func Needed(t Table) (Table, error) {
	says := make([]bool, len(t.Columns))
	counted, figures := t.index("launches_counted"), t.figures()
	err := t.Rows(func(row []Value) error {
		for i, c := range t.Columns {
			text, none := row[i].field(c.Kind), usual[c.Name]
			if at, ok := figures[i]; ok {
				switch figure := row[at]; {
				case strings.HasSuffix(c.Name, "_n") && figure.Known:
					none = row[counted].field(Integer)
				case strings.HasSuffix(c.Name, "_n"):
					none = text
				default:
					none = figure.field(Number)
				}
			}
			says[i] = says[i] || text != "" && text != none
		}
		return nil
	})
	if err != nil {
		return t, err
	}
	var names []string
	for i, c := range t.Columns {
		at, ok := figures[i]
		if says[i] && (!ok || says[at]) || slices.Contains(always, c.Name) {
			names = append(names, c.Name)
		}
	}
	return t.Choose(names), nil
}

// figures has, by the place of a column that goes with a figure, the place of the figure's.
func (t Table) figures() map[int]int {
	out := map[int]int{}
	for _, r := range figure.Columns(figure.Any) {
		for _, end := range []string{"_lo", "_hi", "_n", "_from"} {
			out[t.index(r.Column.Name+end)] = t.index(r.Column.Name)
		}
	}
	return out
}

// index is the place of a column; -1 if there is none.
func (t Table) index(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
}

// Names are the names of the columns.
func (t Table) Names() []string {
	out := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		out[i] = c.Name
	}
	return out
}

// Choose keeps the columns of these names, in the order of the names. Those that the table lacks are left out.
func (t Table) Choose(names []string) Table {
	out, rows := t, t.Rows
	out.Columns = nil
	var at []int
	for _, name := range names {
		if i := t.index(name); i >= 0 {
			at, out.Columns = append(at, i), append(out.Columns, t.Columns[i])
		}
	}
	out.Rows = func(emit func([]Value) error) error {
		chosen := make([]Value, len(at))
		return rows(func(row []Value) error {
			for i, from := range at {
				chosen[i] = row[from]
			}
			return emit(chosen)
		})
	}
	return out
}
