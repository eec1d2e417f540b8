// Package fault holds the errors that a user can act on: one line that says what is wrong and one that says what to do,
// each kind with an exit code of its own, so that a CI job can tell a missing browser from a failed measurement.
//
// It can't say which cell of a run failed and how: that is engine.Failure, a value of the record.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Kind is a class of trouble; its value is the process's exit code. The README documents every one of them.
type Kind int

const (
	Run           Kind = 1 // something in the run failed; the record says what
	Usage         Kind = 2 // a flag, an argument or a plan that makes no sense
	Gate          Kind = 3 // a gate that a run did not keep to
	Inconclusive  Kind = 5 // a gate that could not be decided
	NoChrome      Kind = 10
	NoLlamaServer Kind = 11
	NoEmscripten  Kind = 12
	NoPython      Kind = 13 // Python itself, or the packages the compiler needs
	NoBundle      Kind = 14 // the page's npm parts were never installed
	NoAdapter     Kind = 15 // the browser offers no WebGPU adapter
	BadModel      Kind = 16 // empty, truncated or malformed model file
	UnknownArch   Kind = 17 // a sound model of an architecture that is not supported
	PromptTooLong Kind = 18
	Unwritable    Kind = 19
	DiskFull      Kind = 20
	UnknownEngine Kind = 21
	BadRecord     Kind = 22 // a folder that is no run, or one from a newer version
	NoF16         Kind = 23 // the WebGPU adapter has no float16
	BadLibrary    Kind = 24 // a WebLLM model library that can't be had, read, or run with this model or WebLLM
	UnknownModel  Kind = 25 // a model that WebLLM's catalogue doesn't have
	Download      Kind = 26 // a model that can't be fetched, or of which other bytes came than should have
	NoDisplay     Kind = 27 // a browser with a window was asked for, and there is no display and no way to make one
	NoOllama      Kind = 28
	// A server that does not answer, does not let us in, or does not have the model.
	ServerUnreachable Kind = 29
	BadProtocol       Kind = 30 // an engine of the user's own that does not speak our protocol
	NothingToWatch    Kind = 31 // no process of that name or pid, or a command that can't be started
	WontFit           Kind = 32 // a cell that would run out of memory, and was not launched
	Interrupted       Kind = 130
	Terminated        Kind = 143
)

// Error is one line for the user. Do may be empty where nothing can be advised.
type Error struct {
	Kind Kind
	What string // what is wrong, and where (file, line, field)
	Do   string // what to do about it
	Err  error  // the cause, for errors.Is; What already says what matters of it
}

func (e *Error) Error() string {
	s := e.What
	if e.Do != "" {
		s += "; " + e.Do
	}
	return OneLine(s)
}

// OneLine is text without line breaks and runs of blanks.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func (e *Error) Unwrap() error { return e.Err }

// New makes an Error without a cause.
func New(kind Kind, do, format string, args ...any) *Error {
	return &Error{Kind: kind, Do: do, What: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error with a cause, whose text is appended to what.
func Wrap(kind Kind, err error, do, format string, args ...any) *Error {
	return &Error{Kind: kind, Do: do, What: fmt.Sprintf(format, args...) + ": " + err.Error(), Err: err}
}

// NoSpace tells whether err comes of a full disk, or of a quota that is used up.
func NoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Code gives the exit code for err: 0 for nil, a Kind where one is in the chain, else 1.
func Code(err error) int {
	if err == nil {
		return 0
	}
	var e *Error
	if errors.As(err, &e) {
		return int(e.Kind)
	}
	return int(Run)
}
