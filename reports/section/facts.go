package section

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/axis"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
)

// fact is a heading with rows of name and value.
type fact struct {
	Name   string
	Colour template.CSS // of the engine; empty: none
	Rows   [][2]string
}

// add adds a row, unless its value is not known.
func (f *fact) add(name, value string) {
	if value != "" {
		f.Rows = append(f.Rows, [2]string{plain.Line(name), plain.Line(value)})
	}
}

// addAll adds a row a key.
func (f *fact) addAll(prefix string, m map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		f.add(prefix+strings.ReplaceAll(key, "_", " "), m[key])
	}
}

// environmentSections list engines, models and machines.
func environmentSections(v *chart.View) []Section {
	var runs []fact
	for _, r := range v.Res.Runs {
		runs = append(runs, runFact(r), checklistFact(r))
	}
	part := func(id, title string, facts []fact) Section {
		s := Section{ID: id, Title: title}
		if len(facts) > 0 {
			s.Parts = []Section{{For: OnPage, View: "facts", Data: facts}}
		}
		return s
	}
	return []Section{part("identity", "Engines, models and requests", engineFacts(v)),
		part("environment", "Machine and reproducibility", runs)}
}

// engineFacts list what ran. What all cells of an engine share comes first, then what differs.
func engineFacts(v *chart.View) []fact {
	var out []fact
	var by evidence.Groups[string, int]
	for i, c := range v.Res.Cells {
		by.Add(c.Spec.Engine, i)
	}
	for _, cells := range by.All() {
		out = append(out, sharing(v, cells)...)
	}
	return out
}

// sharing are the facts of one engine's cells.
func sharing(v *chart.View, cells []int) []fact {
	var all []fact
	times := map[[2]string]int{}
	for _, i := range cells {
		f := engineFact(v, i)
		for _, row := range f.Rows {
			times[row]++
		}
		all = append(all, f)
	}
	if len(cells) < 2 {
		return all
	}
	common := fact{Name: fmt.Sprintf("%s, in all %d cells", plain.Line(v.Res.Cells[cells[0]].Spec.Engine), len(cells)),
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

func engineFact(v *chart.View, i int) fact {
	c := v.Res.Cells[i]
	f := fact{Name: plain.Line(c.Label), Colour: template.CSS(v.Colour(i))}
	if c.Foreign() { // another program recorded it
		if e := c.Engine; e != nil {
			f.add("rows of", e.Path)
			f.add("sha256", e.SHA256)
			f.addAll("", e.Identity())
		}
		f.add("model, prompt, device", "unknown")
		return f
	}
	if e := c.Engine; e != nil {
		f.add("runtime", e.Name+" "+words.Version(e.Version))
		f.add("executable", e.Path)
		f.add("sha256", e.SHA256)
		f.addAll("", e.Identity())
		f.addAll("policy: ", e.Policy)
		f.add("arguments", strings.Join(e.Args, " "))
	} else {
		f.add("runtime", "unknown")
	}
	if d := c.Device; d != nil {
		f.add("device", string(d.Class)+": "+d.Name)
		f.add("device: asked for", d.Asked)
		f.add("device: known from", map[string]string{record.DeviceStated: "the plan",
			record.DeviceDerived: "the GPU memory of its processes"}[d.Origin])
		f.addAll("device: ", d.Detail)
	}
	for _, r := range c.Ran {
		if r.What != ran.Device { // which has its rows
			f.add("asked and got: "+r.What, r.Text())
		}
	}
	context := f.model(c)
	isolation := c.Spec.Isolation
	if c.Spec.Reused {
		isolation = strings.TrimPrefix(isolation+", reused by repetitions", ", ")
	}
	f.add("request", fmt.Sprintf("%d tokens at temperature %g, context %s, isolation %s, prompt cache %s",
		c.Spec.MaxTokens, c.Spec.Temperature, context, isolation, c.Spec.PromptCache))
	for _, x := range axis.Of(&c.Spec) {
		if !slices.Contains(inRequest, x.Name) && x.Part == "" {
			f.add("requested "+x.Title, x.Of(&c.Spec))
		}
	}
	for _, lack := range []struct {
		is   bool
		what string
	}{{c.Spec.StopsAtEnd, "stops at the end of the text"}, {c.Spec.NoTokenIDs, "no token ids"}, {c.Spec.Pieces,
		"reports pieces of text and its own token count"}} {
		if lack.is {
			f.add("limits", lack.what)
		}
	}
	f.add("prompt", c.Spec.Prompt)
	return f
}

// inRequest are axes that other rows have.
var inRequest = []string{axis.Engine, axis.Model, axis.Prompt, axis.Input, axis.Output, axis.Traffic, axis.Temperature,
	axis.Context, axis.Isolation, axis.PromptCache}

// model adds the model's rows and returns a description of its context.
func (f *fact) model(c *compare.Cell) (context string) {
	m := c.Spec.Model
	context = strconv.Itoa(m.Context)
	if m.Format == record.Served {
		by := "a server"
		if c.Engine != nil {
			by = words.Version(c.Engine.Version)
			if at := c.Engine.Parts["url"]; at != "" {
				by += " at " + at
			}
		}
		f.add("model", fmt.Sprintf("%s, served by %s; weights not verified", m.Name, by))
		if m.Context == 0 {
			context = "the server's own"
		}
	} else {
		f.add("model", fmt.Sprintf("%s (%s, %s, %s, %d parameters)", m.Name, m.Architecture, m.Format, m.DType,
			m.Parameters))
		f.add("model sha256", m.SHA256)
		f.add("model file", fmt.Sprintf("%s MiB, weights %s MiB", plain.Num(float64(m.FileB)/record.MiB),
			plain.Num(float64(m.WeightsB)/record.MiB)))
	}
	if m.Context > 0 && m.MaxContext > m.Context {
		context += fmt.Sprintf(" (the model supports %d)", m.MaxContext)
	}
	return context
}

func runFact(r compare.Run) fact {
	f := fact{Name: plain.Line(r.Name)}
	if r.Tool.GoOS == "" { // another program's rows
		f.Rows = [][2]string{{"file", plain.Line(r.Dir)}, {"first row", r.Started.Format("2006-01-02 15:04:05 MST")}}
		return f
	}
	f.add("folder", r.Dir)
	f.add("started", r.Started.Format("2006-01-02 15:04:05 MST"))
	f.add("ended", string(r.Status))
	f.Rows = append(f.Rows, plain.Machine(r.Environment)...)
	f.add("llmparity", strings.TrimSpace(r.Tool.Version+" "+r.Tool.GoOS+"/"+r.Tool.GoArch))
	f.add("llmparity sha256", r.Tool.SHA256)
	return f
}

// checklistFact says, item by item, whether the run can be reproduced.
func checklistFact(r compare.Run) fact {
	f := fact{Name: "Reproducibility of " + plain.Line(r.Name)}
	for _, c := range r.Checklist {
		f.Rows = append(f.Rows, [2]string{c.Item, plain.Line(string(c.Answer) + ": " + c.Why)})
	}
	return f
}
