package modellib

// Variant is the kind of machine and the purpose that a library is compiled for. It does not change what a model says.
type Variant struct {
	// Kernels is "software", for adapters that run on a CPU: no thread waits for another. Or "gpu": threads share what
	// they read. Or "mlc": MLC's graph by TVM's own rules, for GPUs.
	Kernels string `json:"kernels"`
	// Sort is how much of the probabilities is sorted for sampling: "partial", as much as sampling reads, or "full".
	Sort string `json:"sort"`
}

func (v Variant) String() string { return v.Kernels + " kernels, " + v.Sort + " sort" }
