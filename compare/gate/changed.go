package gate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/internal/record"
)

// likeMemory is the share by which the same machine's memory may differ: what the kernel keeps for itself is taken off.
const likeMemory = 0.05

// machineChanged says in which way a machine is not the baseline's; empty: it looks the same. Its kernel may be another: that is a part of what
// one wants to notice.
func machineChanged(b, n record.Environment) string {
	var out []string
	differ := func(what, was, is string) {
		if was != is && was != "" && is != "" {
			out = append(out, fmt.Sprintf("%s was %s and is %s", what, was, is))
		}
	}
	differ("the system", b.OS, n.OS)
	differ("the architecture", b.Arch, n.Arch)
	differ("the processor", b.CPU, n.CPU)
	differ("the number of cores", fmt.Sprint(b.Cores), fmt.Sprint(n.Cores))
	differ("the governor", b.Governor, n.Governor)
	differ("the virtual machine", b.Virtual, n.Virtual)
	if b.MemoryB > 0 && n.MemoryB > 0 && math.Abs(float64(n.MemoryB-b.MemoryB)) > likeMemory*float64(b.MemoryB) {
		differ("the memory", gib(b.MemoryB), gib(n.MemoryB))
	}
	if b.Limits != nil && n.Limits != nil && b.Limits.CPUs != n.Limits.CPUs {
		out = append(out, fmt.Sprintf("the quota of cores was %s and is %s", quota(b.Limits.CPUs), quota(n.Limits.CPUs)))
	}
	if b.Processor != nil && n.Processor != nil {
		differ("turbo", b.Processor.Turbo, n.Processor.Turbo)
	}
	if len(out) == 0 {
		return ""
	}
	return "the machine is another one: " + strings.Join(out, "; ")
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

func quota(cores float64) string {
	if cores == 0 {
		return "none"
	}
	return num(cores)
}

// partsChanged says in which way a cell ran on or with something else that is not the thing under test: another device, another browser,
// numbers of another type. The engine itself may be another version: that is what one wants to notice.
func partsChanged(b, n *compare.Cell) string {
	if b.Device != nil && n.Device != nil {
		if b.Device.Class != n.Device.Class {
			return fmt.Sprintf("the class of device is another one: it was %s and is %s", b.Device.Class, n.Device.Class)
		}
		if b.Device.Name != n.Device.Name {
			return fmt.Sprintf("the device is another one: it was %s and is %s", orNone(b.Device.Name), orNone(n.Device.Name))
		}
	}
	if b.Engine == nil || n.Engine == nil {
		return ""
	}
	if was, is := b.Engine.Parts["browser"], n.Engine.Parts["browser"]; was != is {
		return fmt.Sprintf("the browser is another one: it was %s and is %s", orNone(was), orNone(is))
	}
	for _, key := range slices.Sorted(maps.Keys(b.Engine.Policy)) {
		if is, told := n.Engine.Policy[key]; told && is != b.Engine.Policy[key] {
			return fmt.Sprintf("the engine computes otherwise: %s was %s and is %s", strings.ReplaceAll(key, "_", " "), b.Engine.Policy[key], is)
		}
	}
	return ""
}

// versions notes what of an engine is another version.
func (j *judge) versions(b, n *compare.Cell) {
	if b.Engine == nil || n.Engine == nil {
		return
	}
	if b.Engine.Version != n.Engine.Version {
		j.note("%s is another version: %s in the baseline, %s in the run", n.Spec.Engine, orNone(b.Engine.Version), orNone(n.Engine.Version))
	}
	for _, part := range []string{"webllm", "model_library"} {
		if was, is := b.Engine.Parts[part], n.Engine.Parts[part]; was != is && was != b.Engine.Version {
			j.note("%s has another %s: %s in the baseline, %s in the run", n.Spec.Engine, strings.ReplaceAll(part, "_", " "), orNone(was), orNone(is))
		}
	}
}
