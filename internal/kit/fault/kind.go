package fault

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a class of errors: the word that a message begins with, and a field of --json. Classes says what each means.
type Kind string

// The classes. Errors that the user can't fix before trying again are Run.
const (
	Run          Kind = "failed"       // a launch or another part of the run failed; the record has the reason
	Usage        Kind = "usage"        // invalid flag, argument or plan
	Fallback     Kind = "fallback"     // an engine ran on another device than the plan asks for, or with less
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
	NoProgram     Kind = "no-program"   // the program of an exec engine can't be started
	NoContainer   Kind = "no-container" // a container is missing, does not run, or lacks what an engine needs
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
	Quota      Kind = "quota"      // a browser refuses to store more
	BadRecord  Kind = "bad-record" // not a run folder, or one written by a newer version

	ServerUnreachable Kind = "server"       // server unreachable, access denied, or model not found
	BadProtocol       Kind = "bad-protocol" // an exec engine violates the protocol
	NothingToWatch    Kind = "no-process"   // no matching process, or a command that can't be started

	Interrupted Kind = "interrupted"
	Terminated  Kind = "terminated"
)

// exitCodes are the exit codes of classes; all others have exitMissing.
var exitCodes = map[Kind]int{"": 0, Run: 1, Fallback: 1, Usage: 2, UnknownEngine: 2, Gate: 3, Inconclusive: 5,
	Interrupted: 130, Terminated: 143}

const exitMissing = 4

// order is the precedence of exit codes where several apply.
var order = []int{130, 143, 2, 3, 1, exitMissing, 5}

// Precedence lists exit codes in the order in which they count where several apply.
func Precedence() string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(order)), ", "), "[]")
}

// before tells whether the exit code of k takes precedence.
func (k Kind) before(other Kind) bool {
	return slices.Index(order, k.ExitCode()) < slices.Index(order, other.ExitCode())
}

// ExitCode is the exit code of the class.
func (k Kind) ExitCode() int {
	if code, ok := exitCodes[k]; ok {
		return code
	}
	return exitMissing
}
