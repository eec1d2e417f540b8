// Package figure is the table of figures: one row says all that the program knows of a quantity before it is measured.
// Results, summary.csv, gates, --until-ci, benchstat, profile.json, tables, charts and schemas read it. A row's fields
// say which of them have the figure: a new one needs a name, a row and a computation.
//
// A row of a request computes itself. What is read of processes, of an engine's inside or of a GPU takes more than one
// record row: package compare computes those by their names. The table says nothing of launches, medians or intervals.
package figure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/kit/nearest"
	"llmparity/internal/record"
)

// Row defines a figure.
type Row struct {
	Name   string // in results, and in plans and flags of gates
	Title  string // as people read it
	Noun   string // what a sentence calls it, if it qualifies the title further
	Unit   string
	Better Better
	How    string // how it is computed; what depends on the record is added there
	Absent string // why it has no value, where nothing tells more

	// Request computes it of one request, NaN where it has none: a launch's is the median over its requests. nil:
	// package compare computes it by its name.
	Request func(*record.Request) float64
	Until   bool // --until-ci can wait for it; internal/bench/run computes it of a launch that is not written yet

	Optional  bool    // only where a plan asks for it; elsewhere tables leave it out
	OfSome    bool    // only some engines have it, such as those in a page; tables without one leave it out
	Component bool    // a part of the memory by component, in predictions too
	Beyond    bool    // part of a browser's memory beyond the model's components
	Part      string  // over its column in tables of components; a terminal breaks it
	Inside    *Inside // nil: it is not read inside an engine
	Ratio     When    // cells are compared in it
	Headline  When    // part of the answer
	Moves     Moves   // what may change it besides the engine

	// The formats that it appears in; what is empty is not there.
	Column  Column    // of summary.csv
	Bench   string    // its unit in Go's benchmark format, in base units
	Head    string    // above its column in the terminal's table
	Summary string    // above its column in the report's summary
	Bar     [2]string // the id and title of its chart of bars
	Over    Over      // the axes along which it is drawn
	Profile string    // its key in profile.json; of a component before its unit
}

// Inside says where the record has a part of an engine's memory.
type Inside struct {
	Method string // of its source
	Value  string // the name of the metric, which is in bytes
	Logged string // how, where an engine's log has the same; empty: none has
}

// Column is a figure's column of summary.csv.
type Column struct {
	Place int // from 1; a new one is last
	Name  string
	What  string
}

// Better says which way a figure is better.
type Better int

// Neither: no direction is worse, so only fixed limits can check it, not a baseline.
const (
	Neither Better = iota
	Lower
	Higher
)

// String is as Go's benchmark format has it.
func (b Better) String() string { return []string{"", "lower", "higher"}[b] }

// When says of which cells something holds: by whether their requests come one at a time or together.
type When int

// With several requests at a time, the total rate counts, not one request's.
const (
	Never When = iota
	Always
	Alone
	Together
)

// In reports whether it holds for cells whose requests come together, or one at a time.
func (w When) In(together bool) bool {
	return w == Always || w == Together && together || w == Alone && !together
}

// Moves lists what can change a figure besides the engine. Cells that differ in it are not compared in the figure, or
// with a note.
type Moves int

// What can change a figure.
const (
	Sharing Moves = 1 << iota // programs outside that map the same files
	Cache                     // a cache of prompts
	Load                      // a load of the model for each generation
	Pieces                    // pieces of text, which an engine reports in place of tokens
	Length                    // how many tokens are generated
	Shaders                   // an adapter that shaders are not written for
)

// Over is a set of axes.
type Over int

// Axes along which cells differ in nothing else.
const (
	Lengths  Over = 1 << iota // of the prompt
	Requests                  // that come together
	Contexts                  // and of what is generated: tokens that a KV cache has room for
)

// Of finds a row by its name in results; nil where there is none.
func Of(name string) *Row { return byName[name] }

// New returns the row; it panics if there is none, because that is a mistake of the program.
func New(name string) *Row {
	if r := Of(name); r != nil {
		return r
	}
	panic("no row of " + name)
}

// Title is what people call a figure; its name where the table has no row of it.
func Title(name string) string {
	if r := Of(name); r != nil {
		return r.Title
	}
	return name
}

