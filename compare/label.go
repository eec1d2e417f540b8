package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/axis"
	"llmparity/internal/dtype"
)

// label names every cell by what differs between cells, in the order of axes. What all cells share is in the title.
func (r *Result) label() {
	r.labelBuilds()
	engines := r.differing(func(o *Cell) string { return o.Spec.Engine })
	for _, c := range r.Cells {
		build, words := r.ownWords(c)
		switch {
		case engines && build != "":
			words = append([]string{c.Title() + " " + build}, words...)
		case engines:
			words = append([]string{c.Title()}, words...)
		case build != "":
			words = append([]string{build}, words...)
		}
		alike := func(o *Cell) bool { return o.Foreign() == c.Foreign() }
		for _, x := range labelled(c) {
			word := func(o *Cell) string { return r.word(x, o) }
			if !x.Own && x.Name != axis.Engine && r.differs(c, word, alike) {
				words = append(words, word(c))
			}
		}
		if name := r.Runs[c.Run].Name; name != "" && slices.ContainsFunc(r.Cells, func(o *Cell) bool {
			return alike(o) && r.Runs[o.Run].Name != name
		}) {
			words = append(words, name)
		}
		c.Label = strings.Join(words, ", ")
	}
	r.uniqueLabels()
}

// differing reports whether cells differ in something.
func (r *Result) differing(of func(*Cell) string) bool {
	return slices.ContainsFunc(r.Cells, func(o *Cell) bool { return of(o) != of(r.Cells[0]) })
}

// word is a cell's value of an axis in a label, no longer than the result needs.
func (r *Result) word(x *axis.Axis, c *Cell) string {
	switch {
	case x.Name == axis.Model:
		return r.modelWord(c)
	case x.Name == axis.DType && c.Spec.DType != "" && r.inForms():
		return "dtype " + c.Spec.DType // else the dtype of the model
	case r.builds[x.Name] != nil:
		return r.builds[x.Name][x.Of(&c.Spec)]
	}
	return x.In(&c.Spec)
}

// inForms reports whether labels have dtypes of models.
func (r *Result) inForms() bool {
	return slices.ContainsFunc(r.Cells, func(c *Cell) bool {
		return strings.HasSuffix(r.modelWord(c), dtype.People(cmp.Or(c.Spec.Model.DType, "none")))
	})
}

// modelWord is the model's name if cells have several, and its dtype if cells of the engine have other forms of it.
func (r *Result) modelWord(c *Cell) string {
	name := axis.Called(&c.Spec.Model)
	other := func(with func(*Cell) bool) bool { return slices.ContainsFunc(r.Cells, with) }
	called := func(o *Cell) string { return axis.Called(&o.Spec.Model) }
	var words []string
	if other(func(o *Cell) bool { return o.Foreign() == c.Foreign() && called(o) != name }) {
		words = append(words, name)
	}
	if d := c.Spec.Model.DType; d != "" && other(func(o *Cell) bool {
		return o.Spec.Engine == c.Spec.Engine && called(o) == name && o.Spec.Model.DType != d
	}) {
		words = append(words, dtype.People(d))
	}
	return strings.Join(words, " ")
}

// labelBuilds names files of engines' own fields by the ends of their paths: by so much as differs.
func (r *Result) labelBuilds() {
	r.builds = map[string]map[string]string{}
	for _, x := range r.Axes() {
		values := r.Distinct(func(c *Cell) string { return x.Of(&c.Spec) })
		if x.Own && slices.ContainsFunc(values, isPath) {
			r.builds[x.Name] = ends(values)
		}
	}
}

