package engine

import (
	"context"
	"os/exec"

	"llmparity/internal/child"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// Part is something that an engine works with, as it was found.
type Part struct {
	Name     string     `json:"name"`
	Version  string     `json:"version,omitempty"`
	Path     string     `json:"path,omitempty"`
	Detail   string     `json:"detail,omitempty"`
	Absent   bool       `json:"absent,omitempty"` // it is not here, and most do without it
	Missing  string     `json:"missing,omitempty"`
	Class    fault.Kind `json:"class,omitempty"` // of what is missing
	ExitCode int        `json:"exit_code,omitempty"`

	Backends []string       `json:"-"` // for which GPUs it was built
	Device   *record.Device `json:"-"` // a WebGPU adapter
	Err      error          `json:"-"` // what is missing, and how to get it
}

// Search finds a part.
type Search struct {
	Name   string
	Starts bool // a program that takes noticeable time
	Find   func(context.Context) Part
}

// Finding is an engine, and what it could run here.
type Finding struct {
	Name     string   `json:"name"` // as in plans
	Ready    bool     `json:"ready"`
	Version  string   `json:"version,omitempty"`
	Path     string   `json:"path,omitempty"`
	Device   string   `json:"device,omitempty"` // what it would compute on unless told otherwise
	F16      *bool    `json:"f16,omitempty"`    // whether it computes in float16 here; absent: not known
	Backends []string `json:"gpu_backends,omitempty"`
	Can      string   `json:"can"`
}

// Comparison takes what differs from an engine that ran before. An empty is says that the part is not here.
type Comparison struct {
	Differ  func(what, was, is string)
	Unknown func(format string, args ...any)
}

// Here is what a Finding goes by.
type Here struct {
	Parts map[string]Part                // those that were found, by name
	Quick bool                           // searches that start something were left out
	GPU   func(backends []string) string // a GPU that one of the backends is for; empty: there is none
}

// Version runs a program that tells its version.
func Version(ctx context.Context, kind fault.Kind, path string, args ...string) Part {
	words, err := child.Says(ctx, path, args...)
	if err != nil {
		return Part{Err: fault.Wrap(kind, err, "run `make setup`", "%s can't be run", path)}
	}
	if found, err := exec.LookPath(path); err == nil {
		path = found
	}
	return Part{Version: child.FirstLine(words), Path: path}
}
