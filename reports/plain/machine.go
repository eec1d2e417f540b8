package plain

import (
	"cmp"
	"fmt"
	"strings"

	"llmparity/internal/record"
)

// Machine describes a machine in rows of name and value. What is not known has no row.
func Machine(e record.Environment) [][2]string {
	var out [][2]string
	p := cmp.Or(e.Processor, &record.Processor{}) // not every system tells
	for _, row := range [][2]string{
		{"system", Joined(", ", strings.TrimSpace(e.OS+" "+e.Kernel), e.Arch)}, {"runs in", runsIn(e)},
		{"CPU", fmt.Sprintf("%s, %d cores", e.CPU, e.Cores)}, {"cores", cores(p)},
		{"frequency", frequency(p, e.Governor)},
		{"caches", caches(p)}, {"SIMD", strings.Join(p.SIMD, " ")}, {"memory", ram(e)},
		{"limits", limits(e.Limits)},
		{"load before the run", loads(e)}, {"others before the run", background(e.Background, max(e.Cores, p.Logical))},
		{"temperature", temperatures(e.Temperatures)},
		{"GPUs", gpus(e.GPUs)}, {"display", e.Display}, {"disk", disks(e.Disks)}, {"built by", e.Go},
	} {
		if row[1] != "" {
			out = append(out, [2]string{row[0], Line(row[1])})
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

func gibOf(b int64) string { return Num(float64(b)/(1<<30)) + " GiB" }

func runsIn(e record.Environment) string {
	container, virtual := "", ""
	if e.Container || e.ContainerKind != "" {
		container = strings.TrimSuffix("a container ("+e.ContainerKind+")", " ()")
	}
	if e.Virtual != "" {
		virtual = "a virtual machine (" + e.Virtual + ")"
	}
	return Joined(" on ", container, virtual)
}

func cores(p *record.Processor) string {
	return Joined(", ", some(p.Physical, "%d physical"), some(p.Logical, "%d logical"), some(p.Sockets, "sockets: %d"),
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
	return Joined(", ", between, some(p.MHz, "%.0f MHz when it was read"), p.Driver, prefixed("turbo", p.Turbo),
		prefixed("governor", governor))
}

func caches(p *record.Processor) string {
	return listed(", ", p.Caches, func(c record.Cache) string {
		size := Num(float64(c.B)/1024) + " KiB"
		if c.B >= record.MiB {
			size = Num(float64(c.B)/record.MiB) + " MiB"
		}
		return Joined(" ", fmt.Sprintf("L%d", c.Level), strings.TrimSuffix(c.Kind, "unified"),
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
	return Joined(", ", parts...)
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
		s += fmt.Sprintf(" after %s s", Num(r.IdleS))
	}
	if r.FreeBelow > 0 {
		s += fmt.Sprintf(" while less than %s%% is free", Num(100*r.FreeBelow))
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
	return cmp.Or(Joined(", ", some(l.CPUs, "%g cores"), memory, swap), "none") + " (cgroup " + l.Version + ")"
}

func loads(e record.Environment) string {
	if e.Load5 == 0 && e.Load15 == 0 {
		return Num(e.Load1)
	}
	return Num(e.Load1) + ", " + Num(e.Load5) + " over 5 minutes, " + Num(e.Load15) + " over 15"
}

func background(b *record.Background, cores int) string {
	if b == nil {
		return ""
	}
	s := fmt.Sprintf("%s of %d cores busy, watched for %s s", Num(b.Cores), cores, Num(b.Seconds))
	if b.Stolen > 0 {
		s += ", " + Num(b.Stolen) + " used by other guests of the host"
	}
	return Joined(": ", s,
		listed(", ", b.Busiest, func(p record.BusyProcess) string { return p.Name + " " + Num(p.Cores) }))
}

func temperatures(all []record.Temperature) string {
	return listed(", ", all, func(t record.Temperature) string { return t.Chip + " " + Num(t.Celsius) + " °C" })
}

func gpus(all []record.GPUInfo) string {
	return cmp.Or(listed("; ", all, func(g record.GPUInfo) string {
		memory := ""
		if g.MemoryB > 0 {
			memory = gibOf(g.MemoryB)
		}
		return Joined(", ", g.Role+": "+Joined(" ", g.Name, g.Part), memory, prefixed("driver", g.Driver),
			prefixed("by", g.Method))
	}), "none detected")
}

// disks lists disks, joining roles on the same one.
func disks(all []record.Disk) string {
	var out []string
	roles := map[string]int{}
	for _, d := range all {
		where := Joined(" ", gibOf(d.FreeB), "of", gibOf(d.TotalB), "free",
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
