package differ

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"llmparity/internal/record"
)

// near is the share by which the same machine's memory may differ: what the kernel keeps for itself is taken off.
const near = 0.05

// ofMachine are the properties of machines.
var ofMachine = []property[*record.Environment]{
	{name: "architecture", kind: Machine, of: func(e *record.Environment) string { return e.Arch }},
	{name: "CPU model", kind: Machine, of: func(e *record.Environment) string { return e.CPU }},
	{name: "cores", kind: Machine, of: func(e *record.Environment) string { return positive(e.Cores) }},
	{name: "logical cores", kind: Machine, of: processor(func(p *record.Processor) string {
		return positive(p.Logical)
	})},
	{name: "SMT", kind: Machine, of: processor(func(p *record.Processor) string {
		return p.SMT
	})},
	{name: "SIMD", kind: Machine, of: processor(func(p *record.Processor) string {
		return strings.Join(p.SIMD, " ")
	})},
	{name: "highest frequency", kind: Machine, of: processor(func(p *record.Processor) string {
		if p.MaxMHz == 0 {
			return ""
		}
		return fmt.Sprintf("%.0f MHz", p.MaxMHz)
	})},
	{name: "turbo", kind: Machine, of: processor(func(p *record.Processor) string { return p.Turbo })},
	{name: "governor", kind: Machine, of: func(e *record.Environment) string { return e.Governor }},
	{name: "memory", kind: Machine, of: func(e *record.Environment) string { return gib(e.MemoryB) },
		alike: func(was, is *record.Environment) bool {
			return math.Abs(float64(is.MemoryB-was.MemoryB)) <= near*float64(was.MemoryB)
		}},
	{name: "virtual machine", kind: Machine, of: func(e *record.Environment) string { return e.Virtual }},
	{name: "CPU quota", kind: Machine, of: func(e *record.Environment) string {
		switch l := e.Limits; {
		case l == nil:
			return ""
		case l.CPUs == 0:
			return none
		default:
			return fmt.Sprintf("%g cores", l.CPUs)
		}
	}},
	{name: "memory limit", kind: Machine, of: func(e *record.Environment) string {
		if e.Limits == nil {
			return ""
		}
		return cmp.Or(gib(e.Limits.MemoryB), none)
	}},
	{name: "GPUs", kind: Machine, of: func(e *record.Environment) string {
		return cmp.Or(gpus(e, func(g record.GPUInfo) string { return strings.TrimSpace(g.Name + " " + g.Part) }), none)
	}},
	{name: "OS", kind: System, of: func(e *record.Environment) string { return e.OS }},
	{name: "OS kernel", kind: System, of: func(e *record.Environment) string { return e.Kernel }},
	{name: "microcode", kind: System, of: processor(func(p *record.Processor) string { return p.Microcode })},
	{name: "frequency driver", kind: System, of: processor(func(p *record.Processor) string { return p.Driver })},
	{name: "GPU driver", kind: System, of: func(e *record.Environment) string {
		return gpus(e, func(g record.GPUInfo) string { return g.Driver })
	}},
	{name: "huge pages", kind: System, of: memory(func(m *record.Memory) string { return m.HugePages })},
	{name: "reclaimers of idle memory", kind: System, of: memory(func(m *record.Memory) string {
		var names []string
		for _, r := range m.Reclaimers {
			names = append(names, r.By)
		}
		return cmp.Or(strings.Join(names, ", "), none)
	})},
	{name: "merging of equal pages (KSM)", kind: System, of: memory(func(m *record.Memory) string {
		return onOff(m.Merged)
	})},
	{name: "zswap", kind: System, of: memory(func(m *record.Memory) string {
		return onOff(m.Zswap)
	})},
	{name: "swap", kind: System, of: memory(func(m *record.Memory) string { return cmp.Or(gib(m.SwapB), none) })},
	{name: "container", kind: System, idle: true, // its limits have rows
		of: func(e *record.Environment) string { return cmp.Or(e.ContainerKind, none) }},
	{name: "available memory", kind: System, idle: true,
		of: memory(func(m *record.Memory) string { return gib(m.AvailableB) })},
	{name: "load average", kind: System, idle: true,
		of: func(e *record.Environment) string { return fmt.Sprintf("%.1f", e.Load1) }},
}

// ofDevice are the properties of what an engine computes on.
var ofDevice = []property[record.Device]{
	{name: "device class", kind: Machine, of: func(d record.Device) string { return string(d.Class) }},
	{name: "device", kind: Machine, of: func(d record.Device) string { return d.Name }, always: true},
}

// ofTool are the properties of llmparity.
var ofTool = []property[record.Tool]{
	{name: "llmparity", kind: System, of: func(t record.Tool) string { return t.Version }},
	{name: "llmparity's program", kind: System, of: func(t record.Tool) string { return t.SHA256 }, implied: true},
	{name: "llmparity's platform", kind: System, implied: true,
		of: func(t record.Tool) string { return t.GoOS + "/" + t.GoArch }},
}

const none = "none"

// processor reads a detail of the processor; unknown where there are none.
func processor(of func(*record.Processor) string) func(*record.Environment) string {
	return func(e *record.Environment) string {
		if e.Processor == nil {
			return ""
		}
		return of(e.Processor)
	}
}

// memory reads a detail of memory; unknown where there are none.
func memory(of func(*record.Memory) string) func(*record.Environment) string {
	return func(e *record.Environment) string {
		if e.Memory == nil {
			return ""
		}
		return of(e.Memory)
	}
}

func gpus(e *record.Environment, of func(record.GPUInfo) string) string {
	var out []string
	for _, g := range e.GPUs {
		if text := of(g); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

func positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// gib formats a size coarsely, so that memory reserved by a kernel makes no difference.
func gib(b int64) string {
	if b == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f GiB", float64(b)/(1<<30))
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
