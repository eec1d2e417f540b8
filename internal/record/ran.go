package record

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/record/ran"
)

// Ran returns what the attempt asked for and got: the device first, then what the engine reported, of each the last.
func (a *Attempt) Ran() []ran.Row {
	var out []ran.Row
	if d, ok := a.Device(); ok {
		out = append(out, d.Ran())
	}
	for _, e := range a.Events {
		for _, r := range e.Ran {
			if at := slices.IndexFunc(out, func(o ran.Row) bool { return o.What == r.What }); at >= 0 {
				out[at] = r
			} else {
				out = append(out, r)
			}
		}
	}
	return out
}

// Ran compares the device with the one that was asked for.
func (d Device) Ran() ran.Row {
	r := ran.Row{What: ran.Device, Asked: d.Asked, Got: strings.TrimSpace(string(d.Class) + " " + d.Name),
		Evidence: "reported by the engine", Missed: d.Missed()}
	switch {
	case d.Origin != "":
		r.Evidence = d.Origin
	case d.Detail[DetailType] != "":
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
