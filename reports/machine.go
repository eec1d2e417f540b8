package reports

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/internal/record"
)

// Machine describes a machine in rows of name and value. What is not known has no row.
func Machine(e record.Environment) [][2]string {
	var out [][2]string
	p := cmp.Or(e.Processor, &record.Processor{}) // older records have none
	for _, row := range [][2]string{
		{"system", joined(", ", strings.TrimSpace(e.OS+" "+e.Kernel), e.Arch)}, {"runs in", runsIn(e)},
		{"CPU", fmt.Sprintf("%s, %d cores", e.CPU, e.Cores)}, {"cores", cores(p)},
		{"frequency", frequency(p, e.Governor)},
		{"caches", caches(p)}, {"SIMD", strings.Join(p.SIMD, " ")}, {"memory", ram(e)},
		{"limits", limits(e.Limits)},
		{"load before the run", loads(e)}, {"others before the run", background(e.Background, max(e.Cores, p.Logical))},
		{"temperature", temperatures(e.Temperatures)},
		{"GPUs", gpus(e.GPUs)}, {"display", e.Display}, {"disk", disks(e.Disks)}, {"built by", e.Go},
	} {
		if row[1] != "" {
			out = append(out, [2]string{row[0], line(row[1])})
		}
	}
	return out
}

// listed joins what is said of each.
func listed[T any](with string, all []T, say func(T) string) string {
	var out []string
	for _, one := range all {
		out = append(out, say(one))
	}
	return strings.Join(out, with)
}

// prefixed puts a name before a value that is not empty.
func prefixed(name, value string) string {
	if value == "" {
		return ""
	}
	return name + " " + value
}

