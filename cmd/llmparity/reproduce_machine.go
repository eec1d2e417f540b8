package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"llmparity/internal/record"
)

// machine compares machines by what is known of both.
func (r *reproduction) machine(was, is record.Environment) {
	r.differ("processor", was.CPU, is.CPU, true)
	r.differ("architecture", cmp.Or(was.Arch, is.Arch), is.Arch, true)
	r.differ("cores", strconv.Itoa(was.Cores), strconv.Itoa(is.Cores), true)
	r.differ("memory", gib(was.MemoryB), gib(is.MemoryB), true)
	r.differ("kernel", was.Kernel, is.Kernel, true)
	r.differ("operating system", was.OS, is.OS, false) // programs are compared by themselves
	r.differ("frequency governor", was.Governor, is.Governor, true)
	// its limits are compared by themselves
	r.differ("container", cmp.Or(was.ContainerKind, "none"), cmp.Or(is.ContainerKind, "none"), false)
	r.differ("virtual machine", cmp.Or(was.Virtual, "none"), cmp.Or(is.Virtual, "none"), true)
	r.differ("GPUs", gpuNames(was.GPUs), gpuNames(is.GPUs), true)
	r.processor(was.Processor, is.Processor)
	r.memory(was.Memory, is.Memory)
	r.limits(was.Limits, is.Limits)
	r.differ("load average", fmt.Sprintf("%.1f", was.Load1), fmt.Sprintf("%.1f", is.Load1), false)
}

func (r *reproduction) processor(was, is *record.Processor) {
	if was == nil || is == nil {
		r.unknown("the processor in detail: the record, or this machine, does not tell of it")
		return
	}
	r.differ("microcode", was.Microcode, is.Microcode, true)
	r.differ("simultaneous threads", was.SMT, is.SMT, true)
	r.differ("turbo", was.Turbo, is.Turbo, true)
	r.differ("frequency driver", was.Driver, is.Driver, true)
	r.differ("highest frequency", mhz(was.MaxMHz), mhz(is.MaxMHz), true)
	r.differ("logical cores", strconv.Itoa(was.Logical), strconv.Itoa(is.Logical), true)
	r.differ("instructions", strings.Join(was.SIMD, " "), strings.Join(is.SIMD, " "), true)
}

func (r *reproduction) memory(was, is *record.Memory) {
	if was == nil || is == nil {
		r.unknown("memory in detail: the record, or this machine, does not tell of it")
		return
	}
	r.differ("transparent huge pages", was.HugePages, is.HugePages, true)
	r.differ("what takes idle memory", reclaimers(was), reclaimers(is), true)
	r.differ("same pages are merged", yesOrNo(was.Merged), yesOrNo(is.Merged), true)
	r.differ("swap is compressed in memory", yesOrNo(was.Zswap), yesOrNo(is.Zswap), true)
	r.differ("swap", gib(was.SwapB), gib(is.SwapB), true)
	r.differ("available memory", gib(was.AvailableB), gib(is.AvailableB), false)
}

func (r *reproduction) limits(was, is *record.Limits) {
	none := record.Limits{}
	if was == nil {
		was = &none
	}
	if is == nil {
		is = &none
	}
	r.differ("processors that the control group allows", limit(was.CPUs, "%g"), limit(is.CPUs, "%g"), true)
	r.differ("memory that the control group allows", limit(float64(was.MemoryB)/(1<<30), "%.2f GiB"),
		limit(float64(is.MemoryB)/(1<<30), "%.2f GiB"), true)
}

func limit(n float64, format string) string {
	if n == 0 {
		return "all"
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

func mhz(f float64) string {
	if f == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f MHz", f)
}

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
