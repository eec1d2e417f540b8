package reports

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/internal/record"
)

// fact is a heading with rows of name and value.
type fact struct {
	Name   string
	Colour template.CSS // of the engine; empty: none
	Rows   [][2]string
}

// environmentSections list engines, models and machines.
func environmentSections(v *view) []section {
	var runs []fact
	for _, r := range v.res.Runs {
		runs = append(runs, runFact(r), checklistFact(r))
	}
	return []section{{ID: "identity", Title: "Engines, models and requests", Parts: factParts(v.engineFacts())},
		{ID: "environment", Title: "Machine and reproducibility", Parts: factParts(runs)}}
}

func factParts(facts []fact) []section {
	if len(facts) == 0 {
		return nil
	}
	return []section{{For: onPage, View: "facts", Data: facts}}
}

// engineFacts list what ran. What all cells of an engine share comes first, then what differs.
func (v *view) engineFacts() []fact {
	var out []fact
	of := map[string][]int{}
	for i := range v.res.Cells {
		engine := v.res.Cells[i].Spec.Engine
		of[engine] = append(of[engine], i)
	}
	for i := range v.res.Cells {
		engine := v.res.Cells[i].Spec.Engine
		if cells := of[engine]; cells[0] == i {
			out = append(out, v.sharing(cells)...)
		}
	}
	return out
}

// sharing are the facts of one engine's cells.
func (v *view) sharing(cells []int) []fact {
	var all []fact
	times := map[[2]string]int{}
	for _, i := range cells {
		f := v.engine(i)
		for _, row := range f.Rows {
			times[row]++
		}
		all = append(all, f)
	}
	if len(cells) < 2 {
		return all
	}
	common := fact{Name: fmt.Sprintf("%s, in all %d cells", line(v.res.Cells[cells[0]].Spec.Engine), len(cells)),
		Colour: all[0].Colour}
	for _, row := range all[0].Rows {
		if times[row] == len(cells) {
			common.Rows = append(common.Rows, row)
		}
	}
	if len(common.Rows) == 0 {
		return all
	}
	out := []fact{common}
	for _, f := range all {
		f.Rows = slices.DeleteFunc(f.Rows, func(row [2]string) bool { return times[row] == len(cells) })
		if len(f.Rows) > 0 {
			out = append(out, f)
		}
	}
	return out
}

func (v *view) engine(i int) fact {
	c := &v.res.Cells[i]
	if c.Foreign() {
		return v.foreignFact(i)
	}
	f := fact{Name: line(c.Label), Colour: template.CSS(v.colour(i))}
	add := func(name, value string) {
		if value != "" {
			f.Rows = append(f.Rows, [2]string{line(name), line(value)})
		}
	}
	if e := c.Engine; e != nil {
		add("runtime", e.Name+" "+e.Version)
		add("executable", e.Path)
		add("sha256", e.SHA256)
		addAll(add, "", e.Parts)
		addAll(add, "policy: ", e.Policy)
		add("arguments", strings.Join(e.Args, " "))
	} else {
		add("runtime", "unknown")
	}
	if d := c.Device; d != nil {
		add("device", string(d.Class)+": "+d.Name)
		addAll(add, "device: ", d.Detail)
	}
	context := modelFacts(c, add)
	isolation := c.Spec.Isolation
	if c.Spec.Reused {
		isolation = strings.TrimPrefix(isolation+", reused by repetitions", ", ")
	}
	add("request", fmt.Sprintf("%d tokens at temperature %g, context %s, isolation %s, prompt cache %s",
		c.Spec.MaxTokens, c.Spec.Temperature, context, isolation, c.Spec.PromptCache))
	for _, lack := range []struct {
		is   bool
		what string
	}{{c.Spec.StopsAtEnd, "stops at the end of the text"}, {c.Spec.NoTokenIDs, "no token ids"}, {c.Spec.Pieces,
		"reports pieces of text and its own token count"}} {
		if lack.is {
			add("limits", lack.what)
		}
	}
	add("prompt", c.Spec.Prompt)
	return f
}

// modelFacts adds the model's rows and returns a description of its context.
func modelFacts(c *compare.Cell, add func(name, value string)) (context string) {
	m := c.Spec.Model
	context = strconv.Itoa(m.Context)
	if m.Format == record.Served {
		by := "a server"
		if c.Engine != nil {
			by = c.Engine.Version
			if at := c.Engine.Parts["url"]; at != "" {
				by += " at " + at
			}
		}
		add("model", fmt.Sprintf("%s, served by %s; weights not verified", m.Name, by))
		if m.Context == 0 {
			context = "the server's own"
		}
	} else {
		add("model", fmt.Sprintf("%s (%s, %s, %s, %d parameters)", m.Name, m.Architecture, m.Format, m.DType,
			m.Parameters))
		add("model sha256", m.SHA256)
		add("model file", fmt.Sprintf("%s MiB, weights %s MiB", num(float64(m.FileB)/record.MiB),
			num(float64(m.WeightsB)/record.MiB)))
	}
	if m.Context > 0 && m.MaxContext > m.Context {
		context += fmt.Sprintf(" (the model supports %d)", m.MaxContext)
	}
	return context
}

func addAll(add func(name, value string), prefix string, m map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		add(prefix+strings.ReplaceAll(key, "_", " "), m[key])
	}
}

func runFact(r compare.Run) fact {
	f := fact{Name: line(r.Name)}
	if r.Tool.GoOS == "" { // another program's rows
		f.Rows = [][2]string{{"file", line(r.Dir)}, {"first row", r.Started.Format("2006-01-02 15:04:05 MST")}}
		return f
	}
	rows := append([][2]string{{"folder", r.Dir}, {"started", r.Started.Format("2006-01-02 15:04:05 MST")},
		{"ended", string(r.Status)}},
		Machine(r.Environment)...)
	rows = append(rows, [2]string{"llmparity",
		strings.TrimSpace(r.Tool.Version + " " + r.Tool.GoOS + "/" + r.Tool.GoArch)},
		[2]string{"llmparity sha256", r.Tool.SHA256})
	for _, row := range rows {
		if row[1] != "" {
			f.Rows = append(f.Rows, [2]string{row[0], line(row[1])})
		}
	}
	return f
}

// checklistFact says, item by item, whether the run can be reproduced.
func checklistFact(r compare.Run) fact {
	f := fact{Name: "Reproducibility of " + line(r.Name)}
	for _, c := range r.Checklist {
		f.Rows = append(f.Rows, [2]string{c.Item, line(string(c.Answer) + ": " + c.Why)})
	}
	return f
}

// foreignFact says where a cell that another program recorded comes from.
func (v *view) foreignFact(cell int) fact {
	c := &v.res.Cells[cell]
	f := fact{Name: line(c.Label), Colour: template.CSS(v.colour(cell))}
	add := func(name, value string) { f.Rows = append(f.Rows, [2]string{line(name), line(value)}) }
	if e := c.Engine; e != nil {
		add("rows of", e.Path)
		add("sha256", e.SHA256)
		addAll(add, "", e.Parts)
	}
	add("model, prompt, device", "unknown")
	return f
}