// some formats a number that is not 0.
func some[T int | int64 | float64](n T, format string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

func gibOf(b int64) string { return num(float64(b)/(1<<30)) + " GiB" }

func runsIn(e record.Environment) string {
	container, virtual := "", ""
	if e.Container || e.ContainerKind != "" {
		container = strings.TrimSuffix("a container ("+e.ContainerKind+")", " ()")
	}
	if e.Virtual != "" {
		virtual = "a virtual machine (" + e.Virtual + ")"
	}
	return joined(" on ", container, virtual)
}

func cores(p *record.Processor) string {
	return joined(", ", some(p.Physical, "%d physical"), some(p.Logical, "%d logical"), some(p.Sockets, "sockets: %d"),
		prefixed("SMT", p.SMT), some(p.NUMANodes, "NUMA nodes: %d"), p.Vendor, prefixed("microcode", p.Microcode))
}

func frequency(p *record.Processor, governor string) string {
	between := some(p.MaxMHz, "up to %.0f MHz")
	if p.MinMHz > 0 {
		between = ""
		if p.MaxMHz > 0 {
			between = fmt.Sprintf("%.0f to %.0f MHz", p.MinMHz, p.MaxMHz)
		}
	}
	return joined(", ", between, some(p.MHz, "%.0f MHz when it was read"), p.Driver, prefixed("turbo", p.Turbo),
		prefixed("governor", governor))
}

func caches(p *record.Processor) string {
	return listed(", ", p.Caches, func(c record.Cache) string {
		size := num(float64(c.B)/1024) + " KiB"
		if c.B >= record.MiB {
			size = num(float64(c.B)/record.MiB) + " MiB"
		}
		return joined(" ", fmt.Sprintf("L%d", c.Level), strings.TrimSuffix(c.Kind, "unified"),
			some(c.Instances, "%d ×"), size)
	})
}

func ram(e record.Environment) string {
	parts := []string{gibOf(e.MemoryB)}
	if m := e.Memory; m != nil {
		swap := "no swap"
		if m.SwapB > 0 {
			swap = gibOf(m.SwapB) + " swap, " + gibOf(m.SwapFreeB) + " free"
		}
		parts = append(parts, gibOf(m.AvailableB)+" available", swap,
			prefixed("huge pages", m.HugePages), map[bool]string{true: "merges equal pages (KSM)"}[m.Merged],
			map[bool]string{true: "zswap"}[m.Zswap], listed(", ", m.Reclaimers, reclaimed))
	}
	return joined(", ", parts...)
}

// reclaimed says which memory the kernel takes from processes.
func reclaimed(r record.Reclaimer) string {
	if r.Hidden {
		return "may reclaim idle memory (" + r.By + ", readable only by root)"
	}
	s := "reclaims idle memory"
	if r.Some {
		s += " of some processes"
	}
	if r.IdleS > 0 {
		s += fmt.Sprintf(" after %s s", num(r.IdleS))
	}
	if r.FreeBelow > 0 {
		s += fmt.Sprintf(" while less than %s%% is free", num(100*r.FreeBelow))
	}
	return s + " (" + r.By + ")"
}

func limits(l *record.Limits) string {
	if l == nil {
		return ""
	}
	memory := ""
	if l.MemoryB > 0 {
		memory = fmt.Sprintf("%s memory, %s used", gibOf(l.MemoryB), gibOf(l.MemoryUseB))
	}
	swap := ""
	if l.SwapB != nil {
		swap = gibOf(*l.SwapB) + " swap"
	}
	return cmp.Or(joined(", ", some(l.CPUs, "%g cores"), memory, swap), "none") + " (cgroup " + l.Version + ")"
}

func loads(e record.Environment) string {
	if e.Load5 == 0 && e.Load15 == 0 {
		return num(e.Load1)
	}
	return num(e.Load1) + ", " + num(e.Load5) + " over 5 minutes, " + num(e.Load15) + " over 15"
}

func background(b *record.Background, cores int) string {
	if b == nil {
		return ""
	}
	s := fmt.Sprintf("%s of %d cores busy for %s s", num(b.Cores), cores, num(b.Seconds))
	if b.Stolen > 0 {
		s += ", " + num(b.Stolen) + " used by other guests of the host"
	}
	return joined(": ", s, listed(", ", b.Busiest, func(p record.BusyProcess) string { return p.Name + " " + num(p.Cores) }))
}

func temperatures(all []record.Temperature) string {
	return listed(", ", all, func(t record.Temperature) string { return t.Chip + " " + num(t.Celsius) + " °C" })
}

func gpus(all []record.GPUInfo) string {
	return cmp.Or(listed("; ", all, func(g record.GPUInfo) string {
		memory := ""
		if g.MemoryB > 0 {
			memory = gibOf(g.MemoryB)
		}
		return joined(", ", g.Role+": "+joined(" ", g.Name, g.Part), memory, prefixed("driver", g.Driver),
			prefixed("by", g.Method))
	}), "none detected")
}

// disks lists disks, joining roles on the same one.
func disks(all []record.Disk) string {
	var out []string
	roles := map[string]int{}
	for _, d := range all {
		where := joined(" ", gibOf(d.FreeB), "of", gibOf(d.TotalB), "free",
			strings.TrimSuffix("("+d.Filesystem+")", "()"))
		if i, ok := roles[where]; ok {
			out[i] = strings.TrimSuffix(out[i], " "+where) + ", " + d.Role + " " + where
			continue
		}
		roles[where] = len(out)
		out = append(out, d.Role+" "+where)
	}
	return strings.Join(out, "; ")
}

// fact is a heading with rows of name and value.
type fact struct {
	Name   string
	Colour template.CSS // of the engine; empty: none
	Rows   [][2]string
}

// add adds a row, unless its value is not known.
func (f *fact) add(name, value string) {
	if value != "" {
		f.Rows = append(f.Rows, [2]string{line(name), line(value)})
	}
}

// addAll adds a row a key.
func (f *fact) addAll(prefix string, m map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		f.add(prefix+strings.ReplaceAll(key, "_", " "), m[key])
	}
}

// environmentSections list engines, models and machines.
func environmentSections(v *view) []section {
	var runs []fact
	for _, r := range v.res.Runs {
		runs = append(runs, runFact(r), checklistFact(r))
	}
	return []section{{ID: "identity", Title: "Engines, models and requests", Parts: factParts(engineFacts(v))},
		{ID: "environment", Title: "Machine and reproducibility", Parts: factParts(runs)}}
}

