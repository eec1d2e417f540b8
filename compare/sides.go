package compare

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/internal/axis"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Interleaved reports whether launches of the runs alternated with those of the first run.
func (r *Result) Interleaved() bool {
	for _, run := range r.Runs[min(1, len(r.Runs)):] {
		if run.Against == "" || run.Against != filepath.Base(r.Runs[0].Dir) {
			return false
		}
	}
	return len(r.Runs) > 1
}

// nameSides names interleaved runs by what differs between them.
func (r *Result) nameSides(runs []*record.Run) {
	if !r.Interleaved() {
		return
	}
	for _, of := range r.describers(runs) {
		names := apart(len(runs), of)
		if names == nil {
			continue
		}
		for i, name := range names {
			r.Runs[i].Side = explain.Cut(name, mostOfSide)
		}
		return
	}
}

// Title is what distinguishes a run, or else its plan's name.
func (r *Run) Title() string { return cmp.Or(r.Side, r.Name) }

// labelSides labels the cells of an interleaved run by their side, if each side has one cell.
func (r *Result) labelSides() {
	if !r.Interleaved() || len(r.Cells) != len(r.Runs) {
		return
	}
	for i, c := range r.Cells {
		if c.Run != i || r.Runs[i].Side == "" {
			return
		}
	}
	for i, c := range r.Cells {
		c.Label = r.Runs[i].Side
	}
}

// mostOfSide is how many letters a side's name has at most.
const mostOfSide = 48

// describers describe a run in ways that may name it, the best first: each gives the words for its cells.
func (r *Result) describers(runs []*record.Run) (out []func(run int) []string) {
	each := func(word func(*Cell) string) {
		out = append(out, func(run int) (all []string) {
			for _, c := range r.Cells {
				if c.Run == run && c.Refused == "" {
					all = append(all, word(c))
				}
			}
			return all
		})
	}
	each(build)
	each(func(c *Cell) string {
		if c.Engine == nil {
			return ""
		}
		if sum := sumOf(c); sum != "" {
			return build(c) + " (" + sum + ")"
		}
		return ""
	})
	for _, x := range axis.Of(specs(r.Cells)...) {
		each(func(c *Cell) string {
			return cmp.Or(x.In(&c.Spec), "the default "+x.Title)
		})
	}
	for _, x := range evidence.AllReported()[1:] { // the first is the build
		if x.Word != nil {
			each(func(c *Cell) string { return x.Word(&c.Setup) })
		}
	}
	return append(out, func(run int) []string { return requested(runs, run) })
}

// build is what runs: the file of an engine's build, or else the engine with its version.
func build(c *Cell) string {
	if c.Engine == nil {
		return ""
	}
	if file, ok := strings.CutPrefix(c.Engine.Origin, record.OfFile); ok {
		return file
	}
	return words.Version(strings.TrimSpace(cmp.Or(c.Engine.Title, c.Title()) + " " + c.Engine.Version))
}

// BuildSum has the beginnings of the hashes of the builds that a run ran; empty: they are not known.
func (r *Result) BuildSum(run int) string {
	var all []string
	for _, c := range r.Cells {
		if c.Run == run && c.Engine != nil && sumOf(c) != "" {
			all = explain.AppendNew(all, sumOf(c))
		}
	}
	return strings.Join(all, ", ")
}

// sumOf is the beginning of the hash of a build: of the module in a browser, or else of the program.
func sumOf(c *Cell) string {
	const digits = 7 // as many as Git shows
	sum := cmp.Or(c.Engine.Parts[record.BundlePart], c.Engine.SHA256)
	return sum[:min(digits, len(sum))]
}

// requested has the values that were requested for a side and not for the other.
func requested(runs []*record.Run, run int) (all []string) {
	keys := map[string]bool{}
	for _, other := range runs {
		if s := other.Meta.Side; s != nil {
			for key := range s.Differs {
				keys[key] = true
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value := ""
		if s := runs[run].Meta.Side; s != nil {
			value = s.Differs[key]
		}
		if value == "" {
			key, value = "default", key
		}
		all = append(all, strings.ReplaceAll(key+" "+value, "_", " "))
	}
	return all
}

// apart names runs by the words that not all of them have; nil: that does not distinguish them.
func apart(runs int, of func(run int) []string) []string {
	times := map[string]int{} // runs with a word
	all := make([][]string, runs)
	for run := range all {
		for _, word := range of(run) {
			all[run] = explain.AppendNew(all[run], word)
		}
		for _, word := range all[run] {
			times[word]++
		}
	}
	var names []string
	for _, words := range all {
		words = slices.DeleteFunc(words, func(word string) bool { return word == "" || times[word] == runs })
		name := strings.Join(words, ", ")
		if name == "" || slices.Contains(names, name) {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// Noise is the baseline run measured once more, in turn with both sides. What differs between the two is the machine's.
type Noise struct {
	Dir      string        `json:"dir"`
	Status   record.Status `json:"status"`
	Launches int           `json:"launches"` // counted ones, of all cells
}

// measureNoise adds to each difference from the baseline run that of the baseline run from itself.
func (r *Result) measureNoise(again *record.Run) {
	if again == nil {
		return
	}
	r.Noise = &Noise{Dir: again.Dir, Status: again.Status}
	cells := map[int]*Cell{}
	for _, spec := range again.Cells {
		c := newCell(0, again, spec)
		cells[spec.ID], r.Noise.Launches = c, r.Noise.Launches+c.Launches.Counted
	}
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		base := r.Cells[c.A]
		if same := cells[base.Spec.ID]; base.Run == 0 && r.Cells[c.B].Run > 0 && same != nil {
			for k := range c.Ratios {
				c.Ratios[k].Noise = noiseOf(c.Ratios[k].Figure, base, same)
			}
		}
	}
}

// noiseOf is the change of a figure from a cell to the same cell measured once more; nil: it is not known.
func noiseOf(name string, base, again *Cell) *ratio.Noise {
	a, b := base.Figure(name), again.Figure(name)
	if !a.Known() || !b.Known() {
		return nil
	}
	x := ratio.New(a, b, stats.NewSides(a.PerLaunch(base.counted), b.PerLaunch(again.counted)))
	if x.Percent == nil {
		return nil
	}
	return &ratio.Noise{Again: x.Right, Percent: *x.Percent, Interval: x.PercentInterval, Note: x.IntervalNote}
}
