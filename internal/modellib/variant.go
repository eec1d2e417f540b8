package modellib

import (
	"fmt"
	"slices"

	"llmparity/internal/fault"
)

// Variant is the kind of machine and the purpose that a library is compiled for. It does not change what a model says.
type Variant struct {
	// Kernels is "software", for adapters that run on a CPU: no thread waits for another. Or "gpu": threads share what
	// they read.
	Kernels string `json:"kernels"`
	// Sort is how much of the probabilities is sorted for sampling: "partial", as much as sampling reads, or "full".
	Sort string `json:"sort"`
}

// Validate refuses an unknown variant.
func (v Variant) Validate() error {
	for _, f := range []struct {
		what, value string
		known       []string
	}{{"kernels", v.Kernels, []string{"software", "gpu"}}, {"sort", v.Sort, []string{"partial", "full"}}} {
		if !slices.Contains(f.known, f.value) {
			return fault.New(fault.Usage, fmt.Sprintf("choose %s or %s", f.known[0], f.known[1]),
				"unknown %s for a model library: %q", f.what, f.value)
		}
	}
	return nil
}

func (v Variant) String() string { return v.Kernels + " kernels, " + v.Sort + " sort" }
