package engine

import (
	"context"
	"errors"
	"os/exec"

	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Part is something that an engine needs, as it was found.
type Part struct {
	Name     string     `json:"name"`
	Version  string     `json:"version,omitempty"`
	Path     string     `json:"path,omitempty"`
	Detail   string     `json:"detail,omitempty"`
	Absent   bool       `json:"absent,omitempty"` // not here, and optional
	Missing  string     `json:"missing,omitempty"`
	Class    fault.Kind `json:"class,omitempty"` // of the error in Missing
	ExitCode int        `json:"exit_code,omitempty"`

	Tried []string `json:"tried,omitempty"` // how a GPU was looked for, and what answered

	Backends []string       `json:"-"` // GPUs that it was built for
	Device   *record.Device `json:"-"` // a WebGPU adapter
	Err      error          `json:"-"` // what is missing, and how to get it
}

// Search finds a part.
type Search struct {
	Name   string
	Starts bool // starts a slow program
	Find   func(context.Context) Part
}

// Finding is an engine and what it could run here.
type Finding struct {
	Name     string   `json:"name"` // as in plans
	Ready    bool     `json:"ready"`
	Version  string   `json:"version,omitempty"`
	Path     string   `json:"path,omitempty"`
	Device   string   `json:"device,omitempty"` // default device
	F16      *bool    `json:"f16,omitempty"`    // computes in float16 here; absent: unknown
	Backends []string `json:"gpu_backends,omitempty"`
	Can      string   `json:"can"`
}

// Comparison receives the differences from a recorded engine. An empty is means that the part is not here.
type Comparison struct {
	Differ  func(part, was, is string) // part is its name in EngineInfo.Parts; is: what is here, or empty
	Unknown func(format string, args ...any)
}

// Here is what a Finding is derived from.
type Here struct {
	Parts map[string]Part                // by name
	Quick bool                           // slow searches were skipped
	GPU   func(backends []string) string // a GPU that one of the backends supports; empty: none
}

// Version runs a program to get its version.
func Version(ctx context.Context, kind fault.Kind, path string, args ...string) Part {
	words, err := child.Says(ctx, path, args...)
	if _, slow := errors.AsType[child.NoAnswer](err); slow {
		return Part{Err: fault.Wrap(kind, err, "the machine may be busy: try again", "%s", path)}
	}
	if err != nil {
		return Part{Err: fault.Wrap(kind, err, "run `make setup`", "%s: cannot be run", path)}
	}
	if found, err := exec.LookPath(path); err == nil {
		path = found
	}
	return Part{Version: child.FirstLine(words), Path: path}
}