// Rows lists the rows that are wanted, in the order of results.
func Rows(wanted func(*Row) bool) []*Row {
	var out []*Row
	for i := range table {
		if wanted(&table[i]) {
			out = append(out, &table[i])
		}
	}
	return out
}

// Columns lists the rows with a column of summary.csv that are wanted, in the order of the columns. Gates can judge
// them all.
func Columns(wanted func(*Row) bool) []*Row {
	out := Rows(func(r *Row) bool { return r.Column.Place > 0 && wanted(r) })
	slices.SortFunc(out, func(a, b *Row) int { return a.Column.Place - b.Column.Place })
	return out
}

// Any is for a list of all.
func Any(*Row) bool { return true }

// Names lists the names of rows.
func Names(rows []*Row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.Name)
	}
	return out
}

// Find finds a figure of summary.csv by either name; the error offers the nearest.
func Find(name string) (*Row, error) {
	for _, r := range Columns(Any) {
		if r.Name == name || r.Column.Name == name {
			return r, nil
		}
	}
	return nil, fmt.Errorf("there is no figure %q; the nearest are %s", name, strings.Join(Nearest(name), ", "))
}

// Nearest lists the three names most similar to a mistyped one, of figures and others. A figure's title counts as its
// name does: people type what reports show.
func Nearest(name string, others ...string) []string {
	const most = 3
	names, titled := append(others, Typed()...), map[string]string{}
	for _, r := range Columns(Any) {
		titled[r.Name], titled[r.Column.Name] = r.Asked(), r.Asked()
		if title := strings.ReplaceAll(r.Title, " ", "_"); !slices.Contains(names, title) {
			names, titled[title] = append(names, title), r.Asked()
		}
	}
	var out []string
	for _, n := range nearest.Of(name, names, len(names)) {
		n = cmp.Or(titled[n], n)
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out[:min(most, len(out))]
}

// Asked is the name in gates: that of the column, which has the unit, but decode_tps for decode_tokens_per_s.
func (r *Row) Asked() string {
	if strings.HasSuffix(r.Name, "_tps") {
		return r.Name
	}
	return r.Column.Name
}

// Noun is what a sentence calls a figure that it qualifies itself: "KV cache" of "KV cache, reserved".
func Noun(name string) string {
	if r := Of(name); r != nil && r.Noun != "" {
		return r.Noun
	}
	return Title(name)
}

// Typed lists the names that people may type: in summary.csv, and in results where that is another.
func Typed() []string {
	var out []string
	for _, r := range Columns(Any) {
		out = append(out, slices.Compact([]string{r.Column.Name, r.Name})...)
	}
	return out
}

// Base returns the factor that converts the unit to bytes or seconds; 1 for any other unit.
func (r Row) Base() float64 {
	switch r.Unit {
	case "MiB":
		return record.MiB
	case "ms":
		return 1e-3
	}
	return 1
}

// Source names the files and columns of a record that a row with Over is computed from; journal.jsonl comes last.
func (r *Row) Source() string {
	const totals, tokens = "totals.csv: t_ns, method, ", "tokens.csv: index, t_ns; journal.jsonl: request "
	switch {
	case r.Inside != nil:
		method := r.Inside.Method
		if r.Inside.Logged != "" {
			method += ", engine_log, engine_tensors"
		}
		return fmt.Sprintf("metrics.csv: name (%s), value, edge; journal.jsonl: source (%s), phase", r.Inside.Value, method)
	case strings.HasSuffix(r.Name, "_rss_sum"):
		return totals + "rss_sum_mb; journal.jsonl: phase"
	case r.Unit == "MiB":
		return totals + "pss_mb; journal.jsonl: phase"
	case r.Name == PrefillTPS:
		return "journal.jsonl: request (sent_ns, prompt_ids, cached_tokens), span (prefill)"
	}
	return tokens + "(due_ns, sent_ns, returned_ns)"
}

// Percentile names the figure for a share of a launch's requests (of gaps for OfITL).
func Percentile(of string, share float64) string { return fmt.Sprintf("%s_p%.0f", of, 100*share) }

// Quantiles are the shares whose percentiles are reported.
func Quantiles() []float64 { return []float64{0.5, 0.9, 0.95, 0.99} }