func isPath(value string) bool {
	return strings.ContainsAny(value, `/\`) && !strings.Contains(value, " ") || strings.HasSuffix(value, ".js")
}

// ends are the shortest ends of paths that differ, by path, without the extension of scripts.
func ends(values []string) map[string]string {
	out, taken := map[string]string{}, map[string]int{}
	parts := func(v string) []string { return strings.Split(strings.ReplaceAll(v, `\`, "/"), "/") }
	for _, v := range values {
		own := parts(v)
		n := 1
		for ; n < len(own); n++ {
			end := own[len(own)-n:]
			if !slices.ContainsFunc(values, func(o string) bool {
				other := parts(o)
				return o != v && len(other) >= n && slices.Equal(other[len(other)-n:], end)
			}) {
				break
			}
		}
		out[v] = strings.TrimPrefix(strings.Join(own[len(own)-n:], "/"), "/")
		taken[withoutScript(out[v])]++
	}
	for v, end := range out {
		if short := withoutScript(end); short != "" && taken[short] == 1 {
			out[v] = short
		}
	}
	return out
}

func withoutScript(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".js"), ".mjs")
}

// ownWords is how a cell differs from other cells of its engine: along the engine's own axes, and in what the engine
// reports, unless that follows from a setting or axis that the plan varies. What tells builds of the engine apart
// stands by itself, since people say it with the engine's name.
func (r *Result) ownWords(c *Cell) (build string, out []string) {
	engine := func(o *Cell) bool { return o.Refused == "" && o.Spec.Engine == c.Spec.Engine }
	c.reported = nil
	for _, x := range labelled(c) {
		word := func(o *Cell) string { return r.word(x, o) }
		switch {
		case !x.Own || !r.differs(c, word, engine):
		case x.Build() && build == "":
			build = word(c)
		default:
			out = append(out, word(c))
		}
	}
	for n, x := range evidence.AllReported() {
		word := ""
		if x.Word != nil {
			word = x.Word(&c.Setup)
		}
		if word == "" || !slices.ContainsFunc(r.Cells, func(o *Cell) bool {
			return engine(o) && x.Word(&o.Setup) != word && follows(x, o, c)
		}) {
			continue
		}
		if c.reported = append(c.reported, x.Axis); n == 0 && build == "" { // its version
			build = word
		} else {
			out = append(out, word)
		}
	}
	return build, out
}

// follows reports whether two cells request alike what decides what engines report along an axis.
func follows(x evidence.Reported, a, b *Cell) bool {
	if !maps.Equal(a.Spec.Settings, b.Spec.Settings) || x.Axis != "" && !axis.Named(x.Axis).Equal(&a.Spec, &b.Spec) {
		return false
	}
	return x.Axis != axis.DType || a.Spec.KVDType == b.Spec.KVDType && a.Spec.Weights == b.Spec.Weights &&
		a.Spec.Model.Values() == b.Spec.Model.Values()
}

// LabelReports says whether the label has what the engine reports along an axis.
func (c *Cell) LabelReports(name string) bool { return slices.Contains(c.reported, name) }

// Axes are the axes of all cells.
func (r *Result) Axes() []*axis.Axis { return axis.Of(specs(r.Cells)...) }

// labelled are the axes that labels name.
func labelled(c *Cell) []*axis.Axis {
	return slices.DeleteFunc(slices.Clone(axis.Of(&c.Spec)), func(x *axis.Axis) bool { return x.Part != "" })
}

// differs reports whether the word for a cell differs from that for a cell for which with returns true.
func (r *Result) differs(c *Cell, word func(*Cell) string, with func(*Cell) bool) bool {
	own := word(c)
	return own != "" && slices.ContainsFunc(r.Cells, func(o *Cell) bool { return with(o) && word(o) != own })
}

// uniqueLabels adds the run to labels that occur in several runs, and to those that are still equal whatever differs in
// the record. Cells without a difference are counted.
func (r *Result) uniqueLabels() {
	var by evidence.Groups[string, *Cell]
	for _, c := range r.Cells {
		by.Add(c.Label, c)
	}
	for _, cells := range by.All() {
		if slices.ContainsFunc(cells, func(c *Cell) bool { return c.Run != cells[0].Run }) {
			for _, c := range cells {
				c.addToLabel(r.RunName(c.Run))
			}
		}
		separate(cells)
	}
	seen := map[string]int{}
	for _, c := range r.Cells {
		c.Label = cmp.Or(c.Label, c.Title())
		label := c.Label
		if seen[label]++; seen[label] > 1 {
			c.Label = fmt.Sprintf("%s, the same cell again (%d)", label, seen[label])
		}
	}
}

func (c *Cell) addToLabel(word string) { c.Label = strings.TrimPrefix(c.Label+", "+word, ", ") }

// separate adds to equal labels what differs between their cells, until no two are equal: a difference that by itself
// suffices, else all.
func separate(cells []*Cell) {
	if labels := labelsOf(cells); len(labels) == len(cells) {
		return
	}
	facts := make([]map[string]string, len(cells))
	var keys []string
	for i, c := range cells {
		facts[i] = c.facts()
		for key := range facts[i] {
			keys = explain.AppendNew(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return !slices.ContainsFunc(facts, func(f map[string]string) bool { return f[key] != facts[0][key] })
	})
	add := func(key string) {
		for i, c := range cells {
			if word := facts[i][key]; word != "" {
				c.addToLabel(word)
			}
		}
	}
	for _, key := range keys {
		values := map[string]bool{}
		for _, f := range facts {
			values[f[key]] = true
		}
		if len(values) == len(cells) {
			add(key)
			return
		}
	}
	for _, key := range keys {
		if labels := labelsOf(cells); len(labels) < len(cells) {
			add(key)
		}
	}
}

func labelsOf(cells []*Cell) map[string]bool {
	out := map[string]bool{}
	for _, c := range cells {
		out[c.Label] = true
	}
	return out
}

// rank puts first what people recognise.
func rank(key string) int {
	known := []string{"model.name", "model.form", "model.sha256"}
	if at := slices.Index(known, key); at >= 0 {
		return at
	}
	return len(known)
}

// facts are what the record has of a cell's request and of its engine, in words for a label.
func (c *Cell) facts() map[string]string {
	out := map[string]string{}
	var add func(path, name string, v any)
	add = func(path, name string, v any) {
		word := strings.ReplaceAll(name, "_", " ")
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				add(strings.TrimPrefix(path+"."+key, "."), key, value)
			}
			return
		case bool:
		case string:
			switch {
			case path == "model.name", path == "model.form":
				word = v
			case name == "sha256" || name == "same_as":
				word = fmt.Sprintf("%s %.8s", word, v)
			default:
				word += " " + explain.Cut(v, 40)
			}
		default:
			word += fmt.Sprint(" ", v)
		}
		out[path] = word
	}
	spec := c.Spec
	spec.ID, spec.Setup, spec.Prompt = 0, 0, "" // a prompt has a number
	var all map[string]any
	text, _ := json.Marshal(spec) // plain data
	if json.Unmarshal(text, &all) == nil {
		delete(all, "id")
		add("", "", all)
	}
	for n, x := range evidence.AllReported() {
		if v := x.Value(&c.Setup); v != "" {
			out[fmt.Sprint("~", n)] = v
		}
	}
	return out
}

// Distinct lists the values of cells, each once, in the order of cells.
func (r *Result) Distinct(of func(*Cell) string) []string {
	var out []string
	for _, c := range r.Cells {
		if s := of(c); s != "" {
			out = explain.AppendNew(out, s)
		}
	}
	return out
}

// Engines groups cells by what they ran with.
func (r *Result) Engines() []Ran {
	type key struct{ engine, with string }
	var by evidence.Groups[key, int]
	of := map[string]int{} // groups of an engine
	for i, c := range r.Cells {
		k := key{c.Spec.Engine, c.With}
		if by.Of[k] == nil {
			of[k.engine]++
		}
		by.Add(k, i)
	}
	var out []Ran
	for k, cells := range by.All() {
		g := Ran{Name: r.Cells[cells[0]].Title(), With: k.with}
		if of[k.engine] > 1 {
			var labels []string
			for _, i := range cells {
				labels = append(labels, r.Cells[i].Label)
			}
			g.Name = strings.Join(labels, "; ")
		}
		out = append(out, g)
	}
	return out
}

// Ran is a group of cells whose engine ran with the same versions, dtypes and device.
type Ran struct {
	Name string // the engine, or the cells if the engine has several groups
	With string
}

// RunName names a run: by what distinguishes it, or else by its name if that is unique, else by the end of its folder,
// else by its number.
func (r *Result) RunName(run int) string {
	if side := r.Runs[run].Side; side != "" {
		return side
	}
	var folders []string // of other runs with the name
	for i, other := range r.Runs {
		if i != run && other.Name == r.Runs[run].Name {
			folders = append(folders, other.Dir)
		}
	}
	if len(folders) == 0 {
		return r.Runs[run].Name
	}
	parts := strings.Split(r.Runs[run].Dir, "/")
	for n := len(parts) - 1; n >= 0; n-- {
		end := strings.Join(parts[n:], "/")
		if end != "" && !slices.ContainsFunc(
			folders, func(dir string) bool { return dir == end || strings.HasSuffix(dir, "/"+end) }) {
			return end
		}
	}
	return fmt.Sprintf("%s #%d", r.Runs[run].Name, run+1)
}
