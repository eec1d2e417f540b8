package doctor

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/kit/words"
	"llmparity/reports/plain"
)

// rule is the Banner's.
var rule = strings.Repeat("=", 60)

// Print prints the diagnosis.
func (d *Diagnosis) Print(w io.Writer) {
	say := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	section := func(title string, rows [][2]string) {
		if len(rows) == 0 {
			return
		}
		say("%s", title)
		width := 0
		for _, r := range rows {
			width = max(width, len(r[0]))
		}
		for _, r := range rows {
			say("  %-*s  %s", width, r[0], r[1])
		}
		say("")
	}
	section("Engines and what they can run here", d.engineRows())
	section("Parts", d.partRows())
	d.printBanner(say)
	say("")
	section("Machine", slices.DeleteFunc(plain.Machine(d.Machine), func(r [2]string) bool { return r[0] == "GPUs" }))
	section("GPUs", d.gpuRows())
	section("WebGPU", d.WebGPU.rows())
	var servers [][2]string
	for _, p := range d.Servers {
		servers = append(servers, [2]string{p.Path, p.Detail})
	}
	section("Servers on this machine", servers)
	var checks [][2]string
	for _, c := range d.Checklist {
		checks = append(checks, [2]string{string(c.Answer), c.Item + ": " + c.Why})
	}
	section("Would a run of the default plan be reproducible now?", checks)
	vram := "no GPU memory"
	if d.Fits.VRAMB > 0 {
		vram = fmt.Sprintf("%.1f GiB of GPU memory", float64(d.Fits.VRAMB)/(1<<30))
	}
	say("Free memory: %.1f GiB of RAM (%s), %s. To check whether a model fits: %s", float64(d.Fits.RAMB)/(1<<30),
		d.Fits.Within, vram, d.Fits.Judge)
}

func (d *Diagnosis) partRows() [][2]string {
	var rows [][2]string
	for _, p := range slices.Concat(d.Parts, d.Missing) {
		mark := "ok"
		switch {
		case silent(p.Err):
			mark = "unknown"
		case p.Missing != "":
			mark = "MISSING"
		case p.Absent:
			mark = "none"
		}
		rows = append(rows, [2]string{mark, fmt.Sprintf("%-16s  %s", p.Name, cmp.Or(p.Missing, line(p)))})
		for _, tried := range p.Tried {
			rows = append(rows, [2]string{"", fmt.Sprintf("%-16s  %s", "tried", tried)})
		}
	}
	return rows
}

func (d *Diagnosis) printBanner(say func(string, ...any)) {
	b := d.Banner
	say("%s\nllmparity - Environment Information\n%s", rule, rule)
	say("Platform: %s\nPython: %s\nCUDA: %s", b.Platform, b.Python, b.CUDA)
	for _, g := range b.Devices {
		say("  - %s", g)
	}
	say("PyTorch: %s\nTransformers: %s\n%s", b.PyTorch, b.Transformers, rule)
}

// gpuRows are the GPUs, notes about them, and libraries.
func (d *Diagnosis) gpuRows() [][2]string {
	var rows [][2]string
	for _, g := range d.GPUs {
		text := strings.TrimSpace(g.Name + " " + g.Part)
		if g.MemoryB > 0 {
			text += fmt.Sprintf(", %.1f GiB", float64(g.MemoryB)/(1<<30))
		}
		if g.FreeB != nil {
			text += fmt.Sprintf(", %.1f GiB free", float64(*g.FreeB)/(1<<30))
		}
		if g.Driver != "" {
			text += ", driver " + g.Driver
		}
		rows = append(rows, [2]string{g.Role, text + ", read by " + g.Method})
	}
	if len(d.GPUs) == 0 {
		rows = append(rows, [2]string{"none", "no supported GPU found"})
	}
	for _, note := range d.GPUNotes {
		rows = append(rows, [2]string{"note", note})
	}
	for _, name := range slices.Sorted(maps.Keys(d.Libraries)) {
		rows = append(rows, [2]string{name, d.Libraries[name]})
	}
	return rows
}

// rows describe the adapter; none without one.
func (g *WebGPU) rows() [][2]string {
	if g == nil {
		return nil
	}
	class := string(g.Class)
	if g.Fallback {
		class += ", fallback adapter"
	}
	rows := [][2]string{{"adapter", g.Name}, {"class", class}}
	for _, r := range [][2]string{{"backend", g.Backend}, {"type", g.Type}, {"driver", g.Driver}} {
		if r[1] != "" {
			rows = append(rows, r)
		}
	}
	rows = append(rows, [2]string{"features", strings.Join(g.Features, " ")})
	for _, name := range slices.Sorted(maps.Keys(g.Limits)) {
		value := fmt.Sprint(g.Limits[name])
		if n := g.Limits[name]; n >= 1<<20 {
			value = fmt.Sprintf("%d (%.4g MiB)", n, float64(n)/(1<<20))
		}
		rows = append(rows, [2]string{name, value})
	}
	return rows
}

func (d *Diagnosis) engineRows() [][2]string {
	var rows [][2]string
	for _, e := range d.Engines {
		text := e.Can
		if e.Version != "" {
			text = words.Version(e.Version) + ": " + text
		}
		rows = append(rows, [2]string{e.Name, text})
	}
	return rows
}

// line describes a part.
func line(p engine.Part) string {
	empty := func(s string) bool { return s == "" }
	return strings.Join(slices.DeleteFunc([]string{words.Version(p.Version), p.Path, p.Detail}, empty), "  ")
}
