package tables

import (
	"maps"
	"regexp"
	"slices"

	"llmparity/compare"
	"llmparity/compare/explain"
	"llmparity/compare/parity"
	"llmparity/internal/axis"
	"llmparity/internal/record"
)

// parts are columns of what the engine ran with.
func parts(c *compare.Cell) []field {
	e := engine(c)
	library := record.Library{}
	if e.Library != nil {
		library = *e.Library
	}
	return []field{
		{"engine_origin", Text, "where the engine's code is from: built in, npm, a file …", named(e.Origin)},
		{"engine_commit", Text, "the commit of the engine's source; absent if its build does not state one", named(e.Commit)},
		{"engine_sha256", Text, "SHA-256 of the engine's program", named(e.SHA256)},
		{"browser", Text, "the browser and its version", named(c.Browser())},
		{"model_library", Text, "whose model library ran; absent if the engine has its own code", named(e.Library.String())},
		{"kernels", Text, "the library's kernels: software, gpu, or mlc (scheduled by MLC's rules)", named(library.Kernels)},
		{"model_library_sha256", Text, "SHA-256 of the model library", named(library.SHA256)},
	}
}

// agreement are columns of how a cell's output compares with those of other cells.
func agreement(res *compare.Result, c *compare.Cell) []field {
	output, first := "", 0
	for _, p := range res.Parity {
		if res.Cells[p.A] != c && res.Cells[p.B] != c || !p.Compared {
			continue
		}
		switch at := differsAt(&p); {
		case at > 0 && (first == 0 || at < first):
			output, first = "differs", at
		case at > 0:
		case !p.Identical && output != "differs":
			output = "identical in part"
		case output == "":
			output = "identical"
		}
	}
	scores := ""
	if c.Scores.Known() {
		scores = map[bool]string{true: "differs", false: "same"}[c.Scores.Differs()]
	}
	return []field{
		{"output", Text, "the output beside those of other cells: identical, identical in part (one is longer) or differs; " +
			"absent if it is compared with none", named(output)},
		{"output_differs_at", Integer, "the first token that differs, from 1; a byte if engines report no token ids", some(first)},
		{"score_check", Text, "the score check against llmparity's reference implementation: same or differs", named(scores)},
	}
}

// differsAt is the first token, or byte, that differs, from 1; 0: none.
func differsAt(p *parity.Parity) int {
	switch {
	case p.First != nil:
		return p.Agreed + 1
	case p.ByText && !p.Identical:
		return p.Shared + 1
	}
	return 0
}

// columnName is what a part or a setting must be called to have a column. Records may come from elsewhere.
var columnName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// differing are columns of all other parts and settings in which cells of one engine differ.
func differing(res *compare.Result, c *compare.Cell, others []field) (out []field) {
	values := map[string]map[string][]string{} // of each part, by engine
	for _, o := range res.Cells {
		for name, v := range reported(o) {
			if values[name] == nil {
				values[name] = map[string][]string{}
			}
			values[name][o.Spec.Engine] = explain.AppendNew(values[name][o.Spec.Engine], v)
		}
	}
	own := reported(c)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		several := func(v []string) bool { return len(v) > 1 }
		known := func(f field) bool { return f.name == name }
		if slices.ContainsFunc(slices.Collect(maps.Values(values[name])), several) && columnName.MatchString(name) &&
			!slices.ContainsFunc(others, known) {
			out = append(out, field{name, Text, "as the engine reports it; only of a run whose cells differ in it",
				named(own[name])})
		}
	}
	return out
}

// reported are an engine's parts and settings, without those that other columns have.
func reported(c *compare.Cell) map[string]string {
	out := map[string]string{}
	if c.Engine == nil {
		return out
	}
	maps.Copy(out, c.Engine.Policy)
	maps.Copy(out, c.Engine.Identity())
	for _, name := range []string{"weights_dtype", "kv_dtype", "origin", "model_library_source", axis.Threads} {
		delete(out, name)
	}
	return out
}
