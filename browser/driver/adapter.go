package driver

import (
	"runtime"

	"llmparity/internal/host/machine"
	"llmparity/internal/kit/fault"
)

// Adapter selects what WebGPU computes on.
type Adapter string

// Auto is SwiftShader if the machine has no GPU, else the browser's choice.
const (
	Auto        Adapter = "auto"
	SwiftShader Adapter = "swiftshader"
	Lavapipe    Adapter = "lavapipe" // Mesa's CPU adapter, in the browser that `scripts/setup lavapipe` makes
	GPU         Adapter = "gpu"
)

// ParseAdapter parses a user's choice; empty is Auto.
func ParseAdapter(s string) (Adapter, error) {
	switch a := Adapter(s); a {
	case "":
		return Auto, nil
	case Auto, SwiftShader, Lavapipe, GPU:
		return a, nil
	}
	return "", fault.New(fault.Usage, "use auto, swiftshader, lavapipe or gpu", "unknown adapter %q", s)
}

// Software predicts whether the adapter runs on the CPU, before the browser runs, because a model library is compiled
// for one kind of adapter. The record has the real adapter.
func (a Adapter) Software() bool {
	return a == SwiftShader || a == Lavapipe || a != GPU && runtime.GOOS == "linux" && !machine.HasGPU()
}
