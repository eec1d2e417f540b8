package reports

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/reports/plain"
	"llmparity/reports/section"
)

// benched are the figures that benchstat reads, in base units.
func benched() []*figure.Row {
	return figure.Columns(func(r *figure.Row) bool { return r.Bench != "" })
}

// Benchstat writes the result in Go's benchmark format, one line per counted launch. Use `benchstat -col /engine
// FILE`, or compare two files. Repetitions that share a launch are separate lines; benchstat takes them as
// independent, and the file says so.
func Benchstat(w io.Writer, res *compare.Result) error {
	var text strings.Builder
	to := benchfmt.NewWriter(&text) // a Builder takes everything
	for _, b := range benched() {
		_ = to.Write(&benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: b.Bench, Key: "better"},
			OrigUnit: b.Bench, Value: b.Better.String()})
	}
	names := benchNames(res)
	for _, remark := range benchRemarks(res, names) {
		text.WriteString("# " + plain.Line(remark) + "\n")
	}
	for i, c := range res.Cells {
		for _, r := range benchResults(res, c, names[i]) {
			_ = to.Write(r)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// benchResults are a cell's launches in order, with the known values of each.
func benchResults(res *compare.Result, c *compare.Cell, name string) []*benchfmt.Result {
	var by evidence.Groups[int, benchfmt.Value] // by attempt
	for _, b := range benched() {
		for _, v := range c.Figure(b.Name).Values {
			by.Add(v.Attempt, benchfmt.Value{Value: scaled(v.Value, b.Base()), Unit: b.Bench})
		}
	}
	slices.Sort(by.Keys)
	var out []*benchfmt.Result
	for _, values := range by.All() {
		out = append(out, &benchfmt.Result{Config: benchConfig(res, c), Name: benchfmt.Name(name), Iters: 1,
			Values: values})
	}
	return out
}

// scaled converts without adding digits: figures have six decimals.
func scaled(v, factor float64) float64 {
	if factor < 1 {
		return math.Round(v*1e6) / math.Round(1e6/factor)
	}
	return v * factor
}

// cellPart tells cells apart that nothing else in their names does, such as two with different start settings.
const cellPart = "/cell="

// benchNames are the names of cells. benchstat takes equal names as launches of the same, so different cells of a run
// must not share one.
func benchNames(res *compare.Result) []string {
	var out []string
	several := map[string]int{} // cells of a run that have a name
	key := func(i int) string { return fmt.Sprint(res.Cells[i].Run, " ", out[i]) }
	for i, c := range res.Cells {
		out = append(out, benchName(c))
		several[key(i)]++
	}
	for i, c := range res.Cells {
		if several[key(i)] > 1 { // a numbered name is unique
			out[i] = fmt.Sprintf("%s%s%d", out[i], cellPart, c.Spec.ID)
		}
	}
	return out
}

// benchName has what tells cells apart as parts that benchstat can project: /engine=…/model=… It includes a part of the
// prompt's hash, because prompts of different plans can have the same number.
func benchName(c *compare.Cell) string {
	s := &c.Spec
	sum := sha256.Sum256([]byte(s.Prompt))
	name := fmt.Sprintf("Generate/engine=%s/model=%s/context=%d/prompt=%d/text=%x/max_tokens=%d", word(s.Engine),
		word(s.Model.Name), s.Model.Context, s.PromptID, sum[:4], s.MaxTokens)
	for _, x := range axis.Of(s) {
		value := x.Of(s)
		if x.Part != "" || value == "" || value == "0" || slices.Contains(inBenchName, x.Name) ||
			x.Name == axis.Traffic && s.Traffic == nil {
			continue
		}
		name += "/" + cmp.Or(benchKeys[x.Name], x.Name) + "=" + word(value)
	}
	return name
}

// inBenchName are axes that begin every name, or that names omit.
var inBenchName = []string{axis.Engine, axis.Model, axis.Prompt, axis.Input, axis.Output, axis.Context, axis.Isolation,
	axis.PromptCache}

// benchKeys are short names of axes.
var benchKeys = map[string]string{axis.KVDType: "kv"}

var notInAWord = regexp.MustCompile(`[^A-Za-z0-9._:+-]+`)

// word replaces what would end a part of a benchmark's name.
func word(s string) string {
	if s = strings.Trim(notInAWord.ReplaceAllString(s, "_"), "_"); s == "" {
		return "unnamed"
	}
	return s
}

// benchConfig are the keys that benchstat groups tables by: it does not compare lines that differ in them. Weights and
// devices are included; versions, which readers want to compare, are not. With several runs the run is a key:
// benchstat -col run compares them.
func benchConfig(res *compare.Result, c *compare.Cell) []benchfmt.Config {
	run, device := res.Runs[c.Run], cmp.Or(c.Device, &record.Device{})
	var out []benchfmt.Config
	if len(res.Runs) > 1 { // else launches of two would be one sample: a cell has the same name in both
		out = append(out, benchfmt.Config{Key: "run",
			Value: []byte(fmt.Sprintf("%d %s", c.Run, strings.TrimSpace(plain.Line(run.Title())))), File: true})
	}
	for _, kv := range [][2]string{{"goos", run.Tool.GoOS}, {"goarch", run.Tool.GoArch}, {"cpu", run.Environment.CPU},
		{"model-sha256", c.Spec.Model.SHA256}, {"device", string(device.Class) + " " + device.Name}} {
		value := strings.TrimSpace(plain.Line(kv[1]))
		if value == "" {
			value = "unknown" // an empty one would take the key away
		}
		out = append(out, benchfmt.Config{Key: kv[0], Value: []byte(value), File: true})
	}
	return out
}

// benchRemarks are comments for readers.
func benchRemarks(res *compare.Result, names []string) []string {
	var out []string
	for _, r := range res.Runs {
		out = append(out, fmt.Sprintf("run: %s, %s, llmparity %s", r.Title(),
			r.Started.Format("2006-01-02T15:04:05Z07:00"), r.Tool.Version))
	}
	for i, name := range names {
		if at := strings.LastIndex(name, cellPart); at >= 0 {
			out = append(out, fmt.Sprintf("%s of run %s: %s", strings.TrimPrefix(name[at:], "/"),
				res.Runs[res.Cells[i].Run].Title(), res.Cells[i].Label))
		}
	}
	for _, e := range res.Engines() {
		out = append(out, "with: "+e.Name+": "+e.With)
	}
	for _, text := range section.WarningLines(res.Warnings, res) {
		out = append(out, "warning: "+text)
	}
	for _, c := range res.Cells {
		if c.Launches.Opened > 0 { // lines that are not independent
			out = append(out, fmt.Sprintf(
				"warning: %s: its %d repetitions ran in %d launches, so they are not independent samples",
				c.Label, c.Launches.Counted, c.Launches.Opened))
		}
	}
	return out
}
