package estimate

import (
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"

	"llmparity/internal/gguf"
)

// Repacks are the types of weights that llama.cpp lays out anew for the processor that this runs on, in builds of 2026:
// on others, and in older builds, they are others.
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

// matrices are the bytes, by type, of what llama.cpp may lay out anew: the matrices that it multiplies by, of which it
// takes eight rows at a time. An embedding that is the head too is one of them then, though it is looked up in as it
// was.
func matrices(tensors []gguf.Tensor) map[string]int64 {
	head := slices.ContainsFunc(tensors, func(t gguf.Tensor) bool { return t.Name == "output.weight" })
	out := map[string]int64{}
	for _, t := range tensors {
		multiplied := strings.HasPrefix(t.Name, "blk.") || t.Name == "output.weight" || t.Name == "token_embd.weight" &&
			!head
		if multiplied && (len(t.Shape) == 2 || len(t.Shape) == 3 && strings.Contains(t.Name, "_exps.")) &&
			t.Shape[1]%8 == 0 {
			out[strings.ToLower(t.Type.String())] += t.Size
		}
	}
	return out
}

// repacked is how much of the weights llama.cpp lays out anew in memory of its own, and in which types.
func (e *Estimate) repacked() (n int64, types []string) {
	if !e.told() || e.Setup.GPULayers > 0 {
		return 0, nil
	}
	for _, name := range slices.Sorted(maps.Keys(e.Model.Matrices)) {
		if slices.Contains(e.Setup.Repacks, name) {
			n, types = n+e.Model.Matrices[name], append(types, name)
		}
	}
	return n, types
}