func factParts(facts []fact) []section {
	if len(facts) == 0 {
		return nil
	}
	return []section{{For: onPage, View: "facts", Data: facts}}
}

// engineFacts list what ran. What all cells of an engine share comes first, then what differs.
func engineFacts(v *view) []fact {
	var out []fact
	of := map[string][]int{}
	for i := range v.res.Cells {
		engine := v.res.Cells[i].Spec.Engine
		of[engine] = append(of[engine], i)
	}
	for i := range v.res.Cells {
		engine := v.res.Cells[i].Spec.Engine
		if cells := of[engine]; cells[0] == i {
			out = append(out, sharing(v, cells)...)
		}
	}
	return out
}

// sharing are the facts of one engine's cells.
func sharing(v *view, cells []int) []fact {
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

func engineFact(v *view, i int) fact {
	c := &v.res.Cells[i]
	f := fact{Name: line(c.Label), Colour: template.CSS(v.colour(i))}
	if c.Foreign() { // another program recorded it
		if e := c.Engine; e != nil {
			f.add("rows of", e.Path)
			f.add("sha256", e.SHA256)
			f.addAll("", e.Parts)
		}
		f.add("model, prompt, device", "unknown")
		return f
	}
	if e := c.Engine; e != nil {
		f.add("runtime", e.Name+" "+e.Version)
		f.add("executable", e.Path)
		f.add("sha256", e.SHA256)
		f.addAll("", e.Parts)
		f.addAll("policy: ", e.Policy)
		f.add("arguments", strings.Join(e.Args, " "))
	} else {
		f.add("runtime", "unknown")
	}
	if d := c.Device; d != nil {
		f.add("device", string(d.Class)+": "+d.Name)
		f.addAll("device: ", d.Detail)
	}
	context := f.model(c)
	isolation := c.Spec.Isolation
	if c.Spec.Reused {
		isolation = strings.TrimPrefix(isolation+", reused by repetitions", ", ")
	}
	f.add("request", fmt.Sprintf("%d tokens at temperature %g, context %s, isolation %s, prompt cache %s",
		c.Spec.MaxTokens, c.Spec.Temperature, context, isolation, c.Spec.PromptCache))
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

// model adds the model's rows and returns a description of its context.
func (f *fact) model(c *compare.Cell) (context string) {
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
		f.add("model", fmt.Sprintf("%s, served by %s; weights not verified", m.Name, by))
		if m.Context == 0 {
			context = "the server's own"
		}
	} else {
		f.add("model", fmt.Sprintf("%s (%s, %s, %s, %d parameters)", m.Name, m.Architecture, m.Format, m.DType,
			m.Parameters))
		f.add("model sha256", m.SHA256)
		f.add("model file", fmt.Sprintf("%s MiB, weights %s MiB", num(float64(m.FileB)/record.MiB),
			num(float64(m.WeightsB)/record.MiB)))
	}
	if m.Context > 0 && m.MaxContext > m.Context {
		context += fmt.Sprintf(" (the model supports %d)", m.MaxContext)
	}
	return context
}

func runFact(r compare.Run) fact {
	f := fact{Name: line(r.Name)}
	if r.Tool.GoOS == "" { // another program's rows
		f.Rows = [][2]string{{"file", line(r.Dir)}, {"first row", r.Started.Format("2006-01-02 15:04:05 MST")}}
		return f
	}
	f.add("folder", r.Dir)
	f.add("started", r.Started.Format("2006-01-02 15:04:05 MST"))
	f.add("ended", string(r.Status))
	f.Rows = append(f.Rows, Machine(r.Environment)...)
	f.add("llmparity", strings.TrimSpace(r.Tool.Version+" "+r.Tool.GoOS+"/"+r.Tool.GoArch))
	f.add("llmparity sha256", r.Tool.SHA256)
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
