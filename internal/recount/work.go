package recount

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Work is what was worked out again of runs' folders. It is kept, so that several reports of the same folders are held
// against it: what takes long hangs on the folders, and not on what a report says.
type Work struct {
	runs     []*Run
	memory   []*memoryFolder
	evidence []*evidence
	foreign  []*foreignFile // of the runs that are another program's CSV; nil: a folder
	made     map[string]any
}

// From reads the folders of a report's runs, in its order, and other programs' CSV files among them.
func From(t testing.TB, dirs ...string) *Work {
	t.Helper()
	w := &Work{made: map[string]any{}}
	for _, dir := range dirs {
		if strings.HasSuffix(dir, ".csv") {
			w.rowsOf(t, dir)
			continue
		}
		f, err := read(dir)
		if err != nil {
			t.Fatal(err)
		}
		m, err := readMemory(f)
		if err != nil {
			t.Fatal(err)
		}
		e, err := gather(f)
		if err != nil {
			t.Fatal(err)
		}
		w.runs, w.memory, w.evidence = append(w.runs, f.figures()), append(w.memory, m), append(w.evidence, e)
		w.foreign = append(w.foreign, nil)
	}
	return w
}

// kept makes what a key stands for, once. Whoever gets it changes nothing of it.
func kept[T any](w *Work, key string, of func() T) T {
	if v, ok := w.made[key]; ok {
		return v.(T)
	}
	v := of()
	w.made[key] = v
	return v
}

// Check fails where a report's JSON or page has another figure than was worked out again from the runs' folders, has
// one that was not, or lacks one.
func Check(t testing.TB, text []byte, page string, dirs ...string) {
	t.Helper()
	From(t, dirs...).Check(t, text, page)
}

// Check is the same of folders that were worked out already.
func (w *Work) Check(t testing.TB, text []byte, page string) {
	t.Helper()
	var res result
	if err := json.Unmarshal(text, &res); err != nil {
		t.Fatal(err)
	}
	c := &check{TB: t, Work: w, res: res}
	for _, cell := range res.Cells {
		at := slices.IndexFunc(w.runs[cell.Run].Cells, func(c Cell) bool { return c.ID == cell.Spec.ID })
		if at < 0 {
			t.Fatalf("%s: the run has no cell %d", cell.Label, cell.Spec.ID)
		}
		c.cells = append(c.cells, &w.runs[cell.Run].Cells[at])
	}
	c.memories(text) // before figures(): two of those come of it
	c.figures()
	c.ratios()
	c.intervals(text)
	c.parity()
	c.tokens(text)
	c.loads(text)
	c.told(text)
	c.risks(text, page)
	c.disturbed(text)
	c.foreigners(text, page)
	c.stops()
	c.page(page)
	if c.compared < 8*len(c.cells) {
		t.Errorf("only %d figures of %d cells were compared", c.compared, len(c.cells))
	}
	t.Logf("%d figures, ratios and counts worked out again", c.compared)
}

// cell names a cell among those of all runs.
func (c *check) cell(i int) string {
	return fmt.Sprint(" of ", c.res.Cells[i].Run, " ", c.res.Cells[i].Spec.ID)
}
