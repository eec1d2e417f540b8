// Package ship compares forms of one model, such as Q8_0 and Q4_K_M: what each costs in memory and to download, and how
// much perplexity rises. It recommends the form to ship.
//
// The rule: of the forms whose perplexity rises by at most a tolerance, take the one with the least peak memory. The
// upper end of the paired 95% interval counts, so a form with too few windows never qualifies. Peak memory must differ
// by Mann-Whitney's test, corrected by Holm for all forms that qualify, and by the minimum effect. Among forms whose
// memory does not differ, the smallest download decides, which is exact. Without perplexities, memory decides alone. In
// a browser and natively, the browser's memory and perplexity decide. No form stands out if the interval of each
// smaller form contains the tolerance.
//
// It does not know how good a model's answers are: perplexity is that of one text.
package ship

import (
	"cmp"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/internal/stats"
)

// Tolerance is the usual tolerance: by how much perplexity may rise, as a share, in a form that keeps the quality.
const Tolerance = 0.01

// Cell is a cell of a result, which ran one form in one engine.
type Cell struct {
	Index     int    // in the result's cells
	Form      string // name of the form
	Key       string // identifies the form
	Engine    string // title, and what cells of one engine differ in
	Browser   bool
	OnCPU     bool // WebGPU ran on the CPU
	DownloadB int64
	Peak      evidence.Figure
	Launches  []float64 // peaks by launch
	Scored    bool      // it scored a text, and its perplexity has a meaning
}

// Table has the forms of one model, with a column an engine.
type Table struct {
	Model     string   `json:"model"`
	Request   string   `json:"request,omitempty"` // what is asked, if the result has several tables
	Reference int      `json:"reference_form"`    // index into Forms: the form that the others are compared with
	By        int      `json:"decided_by"`        // index into Engines: whose memory decides
	Quality   int      `json:"quality_by"`        // index into Engines: whose perplexities decide; -1: none
	Engines   []Engine `json:"engines"`
	Forms     []Form   `json:"forms"` // by download size, the largest first
	Tolerance float64  `json:"perplexity_tolerance"`
	Choice    Choice   `json:"choice"`

	cells []Cell
	rules Rules
}

// Rules say how forms are compared.
type Rules struct {
	Reference string  // key of the form that the others are compared with
	MinEffect float64 // the share below which a difference of memory does not matter
	Tolerance float64 // of perplexity
	// Change compares the perplexities of two cells that scored a text, by their indexes in the result.
	Change func(base, now int) Change
}

// Engine is a column of the table.
type Engine struct {
	Name    string `json:"name"`
	Browser bool   `json:"browser,omitempty"`
	OnCPU   bool   `json:"webgpu_on_cpu,omitempty"`
}

// Form is a row of the table.
type Form struct {
	Name      string `json:"name"`
	DownloadB int64  `json:"file_bytes"`
	Cells     []int  `json:"cells"` // of each engine, an index into the result's cells; -1: it did not run
	// Change is that of perplexity from the reference form; absent: not known.
	Change  *Change `json:"perplexity_change,omitempty"`
	Quality Kept    `json:"quality,omitempty"`

	at []int // as Cells, into the table's cells
}

// Change is how much perplexity rises from one form to another, paired by windows of the text.
type Change struct {
	Share    float64         `json:"share"`
	Interval *stats.Interval `json:"interval,omitempty"` // nil: too few windows
	Windows  int             `json:"windows"`
}

// Seen reports whether the interval excludes no change.
func (c *Change) Seen() bool { return c.Interval != nil && (c.Interval.Lo > 0 || c.Interval.Hi < 0) }

// Kept says whether a form keeps the model's quality.
type Kept string

// Answers; empty: no quality is known.
const (
	Yes       Kept = "kept"
	No        Kept = "lost"
	Undecided Kept = "undecided" // the interval contains the tolerance
	TooFew    Kept = "too-few-windows"
)

func (c *Change) kept(tolerance float64) Kept {
	switch i := c.Interval; {
	case i == nil:
		return TooFew
	case i.Hi <= tolerance:
		return Yes
	case i.Lo > tolerance:
		return No
	}
	return Undecided
}

