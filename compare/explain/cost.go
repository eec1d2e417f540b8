package explain

// What a browser costs, taken apart.
const (
	CostHeadline = "%s decodes at %s of %s's speed"
	// the interval, then threads
	CostSame = "%s, same file, same CPU, %s each."
	CostOf   = "%s takes %s times as long a token: "
	// shares of a product; then bits, and the library
	CostShares  = "%s times for vectors of %d bits instead of %d, and %s times for the browser, its compiler and its version of %s."
	CostUnsplit = "how much of it %d-bit vectors instead of %d-bit ones cost was not measured."
	CostUnknown = "the instruction set's share is not known."
)
