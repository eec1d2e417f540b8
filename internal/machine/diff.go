package machine

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"llmparity/internal/record"
)

// Difference is something that is not as it was.
type Difference struct {
	record.Difference
	// Figures is false where what is measured is the same all the same, or where it changes from minute to minute.
	Figures bool `json:"changes_figures"`
}

// Diff compares machines by what is known of both. unknown has what could not be compared.
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
	differ("operating system", was.OS, is.OS, false) // programs are compared by themselves
	differ("frequency governor", was.Governor, is.Governor, true)
	// A container's limits are compared by themselves.
	differ("container", cmp.Or(was.ContainerKind, "none"), cmp.Or(is.ContainerKind, "none"), false)
	differ("virtual machine", cmp.Or(was.Virtual, "none"), cmp.Or(is.Virtual, "none"), true)
	differ("GPUs", gpuNames(was.GPUs), gpuNames(is.GPUs), true)
	if a, b := was.Processor, is.Processor; a == nil || b == nil {
		unknown = append(unknown, "the processor in detail: the record, or this machine, does not tell of it")
	} else {
		differ("microcode", a.Microcode, b.Microcode, true)
		differ("simultaneous threads", a.SMT, b.SMT, true)
		differ("turbo", a.Turbo, b.Turbo, true)
		differ("frequency driver", a.Driver, b.Driver, true)
		differ("highest frequency", unlessZero(a.MaxMHz, "%.0f MHz", ""), unlessZero(b.MaxMHz, "%.0f MHz", ""), true)
		differ("logical cores", strconv.Itoa(a.Logical), strconv.Itoa(b.Logical), true)
		differ("instructions", strings.Join(a.SIMD, " "), strings.Join(b.SIMD, " "), true)
	}
	if a, b := was.Memory, is.Memory; a == nil || b == nil {
		unknown = append(unknown, "memory in detail: the record, or this machine, does not tell of it")
	} else {
		differ("transparent huge pages", a.HugePages, b.HugePages, true)
		differ("what takes idle memory", reclaimers(a), reclaimers(b), true)
		differ("same pages are merged", yesOrNo(a.Merged), yesOrNo(b.Merged), true)
		differ("swap is compressed in memory", yesOrNo(a.Zswap), yesOrNo(b.Zswap), true)
		differ("swap", gib(a.SwapB), gib(b.SwapB), true)
		differ("available memory", gib(a.AvailableB), gib(b.AvailableB), false)
	}
	none := &record.Limits{}
	a, b := cmp.Or(was.Limits, none), cmp.Or(is.Limits, none)
	differ("processors that the control group allows", unlessZero(a.CPUs, "%g", "all"), unlessZero(b.CPUs, "%g", "all"),
		true)
	const size = "%.2f GiB"
	differ("memory that the control group allows", unlessZero(float64(a.MemoryB)/(1<<30), size, "all"),
		unlessZero(float64(b.MemoryB)/(1<<30), size, "all"), true)
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

// gib is a size, rounded so that what a kernel keeps for itself does not make another machine of one.
func gib(b int64) string { return fmt.Sprintf("%.1f GiB", float64(b)/(1<<30)) }

func reclaimers(m *record.Memory) string {
	var names []string
	for _, r := range m.Reclaimers {
		names = append(names, r.By)
	}
	return cmp.Or(strings.Join(names, ", "), "nothing")
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
