package main

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// webgpu is the adapter that the browser hands out.
type webgpu struct {
	Name         string             `json:"name"`
	Class        record.DeviceClass `json:"class"`
	Vendor       string             `json:"vendor"`
	Architecture string             `json:"architecture"`
	Device       string             `json:"device"`
	Description  string             `json:"description"`
	Fallback     bool               `json:"fallback"`
	F16          bool               `json:"shader_f16"`
	Features     []string           `json:"features"`
	Limits       map[string]int64   `json:"limits"`
}

// newWebGPU reads a device's details, where limits are those that begin with max.
func newWebGPU(d record.Device) *webgpu {
	w := &webgpu{Name: d.Name, Class: d.Class, Vendor: d.Detail["vendor"], Architecture: d.Detail["architecture"],
		Device:      d.Detail["device"],
		Description: d.Detail["description"], Fallback: d.Detail["fallback"] == "true",
		Features: strings.Fields(d.Detail["features"]),
		Limits:   map[string]int64{}}
	w.F16 = slices.Contains(w.Features, "shader-f16")
	for name, value := range d.Detail {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && strings.HasPrefix(name, "max") {
			w.Limits[name] = n
		}
	}
	return w
}

// findAdapter starts the browser and asks which WebGPU adapter its page gets.
func findAdapter(ctx context.Context, e engine.Engine) part {
	var p deviceProbe
	session, err := e.Open(ctx, &p)
	if err == nil {
		err = session.Close()
	}
	if err != nil {
		return part{err: err}
	}
	w := newWebGPU(p.device)
	half := "no float16"
	if w.F16 {
		half = "with float16"
	}
	return part{Detail: w.Name + " (" + string(w.Class) + "), " + half, webgpu: w}
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }

// deviceProbe keeps the device that an engine reports, and nothing else.
type deviceProbe struct{ device record.Device }

func (*deviceProbe) Attach(sample.Source) func() { return func() {} }
func (*deviceProbe) Span(record.Span)            {}
func (*deviceProbe) Warn(record.Warning)         {}
func (*deviceProbe) Log(string) io.WriteCloser   { return discard{io.Discard} }

func (p *deviceProbe) Event(e record.Event) {
	if e.Device != nil {
		p.device = *e.Device
	}
}
