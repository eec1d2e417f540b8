package record

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Ran is something that a launch asked for, with what it got and how that is known.
type Ran struct {
	What     string `json:"what"`             // device, backend, threads …
	Asked    string `json:"asked,omitempty"`  // absent: nothing in particular
	Got      string `json:"got,omitempty"`    // absent: unknown
	Evidence string `json:"evidence"`         // how that is known, or why it is not
	Missed   bool   `json:"missed,omitempty"` // something else ran than was asked for, or less of it
}

// What launches ask for. Engines may name more.
const (
	RanDevice  = "device"
	RanBackend = "backend" // in a browser: webgpu or wasm
	RanThreads = "threads"
	RanDType   = "dtype" // of activations
	RanKV      = "KV cache dtype"
	RanPower   = "power preference"
	RanStorage = "storage" // in a browser
)

// RanAs compares two names. Either may be empty.
func RanAs(what, asked, got, evidence string) Ran {
	return Ran{what, asked, got, evidence, asked != "" && got != "" && got != asked}
}

// RanWith compares two numbers, of which more than asked for is enough. 0 asks for nothing, or is unknown.
func RanWith(what string, asked, got int, evidence string) Ran {
	number := func(n int) string {
		if n <= 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	return Ran{what, number(asked), number(got), evidence, got > 0 && got < asked}
}

// Text is the row for people, without the name of what was asked for.
func (r Ran) Text() string {
	got := r.Got
	switch {
	case got == "":
		got = "unknown"
	case r.Missed:
		got = "got " + got
	}
	if r.Asked != "" && r.Asked != r.Got {
		got = "asked for " + r.Asked + "; " + got
	}
	return fmt.Sprintf("%s (%s)", got, r.Evidence)
}

// Ran returns what the attempt asked for and got: the device first, then what the engine reported, of each the last.
func (a *Attempt) Ran() []Ran {
	var out []Ran
	if d, ok := a.Device(); ok {
		out = append(out, d.Ran())
	}
	for _, e := range a.Events {
		for _, r := range e.Ran {
			if at := slices.IndexFunc(out, func(o Ran) bool { return o.What == r.What }); at >= 0 {
				out[at] = r
			} else {
				out = append(out, r)
			}
		}
	}
	return out
}

// Ran compares the device with the one that was asked for.
func (d Device) Ran() Ran {
	r := Ran{What: RanDevice, Asked: d.Asked, Got: strings.TrimSpace(string(d.Class) + " " + d.Name),
		Evidence: "reported by the engine", Missed: d.Missed()}
	switch {
	case d.Origin != "":
		r.Evidence = d.Origin
	case d.Detail[DetailBackend] != "":
		r.Evidence = strings.TrimSuffix(fmt.Sprintf("the adapter's backend %s, type %s, driver %s",
			d.Detail[DetailBackend], d.Detail[DetailType], d.Detail[DetailDriver]), ", driver ")
	}
	if !slices.Contains(DeviceClasses, d.Class) {
		r.Got = ""
	}
	return r
}

// Details of a WebGPU adapter, where the browser tells them.
const (
	DetailBackend = "backend" // vulkan, metal, opengles …
	DetailType    = "type"    // CPU, discrete GPU …
	DetailDriver  = "driver"
	DetailWay     = "way"   // what the browser was started with so that it reaches a GPU
	detailTried   = "tried" // with a number: one of the ways that were tried, and what answered
)

// Tried are the ways in which a GPU was looked for, and what answered.
func (d Device) Tried() []string {
	var out []string
	for n := 1; d.Detail[triedKey(n)] != ""; n++ {
		out = append(out, d.Detail[triedKey(n)])
	}
	return out
}

// SetTried keeps the ways in which a GPU was looked for.
func (d *Device) SetTried(all []string) {
	for i, text := range all {
		d.Detail[triedKey(i+1)] = text
	}
}

func triedKey(n int) string { return fmt.Sprintf("%s_%d", detailTried, n) }
