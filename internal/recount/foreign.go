package recount

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What other programs wrote about memory, read again: a label is a cell with one launch.

// foreignFile is such a file as it was read.
type foreignFile struct {
	path, name, sha256 string
	begin              int64 // of all rows
	labels             []string
	rows               map[string][]foreignRow // by label, as they were written
	cut                bool                    // the last line has no end
	wordless           map[string][]int        // by column, the lines with a word for nothing in it
	backwards          []int                   // lines that are earlier than the one before of the same process
}

type foreignRow struct {
	line      int
	at        int64
	process   string
	rss, heap float64 // MiB; NaN where there is none
}

func readForeign(path string) (*foreignFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &foreignFile{path: path, name: filepath.Base(path), sha256: fmt.Sprintf("%x", sha256.Sum256(text)),
		rows: map[string][]foreignRow{}, wordless: map[string][]int{}}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	end := bytes.LastIndexByte(text, '\n') + 1
	f.cut = len(bytes.TrimSpace(text[end:])) > 0
	of := csv.NewReader(bytes.NewReader(text[:end]))
	head, err := of.Read()
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for i, name := range head {
		at[strings.ToLower(strings.TrimSpace(name))] = i
	}
	records, err := of.ReadAll()
	if err != nil {
		return nil, err
	}
	latest := map[string]int64{} // by label and process
	for i, fields := range records {
		if err := f.row(row{at, fields}, i+2, latest); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	f.begin = math.MaxInt64
	for _, rows := range f.rows {
		for _, r := range rows {
			f.begin = min(f.begin, r.at)
		}
	}
	return f, nil
}

func (f *foreignFile) row(r row, line int, latest map[string]int64) error {
	field := func(name string) string { return strings.TrimSpace(r.text(name)) }
	at, err := moment(field("timestamp"))
	if err != nil {
		return err
	}
	label := cmp.Or(field("label"), strings.TrimSuffix(f.name, filepath.Ext(f.name)))
	if f.rows[label] == nil {
		f.labels = append(f.labels, label)
	}
	size := func(column string) float64 {
		text := field(column)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) {
			if text != "" {
				f.wordless[column] = append(f.wordless[column], line)
			}
			return math.NaN()
		}
		return v
	}
	process := fmt.Sprintf("%s from %s, %q", strings.TrimSuffix(cmp.Or(field("pid"), "0"), ".0"), field("start"),
		field("name"))
	now := foreignRow{line, at, process, size("rss_mb"), size("heap_used_mb")}
	size("vms_mb") // which is not shown, but warned of
	key := label + "\x00" + process
	if before, known := latest[key]; known && at < before {
		f.backwards = append(f.backwards, line)
	}
	latest[key] = at
	f.rows[label] = append(f.rows[label], now)
	return nil
}

// moment is a timestamp in nanoseconds since 1970: a number by how large it is, or ISO 8601, which is UTC where no zone
// is told.
func moment(text string) (int64, error) {
	if v, ok := new(big.Rat).SetString(text); ok {
		size, _ := v.Float64()
		unit := int64(1)
		for _, least := range []float64{1e17, 1e14, 1e11} {
			if size < least {
				unit *= 1000
			}
		}
		v.Add(v.Mul(v, big.NewRat(unit, 1)), big.NewRat(1, 2)) // to be rounded
		return new(big.Int).Div(v.Num(), v.Denom()).Int64(), nil
	}
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixNano(), nil
		}
	}
	return 0, fmt.Errorf("%q is no time", text)
}

// sums are those of RSS over the processes that are there at each time that a label has: from a process's first row to
// its last it counts with what it had last.
func (f *foreignFile) sums(label string) (sums []float64, apart bool) {
	rows := slices.Clone(f.rows[label])
	slices.SortStableFunc(rows, func(a, b foreignRow) int { return cmp.Compare(a.at, b.at) })
	var times []int64
	of := map[string][]foreignRow{}
	var order []string
	for _, r := range rows {
		if times = append(times, r.at); of[r.process] == nil {
			order = append(order, r.process)
		}
		of[r.process] = append(of[r.process], r)
	}
	for _, now := range slices.Compact(times) {
		sum := 0.0
		for _, process := range order {
			all := of[process]
			if now < all[0].at || now > all[len(all)-1].at {
				continue
			}
			had := all[0]
			for _, r := range all {
				if r.at <= now {
					had = r
				}
			}
			sum, apart = sum+had.rss, apart || had.at != now
		}
		sums = append(sums, sum)
	}
	return sums, apart
}

