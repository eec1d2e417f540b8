package fault

import "slices"

// Kind is the class of an error: the word before its message and in --json. docs/reference/exit-codes.md lists them.
type Kind string

// The classes. Errors that the user can't fix before trying again are Run.
const (
	Run          Kind = "failed"       // a launch or another part of the run failed; the record has the reason
	Usage        Kind = "usage"        // invalid flag, argument or plan
	Gate         Kind = "gate-failed"  // a check of a gate failed
	Inconclusive Kind = "inconclusive" // a check of a gate could not be decided

	NoChrome      Kind = "no-browser"
	NoLlamaServer Kind = "no-llamacpp"
	NoEmscripten  Kind = "no-emscripten"
	NoPython      Kind = "no-python"  // Python, or packages that the compiler needs
	NoBundle      Kind = "no-webllm"  // the page's npm packages are not installed
	NoAdapter     Kind = "no-webgpu"  // the browser has no WebGPU adapter
	NoF16         Kind = "no-float16" // the WebGPU adapter has no float16
	NoDisplay     Kind = "no-display" // no display for a visible browser window
	NoOllama      Kind = "no-ollama"
	NoProgram     Kind = "no-program" // the program of an exec engine can't be started
	UnknownEngine Kind = "unknown-engine"

	BadModel      Kind = "bad-model"            // empty, truncated or malformed model file
	UnknownArch   Kind = "unknown-architecture" // architecture not supported
	BadLibrary    Kind = "bad-library"          // model library not available, or unsuitable
	UnknownModel  Kind = "unknown-model"        // not in WebLLM's catalogue
	Download      Kind = "download"             // download failed, or its checksum is wrong
	PromptTooLong Kind = "prompt-too-long"
	NotSupported  Kind = "not-supported" // the engine lacks a requested feature
	WontFit       Kind = "out-of-memory" // cell not launched, because it is predicted to run out of memory

	Unwritable Kind = "not-writable"
	DiskFull   Kind = "disk-full"
	BadRecord  Kind = "bad-record" // not a run folder, or one written by a newer version

	ServerUnreachable Kind = "server"       // server unreachable, access denied, or model not found
	BadProtocol       Kind = "bad-protocol" // an exec engine violates the protocol
	NothingToWatch    Kind = "no-process"   // no matching process, or a command that can't be started

	Interrupted Kind = "interrupted"
	Terminated  Kind = "terminated"
)

// exitCodes maps classes to exit codes. All other classes mean that something is missing or not supported here.
var exitCodes = map[Kind]int{"": 0, Run: 1, Usage: 2, UnknownEngine: 2, Gate: 3, Inconclusive: 5, Interrupted: 130,
	Terminated: 143}

const exitMissing = 4

// order lists exit codes by priority: if several apply, the program exits with the first.
var order = []int{130, 143, 2, 3, 1, exitMissing, 5}

// before reports whether the exit code of k has priority over that of other.
func (k Kind) before(other Kind) bool {
	return slices.Index(order, k.ExitCode()) < slices.Index(order, other.ExitCode())
}

// ExitCode returns the program's exit code for an error of this class.
func (k Kind) ExitCode() int {
	if code, ok := exitCodes[k]; ok {
		return code
	}
	return exitMissing
}
