// Package ran says what a launch asked for, what it got, and how that is known. It knows no engine.
package ran

import (
	"fmt"
	"strconv"
)

// Row is something that a launch asked for, with what it got and how that is known.
type Row struct {
	What     string `json:"what"`             // device, backend, threads …
	Asked    string `json:"asked,omitempty"`  // absent: nothing in particular
	Got      string `json:"got,omitempty"`    // absent: unknown
	Evidence string `json:"evidence"`         // how that is known, or why it is not
	Missed   bool   `json:"missed,omitempty"` // something else ran than was asked for, or less of it
}

// What launches ask for. Engines may name more.
const (
	Device  = "device"
	Backend = "backend" // in a browser: webgpu or wasm
	Threads = "threads"
	DType   = "dtype" // of activations
	KV      = "KV cache dtype"
	Power   = "power preference"
	Storage = "storage" // in a browser
)

// As compares two names. Either may be empty.
func As(what, asked, got, evidence string) Row {
	return Row{what, asked, got, evidence, asked != "" && got != "" && got != asked}
}

// With compares two numbers, of which more than asked for is enough. 0 asks for nothing, or is unknown.
func With(what string, asked, got int, evidence string) Row {
	number := func(n int) string {
		if n <= 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	return Row{what, number(asked), number(got), evidence, got > 0 && got < asked}
}

// Text is the row for people, without the name of what was asked for.
func (r Row) Text() string {
	got := r.Got
	switch {
	case got == "":
		got = "unknown"
	case r.Missed:
		got = "got " + got
	}
	switch r.Asked {
	case "":
	case r.Got:
		got += ", as asked for"
	default:
		got = "asked for " + r.Asked + "; " + got
	}
	return fmt.Sprintf("%s (%s)", got, r.Evidence)
}