// length is the time from a label's first row to its last, and how many processes it has.
func (f *foreignFile) length(label string) (seconds float64, processes int) {
	first, last, all := int64(math.MaxInt64), int64(math.MinInt64), map[string]bool{}
	for _, r := range f.rows[label] {
		first, last, all[r.process] = min(first, r.at), max(last, r.at), true
	}
	return float64(last-first) / 1e9, len(all)
}

// rowsOf takes such a file for a run: of each label a launch that counts, of which nothing else is known.
func (w *Work) rowsOf(t testing.TB, path string) {
	t.Helper()
	file, err := readForeign(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{dir: path, engines: map[int]string{}, styles: map[int]style{}, by: map[int]*attempt{}}
	m := &memoryFolder{cells: map[int]*memoryCell{}, by: map[int]*memoryAttempt{}}
	for i, label := range file.labels {
		a := &attempt{id: i + 1, cell: i + 1, opener: i + 1, counted: true}
		sums, _ := file.sums(label)
		for _, sum := range sums {
			a.totals = append(a.totals, total{method: "foreign", rss: sum, pss: math.NaN(), uss: math.NaN()})
		}
		f.cells, f.engines[a.id] = append(f.cells, a.id), label
		f.attempts, f.by[a.id] = append(f.attempts, a), a
		m.cells[a.id], m.by[a.id] = &memoryCell{engine: label},
			&memoryAttempt{attempt: a, sources: map[int]memorySource{}}
		m.attempts = append(m.attempts, m.by[a.id])
	}
	run := f.figures()
	for i, label := range file.labels {
		c := &run.Cells[i]
		heap := math.NaN()
		for _, r := range file.rows[label] {
			if !math.IsNaN(r.heap) {
				heap = higher(heap, r.heap)
			}
		}
		c.add("peak_js_heap", c.ID, heap)
		of := c.Figures["peak_js_heap"]
		c.conclude(&of)
		c.Figures["peak_js_heap"] = of
	}
	w.runs, w.memory, w.evidence = append(w.runs, run), append(w.memory, m), append(w.evidence, newEvidence(f))
	w.foreign = append(w.foreign, file)
}

// foreigners holds what is said of such files beside their figures: where they are from, how long they are, what is odd
// in them, and that nothing is set against them unless it is marked.
func (c *check) foreigners(text []byte, page string) {
	c.Helper()
	var res struct {
		Runs []struct {
			Name, Dir string
			Started   time.Time
		}
		Cells []struct {
			Label  string
			Run    int
			Spec   struct{ ID int }
			Engine *struct {
				Version, SHA256 string
				Parts           map[string]string
			} `json:"engine_info"`
			Device json.RawMessage
			Parts  json.RawMessage `json:"memory_breakdown"`
		}
		Warnings []warned
	}
	if err := json.Unmarshal(text, &res); err != nil {
		c.Fatal(err)
	}
	for i, file := range c.foreign {
		if file == nil {
			continue
		}
		c.word("the run of "+file.name, res.Runs[i].Name, file.name)
		c.same("nanoseconds from the begin of "+file.name, float64(res.Runs[i].Started.UnixNano()-file.begin), 0)
		c.oddities(file, slices.DeleteFunc(slices.Clone(res.Warnings), func(w warned) bool {
			return len(c.foreign) > 1 && w.Code != "readings-apart" && w.Where != "run "+file.name
		}))
	}
	for _, cell := range res.Cells {
		file := c.foreign[cell.Run]
		if file == nil {
			continue
		}
		label := file.labels[cell.Spec.ID-1]
		if !strings.Contains(cell.Label, label) || cell.Engine == nil {
			c.Errorf("the label %q is called %q, of %+v", label, cell.Label, cell.Engine)
			continue
		}
		what := "rows of " + cell.Label
		c.word(what+", file", cell.Engine.Version, file.name)
		c.word(what+", SHA-256", cell.Engine.SHA256, file.sha256)
		c.word(what+", rows", cell.Engine.Parts["rows"], strconv.Itoa(len(file.rows[label])))
		if c.compared++; len(cell.Device)+len(cell.Parts) > 0 {
			c.Errorf("%s: there is a device %s or components %s", what, cell.Device, cell.Parts)
		}
	}
	c.foreignRatios(text)
	c.foreignTables(page)
}

// foreignRatios are those that are asked for, each marked: of what both have of the two figures that such rows give.
func (c *check) foreignRatios(text []byte) {
	var res struct {
		Comparisons []struct {
			A, B   int
			Ratios []struct{ Figure, Different string }
		}
		Statistics struct {
			Asked bool `json:"allow_different"`
		}
	}
	if err := json.Unmarshal(text, &res); err != nil {
		c.Fatal(err)
	}
	is := func(cell int) bool { return c.foreign[c.res.Cells[cell].Run] != nil }
	want := map[string]bool{}
	for a := range c.cells {
		for b := a + 1; b < len(c.cells) && res.Statistics.Asked; b++ {
			for _, name := range []string{"peak_rss_sum", "peak_js_heap"} {
				if (is(a) || is(b)) && len(c.cells[a].Figures[name].Values) > 0 &&
					len(c.cells[b].Figures[name].Values) > 0 {
					want[fmt.Sprintf("%s of %s over %s", name, c.res.Cells[a].Label, c.res.Cells[b].Label)] = true
				}
			}
		}
	}
	for _, p := range res.Comparisons {
		for _, r := range p.Ratios {
			if !is(p.A) && !is(p.B) {
				continue
			}
			what := fmt.Sprintf("%s of %s over %s", r.Figure, c.res.Cells[p.A].Label, c.res.Cells[p.B].Label)
			if c.compared++; !want[what] || r.Different == "" {
				c.Errorf("%s should not be there, or not unmarked: %q", what, r.Different)
			}
			delete(want, what)
		}
	}
	for what := range want {
		c.Errorf("the report has no %s", what)
	}
}

// oddities are the warnings of a file: of each kind one, with how many there are and the line of the first.
func (c *check) oddities(file *foreignFile, all []warned) {
	count := func(code, words string, lines []int) {
		found := slices.DeleteFunc(slices.Clone(all),
			func(w warned) bool { return w.Code != code || !strings.Contains(w.Text, words) })
		what := "odd in " + file.name + ": " + code + " " + words
		if c.same(what+", warnings", float64(len(found)), min(1, float64(len(lines)))); len(found) != 1 ||
			len(lines) == 0 {
			return
		}
		first := strconv.Itoa(slices.Min(lines))
		c.compared += 2
		if !strings.Contains(found[0].Text, "in line "+first) ||
			!slices.Contains(strings.Fields(found[0].Text), strconv.Itoa(len(lines))) {
			c.Errorf("%s: it says %q; worked out again there are %d, the first in line %s", what, found[0].Text,
				len(lines), first)
		}
	}
	for _, column := range []string{"rss_mb", "vms_mb", "heap_used_mb"} {
		count("not-a-number", column, file.wordless[column])
	}
	count("clock-backwards", "", file.backwards)
	kinds := map[string]bool{"cut": file.cut, "foreign-rows": true}
	for code, want := range kinds {
		has := slices.ContainsFunc(all, func(w warned) bool {
			return w.Code == code &&
				strings.Contains(w.Text, file.name)
		})
		if c.compared++; has != want {
			c.Errorf("odd in %s: the warning %s is in the report: %v; worked out again: %v", file.name, code, has, want)
		}
	}
	apart := false
	for _, label := range file.labels {
		_, of := file.sums(label)
		apart = apart || of
	}
	if has := slices.ContainsFunc(all, func(w warned) bool { return w.Code == "readings-apart" }); apart && !has {
		c.Errorf("odd in %s: nobody says that processes were read apart", file.name)
	}
}

// foreignTables are those beneath the drawings of a page: a row for each label.
func (c *check) foreignTables(page string) {
	var want [][]string
	for i, cell := range c.res.Cells {
		file := c.foreign[cell.Run]
		if file == nil {
			continue
		}
		label := file.labels[cell.Spec.ID-1]
		seconds, processes := file.length(label)
		row := []string{file.name, strconv.FormatFloat(seconds, 'f', 3, 64), strconv.Itoa(processes)}
		for _, name := range []string{"peak_rss_sum", "peak_js_heap"} {
			if f := c.cells[i].Figures[name]; len(f.Values) > 0 {
				row = append(row, Digits(f.Median))
			} else {
				row = append(row, "–")
			}
		}
		want = append(want, row)
	}
	if len(want) == 0 {
		return
	}
	tables, err := Tables(page, "memory")
	if err != nil {
		c.Fatal(err)
	}
	for _, t := range tables {
		if !slices.Equal(t.Head, []string{"from", "length (s)", "processes", "highest RSS sum (MiB)",
			"highest JavaScript heap (MiB)"}) {
			continue
		}
		for _, got := range t.Rows {
			if c.compared += len(got); len(want) == 0 || !slices.Equal(got, want[0]) {
				c.Errorf("the page says %q of rows of another program, and worked out again it is %q", got, want)
				return
			}
			want = want[1:]
		}
	}
	if len(want) > 0 {
		c.Errorf("the page says nothing of rows of another program: %q", want)
	}
}