// New makes the table of cells that differ in their forms and engines alone; nil: they have fewer than two forms.
func New(cells []Cell, rules Rules) *Table {
	t := &Table{Quality: -1, Tolerance: rules.Tolerance, cells: cells, rules: rules}
	t.columns()
	t.rows()
	if len(t.Forms) < 2 {
		return nil
	}
	t.Reference = max(0, slices.IndexFunc(t.Forms, func(f Form) bool { return t.key(&f) == rules.Reference }))
	t.decisive()
	t.qualities()
	t.Choice = t.choose()
	return t
}

// columns are the engines, browsers first.
func (t *Table) columns() {
	for _, c := range t.cells {
		at := slices.IndexFunc(t.Engines, func(e Engine) bool { return e.Name == c.Engine })
		if at < 0 {
			at = len(t.Engines)
			t.Engines = append(t.Engines, Engine{Name: c.Engine, Browser: c.Browser})
		}
		t.Engines[at].OnCPU = t.Engines[at].OnCPU || c.OnCPU
	}
	slices.SortStableFunc(t.Engines, func(a, b Engine) int {
		return cmp.Compare(one(b.Browser), one(a.Browser))
	})
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rows are the forms. Where engines have different files of a form, the download is the first column's.
func (t *Table) rows() {
	var keys []string
	for n, c := range t.cells {
		at := slices.Index(keys, c.Key)
		if at < 0 {
			at, keys = len(keys), append(keys, c.Key)
			f := Form{Name: c.Form}
			for range t.Engines {
				f.Cells, f.at = append(f.Cells, -1), append(f.at, -1)
			}
			t.Forms = append(t.Forms, f)
		}
		column := slices.IndexFunc(t.Engines, func(e Engine) bool { return e.Name == c.Engine })
		if f := &t.Forms[at]; f.at[column] < 0 {
			f.Cells[column], f.at[column] = c.Index, n
		}
	}
	for i := range t.Forms {
		f := &t.Forms[i]
		first := slices.IndexFunc(f.at, func(at int) bool { return at >= 0 })
		f.DownloadB = t.cells[f.at[first]].DownloadB
	}
	slices.SortStableFunc(t.Forms, func(a, b Form) int { return cmp.Compare(b.DownloadB, a.DownloadB) })
}

func (t *Table) key(f *Form) string {
	for _, at := range f.at {
		if at >= 0 {
			return t.cells[at].Key
		}
	}
	return ""
}

// cell is the form's cell in a column; nil: it did not run there.
func (t *Table) cell(form, column int) *Cell {
	if at := t.Forms[form].at[column]; at >= 0 {
		return &t.cells[at]
	}
	return nil
}

// decisive chooses the columns: the browser's, if several forms ran there; else the one where most did.
func (t *Table) decisive() {
	most := 0
	for column := range t.Engines {
		known := 0
		for form := range t.Forms {
			known += one(t.peak(form, column) != nil)
		}
		if known > most {
			t.By, most = column, known
		}
		if known > 1 && t.Engines[column].Browser {
			break
		}
	}
	scored := func(form, column int) bool { c := t.cell(form, column); return c != nil && c.Scored }
	columns := []int{t.By}
	for column := range t.Engines {
		columns = append(columns, column)
	}
	for _, column := range columns {
		n := 0
		for form := range t.Forms {
			n += one(scored(form, column))
		}
		if n > 1 && scored(t.Reference, column) {
			t.Quality = column
			return
		}
	}
}

// peak is the cell with the form's peak in a column; nil: it is not known.
func (t *Table) peak(form, column int) *Cell {
	if c := t.cell(form, column); c != nil && c.Peak.Known() {
		return c
	}
	return nil
}

// qualities compares each form's perplexity with the reference's.
func (t *Table) qualities() {
	for form := range t.Forms {
		if c := t.between(t.Reference, form); c != nil && form != t.Reference {
			t.Forms[form].Change, t.Forms[form].Quality = c, c.kept(t.Tolerance)
		}
	}
}

// between is the change of perplexity from one form to another; nil: it is not known.
func (t *Table) between(base, now int) *Change {
	if t.Quality < 0 {
		return nil
	}
	a, b := t.cell(base, t.Quality), t.cell(now, t.Quality)
	if a == nil || b == nil || !a.Scored || !b.Scored {
		return nil
	}
	if c := t.rules.Change(a.Index, b.Index); c.Windows > 0 {
		return &c
	}
	return nil
}
