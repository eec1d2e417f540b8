// Package label names cells and the sides of a run by what differs between them. It knows what they request and what
// engines report, and no figure.
package label

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/axis"
	"llmparity/internal/dtype"
	"llmparity/internal/record"
)

// Run is a run's names.
type Run struct {
	Plan string // that of its plan
	Name string // one that no other run has
}

// Labels are the labels of cells, by their indexes.
type Labels struct {
	Cells  []*Cell
	runs   []Run
	builds map[string]map[string]string // what labels call files of engines' own fields, by axis and path
}

// Cell is a cell with its label.
type Cell struct {
	evidence.Subject
	Label    string   // no other cell has it
	Reported []string // axes along which the label has what the engine reports
}

// Of labels every cell with what differs between cells, in the order of axes. What all cells share is in the title.
func Of(all []evidence.Subject, runs []Run) *Labels {
	l := &Labels{runs: runs}
	for _, s := range all {
		l.Cells = append(l.Cells, &Cell{Subject: s})
	}
	l.labelBuilds(specs(all))
	engines := l.differing(func(o *Cell) string { return o.Spec.Engine })
	for _, c := range l.Cells {
		build, words := l.ownWords(c)
		switch {
		case engines && build != "":
			words = append([]string{c.Title + " " + build}, words...)
		case engines:
			words = append([]string{c.Title}, words...)
		case build != "":
			words = append([]string{build}, words...)
		}
		alike := func(o *Cell) bool { return o.Foreign() == c.Foreign() }
		for _, x := range labelled(c) {
			word := func(o *Cell) string { return l.word(x, o) }
			if !x.Own && x.Name != axis.Engine && l.differs(c, word, alike) {
				words = append(words, word(c))
			}
		}
		if name := runs[c.Run].Plan; name != "" && slices.ContainsFunc(l.Cells, func(o *Cell) bool {
			return alike(o) && runs[o.Run].Plan != name
		}) {
			words = append(words, name)
		}
		c.Label = strings.Join(words, ", ")
	}
	l.uniqueLabels()
	return l
}

