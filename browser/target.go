package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"llmparity/assets/page"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// Target says what packages are made for here. Where that hangs on the adapter and the adapter is not certain, the
// browser is started for a moment to ask, once.
func (w *WebLLM) Target(ctx context.Context, say func(string)) (Target, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.target(ctx, say)
}

func (w *WebLLM) target(ctx context.Context, say func(string)) (Target, error) {
	t := Target{Kernels: cmp.Or(w.config.Kernels, AutoKernels), DType: cmp.Or(w.config.DType, F32)}
	auto := t.Kernels == AutoKernels
	if auto && w.config.Launch.Attach == "" && w.config.Adapter.Software() {
		t.Kernels, auto = SoftwareKernels, false
	}
	if !auto && t.DType != F16 {
		return t, nil
	}
	device, err := w.deviceHere(ctx, say)
	if err != nil {
		return Target{}, err
	}
	if auto {
		t.Kernels = kernelsFor(device)
	}
	if t.DType == F16 {
		return t, needF16(device)
	}
	return t, nil
}

// Device is the adapter that the browser hands out; it is started for a moment to ask, unless that is known already.
func (w *WebLLM) Device(ctx context.Context, say func(string)) (record.Device, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deviceHere(ctx, say)
}

func kernelsFor(d record.Device) string {
	if d.Class == record.SoftwareAdapter {
		return SoftwareKernels
	}
	return GPUKernels
}

// shaderF16 is the WebGPU feature without which shaders have no float16.
const shaderF16 = "shader-f16"

func needF16(d record.Device) error {
	if slices.Contains(Features(d), shaderF16) {
		return nil
	}
	return fault.New(fault.NoF16, "use --dtype f32", "the WebGPU adapter %s has no %s, which a model in float16 needs",
		d.Name, shaderF16)
}

// Features are the WebGPU features of an adapter.
func Features(d record.Device) []string { return strings.Fields(d.Detail["features"]) }

// deviceHere is the adapter that the browser hands out, from a session that was open before or from one that is opened
// to ask.
func (w *WebLLM) deviceHere(ctx context.Context, say func(string)) (_ record.Device, err error) {
	if w.device != nil {
		return *w.device, nil
	}
	if err := w.Fetch(ctx, say); err != nil {
		return record.Device{}, err
	}
	say("asking the browser for its WebGPU adapter")
	chrome, err := w.config.find()
	if err != nil {
		return record.Device{}, err
	}
	code, err := w.config.Bundle.read() // the page wants one
	if err != nil {
		return record.Device{}, err
	}
	server, err := serve(page.Files(), code)
	if err != nil {
		return record.Device{}, err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	p, err := openTab(ctx, chrome, w.config, server, silent{})
	if err != nil {
		return record.Device{}, err
	}
	defer func() { err = errors.Join(err, p.chrome.close()) }()
	d, err := p.device(ctx, w.config.Adapter)
	if err != nil {
		return record.Device{}, err
	}
	w.device = &d
	return d, nil
}

// met remembers an adapter that a session has.
func (w *WebLLM) met(d record.Device) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.device = &d
}

// otherAdapter is a warning where a library was compiled for another kind of adapter than the one that it runs on.
func (l Library) otherAdapter(d record.Device) []record.Warning {
	if fit := kernelsFor(d); l.Kernels != "" && l.Kernels != fit {
		return []record.Warning{{Code: "library-for-another-adapter",
			Text: fmt.Sprintf("the model library has %s kernels, and the adapter is "+
				"%s (%s): times and rates are not those of a library made for it", l.Kernels, d.Name, d.Class)}}
	}
	return nil
}
