package modellib

import (
	"fmt"
	"slices"

	"llmparity/internal/fault"
)

// Variant is for what kind of machine, and to what end, a library is compiled; what a model says does not depend on it.
type Variant struct {
	// Kernels is "software", where no thread ever waits for another, which an adapter computed on a CPU rewards, or
	// "gpu", where threads share what they read.
	Kernels string `json:"kernels"`
	// Sort tells how much of the probabilities is put in order for sampling: "partial", as much as sampling then reads,
	// or "full".
	Sort string `json:"sort"`
}

// Validate says why there is no such variant.
func (v Variant) Validate() error {
	for _, f := range []struct {
		what, value string
		known       []string
	}{{"kernels", v.Kernels, []string{"software", "gpu"}}, {"sort", v.Sort, []string{"partial", "full"}}} {
		if !slices.Contains(f.known, f.value) {
			return fault.New(fault.Usage, fmt.Sprintf("choose %s or %s", f.known[0], f.known[1]),
				"a model library's %s can't be %q", f.what, f.value)
		}
	}
	return nil
}

func (v Variant) String() string { return v.Kernels + " kernels, " + v.Sort + " sort" }
