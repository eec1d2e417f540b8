package estimate

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"
)

// Repacks returns the weight types that llama.cpp repacks for this processor. It holds for builds of 2026.
func Repacks() []string {
	switch {
	case runtime.GOARCH == "amd64" && cpu.X86.HasAVX2:
		types := []string{"q4_0", "q4_k", "iq4_nl", "mxfp4"}
		if cpu.X86.HasAVX512F {
			types = append(types, "q2_k")
		}
		return types
	case runtime.GOARCH == "arm64":
		return []string{"q4_0", "q4_k", "q5_k", "q6_k", "q8_0", "iq4_nl", "mxfp4"}
	}
	return nil
}

// repacked returns how many bytes of the weights llama.cpp repacks into memory of its own, for people too.
func (e *Estimate) repacked() (n int64, what string) {
	var types []string
	for _, name := range slices.Sorted(maps.Keys(e.Model.Matrices)) {
		if slices.Contains(e.ggml().Repacks, name) && !e.Setup.Engine.Itself && e.Setup.GPULayers == 0 {
			n, types = n+e.Model.Matrices[name], append(types, name)
		}
	}
	if n == 0 {
		return 0, "no repacking"
	}
	return n, fmt.Sprintf("%.2f MiB of %s repacked", float64(n)/mib, strings.Join(types, ", "))
}
