package llamacpp

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/machine"
	"llmparity/internal/record"
	"llmparity/native/logs"
)

// noGPU is the error if layers cannot be put on a GPU.
func noGPU(format string, args ...any) *engine.Failure {
	return &engine.Failure{Class: record.SetUp, Err: fault.New(fault.NoLlamaServer,
		"use a llama.cpp build with GPU support, or omit --llamacpp-gpu-layers", format, args...)}
}

// fits refuses a program that lacks an option, or a device for GPU layers: it would silently compute on the CPU.
func (c Config) fits(ctx context.Context, b identity, flags []flag) error {
	if _, err := b.fitted(flags); err != nil || c.GPULayers == 0 {
		return err
	}
	lines, err := b.program.Ask(ctx, b.path, "--list-devices", environment(""))
	if err == nil && !slices.ContainsFunc(lines, func(line string) bool { // a name, a colon and a description
		name, _, ok := strings.Cut(strings.TrimSpace(line), ": ")
		return ok && !strings.ContainsAny(name, " \t") && name != "BLAS" && name != "warning"
	}) {
		err = noGPU("%s: no GPU for %d layers (--list-devices shows none)", b.path, c.GPULayers)
	}
	return err
}

// offloaded reports the device that holds the GPU layers, if any were requested.
func (c Config) offloaded(p engine.Probe, said logs.Load) error {
	if c.GPULayers == 0 {
		return nil
	}
	d, err := c.device(said)
	if err != nil {
		return err
	}
	p.Event(record.Event{At: time.Now(), Device: &d})
	return nil
}

// device returns the device that holds the GPU layers, according to the log.
func (c Config) device(said logs.Load) (record.Device, error) {
	if said.NoGPU || said.Offloaded == 0 {
		return record.Device{}, noGPU("llama.cpp put none of the model's layers on a GPU")
	}
	d := record.Device{Class: record.GPU, Name: strings.Join(said.Devices, ", "),
		Detail: map[string]string{"threads": strconv.Itoa(c.threads()), "gpu_layers": said.Layers(c.GPULayers),
			"cpu": machine.CPU()}}
	if said.Offloaded < 0 { // must not be compared with any other
		d.Class, d.Name = "unknown", "unknown: llama.cpp's log does not say whether layers were put on a GPU"
	} else if d.Name == "" {
		d.Name = "unknown: llama.cpp's log names no device"
	}
	return d, nil
}
