package machine

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"llmparity/internal/record"
)

// Difference is a property that changed.
type Difference struct {
	record.Difference
	// Figures is false if the change does not affect figures, or the property changes all the time.
	Figures bool `json:"changes_figures"`
}

// Diff compares two machines. unknown lists what could not be compared.
func Diff(was, is record.Environment) (out []Difference, unknown []string) {
	differ := func(what, was, is string, figures bool) {
		if was != is {
			out = append(out, Difference{record.Difference{What: what, Was: was, Is: is}, figures})
		}
	}
	differ("processor", was.CPU, is.CPU, true)
	differ("architecture", cmp.Or(was.Arch, is.Arch), is.Arch, true)
	differ("cores", strconv.Itoa(was.Cores), strconv.Itoa(is.Cores), true)
	differ("memory", gib(was.MemoryB), gib(is.MemoryB), true)
	differ("kernel", was.Kernel, is.Kernel, true)
	differ("operating system", was.OS, is.OS, false) // programs are compared separately
	differ("frequency governor", was.Governor, is.Governor, true)
	// Limits of containers are compared separately.
	differ("container", cmp.Or(was.ContainerKind, "none"), cmp.Or(is.ContainerKind, "none"), false)
	differ("virtual machine", cmp.Or(was.Virtual, "none"), cmp.Or(is.Virtual, "none"), true)
	differ("GPUs", gpuNames(was.GPUs), gpuNames(is.GPUs), true)
	if a, b := was.Processor, is.Processor; a == nil || b == nil {
		unknown = append(unknown, "details of the processor")
	} else {
		differ("microcode", a.Microcode, b.Microcode, true)
		differ("simultaneous multithreading", a.SMT, b.SMT, true)
		differ("turbo", a.Turbo, b.Turbo, true)
		differ("frequency driver", a.Driver, b.Driver, true)
		differ("highest frequency", unlessZero(a.MaxMHz, "%.0f MHz", ""), unlessZero(b.MaxMHz, "%.0f MHz", ""), true)
		differ("logical cores", strconv.Itoa(a.Logical), strconv.Itoa(b.Logical), true)
		differ("instruction sets", strings.Join(a.SIMD, " "), strings.Join(b.SIMD, " "), true)
	}
	if a, b := was.Memory, is.Memory; a == nil || b == nil {
		unknown = append(unknown, "details of memory")
	} else {
		differ("transparent huge pages", a.HugePages, b.HugePages, true)
		differ("reclaimers of idle memory", reclaimers(a), reclaimers(b), true)
		differ("same-page merging", yesOrNo(a.Merged), yesOrNo(b.Merged), true)
		differ("compressed swap in memory", yesOrNo(a.Zswap), yesOrNo(b.Zswap), true)
		differ("swap", gib(a.SwapB), gib(b.SwapB), true)
		differ("available memory", gib(a.AvailableB), gib(b.AvailableB), false)
	}
	none := &record.Limits{}
	a, b := cmp.Or(was.Limits, none), cmp.Or(is.Limits, none)
	differ("CPU limit of the control group", unlessZero(a.CPUs, "%g", "none"), unlessZero(b.CPUs, "%g", "none"),
		true)
	const size = "%.2f GiB"
	differ("memory limit of the control group", unlessZero(float64(a.MemoryB)/(1<<30), size, "none"),
		unlessZero(float64(b.MemoryB)/(1<<30), size, "none"), true)
	differ("load average", fmt.Sprintf("%.1f", was.Load1), fmt.Sprintf("%.1f", is.Load1), false)
	return out, unknown
}

func unlessZero(n float64, format, zero string) string {
	if n == 0 {
		return zero
	}
	return fmt.Sprintf(format, n)
}

func yesOrNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// gib formats a size coarsely, so that memory reserved by a kernel makes no difference.
func gib(b int64) string { return fmt.Sprintf("%.1f GiB", float64(b)/(1<<30)) }

func reclaimers(m *record.Memory) string {
	var names []string
	for _, r := range m.Reclaimers {
		names = append(names, r.By)
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

func gpuNames(all []record.GPUInfo) string {
	var names []string
	for _, g := range all {
		name := strings.TrimSpace(g.Name + " " + g.Part)
		if g.Driver != "" {
			name += ", driver " + g.Driver
		}
		names = append(names, name)
	}
	return cmp.Or(strings.Join(names, "; "), "none")
}
