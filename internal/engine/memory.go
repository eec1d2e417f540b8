package engine

// Memory is how an engine has a model in memory: what predictions must know of it. Package estimate has the formulas,
// by runtime. Sizes are in bytes.
type Memory struct {
	Name    string // of the engine
	Title   string // for people
	Runtime Runtime
	// Program is what the engine's program takes beside the model; zero: its runtime's formula says it.
	Program Program
	// Before is what its processes hold before a model is loaded, by PSS.
	Before int64
	// Itself says that it decides by itself what others are told: layers on a GPU, tokens at a time, slots.
	Itself bool
	// FourBits is the format of weights to advise where memory is short.
	FourBits string
}

// Runtime is the library that an engine computes with. Engines of one runtime have models in memory alike.
type Runtime string

// The runtimes whose formulas are known.
const (
	GGML  Runtime = "ggml"
	MLC   Runtime = "mlc" // in a browser
	VLLM  Runtime = "vllm"
	Torch Runtime = "torch"
)

// Program is a size with its range, as parts of it, and how it was found.
type Program struct {
	Bytes     float64
	Token     float64 // more for each token of the vocabulary
	Devices   bool    // each device has one
	Low, High float64
	How       string
}
