package engine

// Memory is what predictions need to know about how an engine holds a model. Package estimate has the formulas, by
// runtime. Sizes are in bytes.
type Memory struct {
	Name    string // of the engine
	Title   string // for people
	Runtime Runtime
	// Program is what the program takes besides the model; zero: the runtime's formula has it.
	Program Program
	// Before is the PSS of its processes before a model is loaded.
	Before int64
	// Itself: the engine itself chooses GPU layers, batch size and slots.
	Itself bool
	// Formats are those of models that not every engine's files can be made from, by their names in models.
	Formats []string
	// KVTypes are the dtypes that its KV cache can have, by canonical names; nil: unknown.
	KVTypes []string
	// FourBits is the weight format to recommend if memory is short.
	FourBits string
	// Starts returns the settings that a run starts the engine with, under the names that records use; nil: unknown.
	Starts func(Settings) map[string]string
	// Adapter returns the WebGPU adapter of a name; nil: it has none.
	Adapter func(name string) (Adapter, error)
	// Cannot returns why it cannot run a GGUF of any size in a context; nil: it runs those that it reads.
	Cannot func(path string, context int) error
}

// Adapter is a WebGPU adapter, as far as it is known before a browser runs.
type Adapter struct {
	Name     string
	Any      bool // none is chosen
	Software bool // runs on the CPU, here
	CPU      bool // runs on the CPU, on every machine
	F16      bool // runs on the CPU and has shader-f16
	// Buffer and Binding are the largest buffer and storage binding in bytes; 0: unknown.
	Buffer, Binding int64
}

// Runtime names the library that an engine computes with. Engines with the same runtime use memory in the same way.
type Runtime string

// Program is a size with its range and how it was determined.
type Program struct {
	Bytes     float64
	Token     float64 // added for each token of the vocabulary
	Devices   bool    // each device has one
	Low, High float64
	How       string
}
