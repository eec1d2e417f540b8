package fault

import "slices"

// Kind is the class of an error: the word before its message and in --json. docs/reference/exit-codes.md lists them.
type Kind string

// The classes. Only what a person must mend before it can work is more than Run.
const (
	Run          Kind = "failed"       // a launch, or something else in the run; the record says what
	Usage        Kind = "usage"        // a flag, an argument or a plan that makes no sense
	Gate         Kind = "gate-failed"  // a gate that a run did not keep to
	Inconclusive Kind = "inconclusive" // a gate that could not be decided

	NoChrome      Kind = "no-browser"
	NoLlamaServer Kind = "no-llamacpp"
	NoEmscripten  Kind = "no-emscripten"
	NoPython      Kind = "no-python"  // Python itself, or the packages the compiler needs
	NoBundle      Kind = "no-webllm"  // the page's npm parts were never installed
	NoAdapter     Kind = "no-webgpu"  // the browser offers no WebGPU adapter
	NoF16         Kind = "no-float16" // the WebGPU adapter has none
	NoDisplay     Kind = "no-display" // a browser with a window was asked for, and there is no way to show one
	NoOllama      Kind = "no-ollama"
	NoProgram     Kind = "no-program" // an engine of the user's own that can't be started
	UnknownEngine Kind = "unknown-engine"

	BadModel      Kind = "bad-model"            // empty, truncated or malformed model file
	UnknownArch   Kind = "unknown-architecture" // a sound model of an architecture that is not supported
	BadLibrary    Kind = "bad-library"          // a model library that can't be had, or run with this model or WebLLM
	UnknownModel  Kind = "unknown-model"        // a model that WebLLM's catalogue doesn't have
	Download      Kind = "download"             // a model that can't be fetched, or came with other bytes
	PromptTooLong Kind = "prompt-too-long"
	NotSupported  Kind = "not-supported" // something that an engine is asked for and does not do
	WontFit       Kind = "out-of-memory" // a cell that is predicted to run out of memory, and was not launched

	Unwritable Kind = "not-writable"
	DiskFull   Kind = "disk-full"
	BadRecord  Kind = "bad-record" // a folder that is no run, or one from a newer version

	// A server that does not answer, does not let us in, or does not have the model.
	ServerUnreachable Kind = "server"
	BadProtocol       Kind = "bad-protocol" // an engine of the user's own that does not speak our protocol
	NothingToWatch    Kind = "no-process"   // no process of that name or pid, or a command that can't be started

	Interrupted Kind = "interrupted"
	Terminated  Kind = "terminated"
)

// exitCodes has what the program exits with for a class; one that is not here says that something is missing or not
// supported here.
var exitCodes = map[Kind]int{"": 0, Run: 1, Usage: 2, UnknownEngine: 2, Gate: 3, Inconclusive: 5, Interrupted: 130,
	Terminated: 143}

const exitMissing = 4

// order is which exit code a command ends with where several apply.
var order = []int{130, 143, 2, 3, 1, exitMissing, 5}

// before tells whether the exit code of k is the one that counts of two.
func (k Kind) before(other Kind) bool {
	return slices.Index(order, k.ExitCode()) < slices.Index(order, other.ExitCode())
}

// ExitCode is what the program exits with for a fault of this class.
func (k Kind) ExitCode() int {
	if code, ok := exitCodes[k]; ok {
		return code
	}
	return exitMissing
}