// labelBuilds names files of engines' own fields by the ends of their paths: by so much as differs.
func (l *Labels) labelBuilds(specs []*record.Cell) {
	l.builds = map[string]map[string]string{}
	for _, x := range axis.Of(specs...) {
		var values []string
		for _, spec := range specs {
			if v := x.Of(spec); v != "" {
				values = explain.AppendNew(values, v)
			}
		}
		if x.Own && slices.ContainsFunc(values, isPath) {
			l.builds[x.Name] = ends(values)
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

// differing reports whether cells differ in something.
func (l *Labels) differing(of func(*Cell) string) bool {
	return slices.ContainsFunc(l.Cells, func(o *Cell) bool { return of(o) != of(l.Cells[0]) })
}

// ownWords is how a cell differs from other cells of its engine: along the engine's own axes, and in what the engine
// reports, unless that follows from a setting or axis that the plan varies. A cell that an interrupted run has not
// launched reports nothing, which is no difference. What tells builds of the engine apart
// stands by itself, since people say it with the engine's name.
func (l *Labels) ownWords(c *Cell) (build string, out []string) {
	engine := func(o *Cell) bool { return !o.Refused && o.Spec.Engine == c.Spec.Engine }
	c.Reported = nil
	for _, x := range labelled(c) {
		word := func(o *Cell) string { return l.word(x, o) }
		switch {
		case !x.Own || !l.differs(c, word, engine):
		case x.Build() && build == "":
			build = word(c)
		default:
			out = append(out, word(c))
		}
	}
	for n, x := range evidence.AllReported() {
		word := ""
		if x.Word != nil {
			word = x.Word(c.Setup)
		}
		if word == "" || !slices.ContainsFunc(l.Cells, func(o *Cell) bool {
			return engine(o) && o.Engine != nil && x.Word(o.Setup) != word && follows(x, o, c)
		}) {
			continue
		}
		if c.Reported = append(c.Reported, x.Axis); n == 0 && build == "" { // its version
			build = word
		} else {
			out = append(out, word)
		}
	}
	return build, out
}

// labelled are the axes that labels name.
func labelled(c *Cell) []*axis.Axis {
	return slices.DeleteFunc(slices.Clone(axis.Of(&c.Spec)), func(x *axis.Axis) bool { return x.Part != "" })
}

// word is a cell's value of an axis in a label, no longer than the result needs.
func (l *Labels) word(x *axis.Axis, c *Cell) string {
	switch {
	case x.Name == axis.Model:
		return l.modelWord(c)
	case x.Name == axis.DType && c.Spec.DType != "" && l.inForms():
		return "dtype " + c.Spec.DType // else the dtype of the model
	case l.builds[x.Name] != nil:
		return l.builds[x.Name][x.Of(&c.Spec)]
	}
	return x.In(&c.Spec)
}

// modelWord is the model's name if cells have several, and its dtype if cells of the engine have other forms of it. Of
// a cell whose turn never came, only what the plan calls the model is known: any other one may be a form of it.
func (l *Labels) modelWord(c *Cell) string {
	name := axis.Called(&c.Spec.Model)
	other := func(with func(*Cell) bool) bool { return slices.ContainsFunc(l.Cells, with) }
	called := func(o *Cell) string { return axis.Called(&o.Spec.Model) }
	model := axis.Named(axis.Model)
	if planned(c) {
		if !other(func(o *Cell) bool {
			return o.Foreign() == c.Foreign() && !model.Matches(&o.Spec, c.Spec.Model.Name)
		}) {
			return ""
		}
		base := filepath.Base(c.Spec.Model.Name)
		return strings.TrimSuffix(base, filepath.Ext(base))
	}
	var words []string
	if other(func(o *Cell) bool { return o.Foreign() == c.Foreign() && !planned(o) && called(o) != name }) {
		words = append(words, name)
	}
	if d := c.Spec.Model.DType; d != "" && other(func(o *Cell) bool {
		if planned(o) {
			return !model.Matches(&c.Spec, o.Spec.Model.Name)
		}
		return o.Spec.Engine == c.Spec.Engine && called(o) == name && o.Spec.Model.DType != d
	}) {
		words = append(words, dtype.People(d))
	}
	return strings.Join(words, " ")
}

// planned reports whether only the plan is known of a cell: the run ended before it was prepared.
func planned(c *Cell) bool {
	return c.Spec.Isolation == "" && c.Spec.Model.SHA256 == "" && c.Spec.Model.Format == ""
}

// inForms reports whether labels have dtypes of models.
func (l *Labels) inForms() bool {
	return slices.ContainsFunc(l.Cells, func(c *Cell) bool {
		return strings.HasSuffix(l.modelWord(c), dtype.People(cmp.Or(c.Spec.Model.DType, "none")))
	})
}

// differs reports whether the word for a cell differs from that for a cell for which with returns true. A value that
// was never chosen does not differ.
func (l *Labels) differs(c *Cell, word func(*Cell) string, with func(*Cell) bool) bool {
	own := word(c)
	return own != "" && slices.ContainsFunc(l.Cells, func(o *Cell) bool {
		return with(o) && word(o) != own && !(planned(o) && word(o) == "")
	})
}

// follows reports whether two cells request alike what decides what engines report along an axis.
func follows(x evidence.Reported, a, b *Cell) bool {
	if !maps.Equal(a.Spec.Settings, b.Spec.Settings) || x.Axis != "" && !axis.Named(x.Axis).Equal(&a.Spec, &b.Spec) {
		return false
	}
	return x.Axis != axis.DType || a.Spec.KVDType == b.Spec.KVDType && a.Spec.Weights == b.Spec.Weights &&
		a.Spec.Model.Values() == b.Spec.Model.Values()
}

// uniqueLabels adds the run to labels that occur in several runs, and to those that are still equal whatever differs in
// the record. Cells without a difference are counted.
func (l *Labels) uniqueLabels() {
	var by evidence.Groups[string, *Cell]
	for _, c := range l.Cells {
		by.Add(c.Label, c)
	}
	for _, cells := range by.All() {
		if slices.ContainsFunc(cells, func(c *Cell) bool { return c.Run != cells[0].Run }) {
			for _, c := range cells {
				c.addToLabel(l.runs[c.Run].Name)
			}
		}
		separate(cells)
	}
	seen := map[string]int{}
	for _, c := range l.Cells {
		c.Label = cmp.Or(c.Label, c.Title)
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
		if v := x.Value(c.Setup); v != "" {
			out[fmt.Sprint("~", n)] = v
		}
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

// Values are a cell's values of some axes, in words.
func (l *Labels) Values(cell int, along []*axis.Axis) string {
	c := l.Cells[cell]
	var words []string
	for _, x := range along {
		w := l.word(x, c)
		if v := x.Value(&c.Spec); v != "" && (w == "" || len(along) == 1 && x.Name != axis.Model &&
			l.builds[x.Name] == nil && !(x.Number != nil && !math.IsNaN(x.Number(&c.Spec)))) {
			w = v // says enough where it is no number
		}
		if w != "" {
			words = append(words, w)
		}
	}
	return cmp.Or(strings.Join(words, ", "), "the default "+along[0].Title)
}
