package llamacpp

import (
	"context"
	"strconv"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/native/machine"
)

// cpu is the device of whoever has nothing on a GPU.
func (c Config) cpu() *record.Device {
	return &record.Device{Class: record.CPU, Name: machine.CPU(), Detail: map[string]string{"threads": strconv.Itoa(c.threads()), "gpu_layers": "0"}}
}

// noGPU is for layers that were to lie on a GPU and don't.
func noGPU(format string, args ...any) *engine.Failure {
	return &engine.Failure{Class: record.SetUp, Err: fault.New(fault.NoLlamaServer,
		"give one that was built for the GPU, or leave out --llamacpp-gpu-layers", format, args...)}
}

// gpu refuses layers on a GPU where a program of llama.cpp's has no device for them: it would silently compute on the CPU.
func (c Config) gpu(ctx context.Context, p program, path string) error {
	if c.GPULayers == 0 {
		return nil
	}
	lines, err := p.ask(ctx, path, "--list-devices")
	if err != nil {
		return err
	}
	// A heading, then a line a device, indented: its name, a colon, what it is.
	for _, line := range lines {
		if name, _, ok := strings.Cut(line, ": "); ok && !strings.ContainsAny(name, " \t") && name != "BLAS" && name != "warning" {
			return nil
		}
	}
	return noGPU("%s has no GPU to put %d layers on: --list-devices shows none", path, c.GPULayers)
}

// device is where the layers are that were to lie on a GPU, by the log.
func (c Config) device(said load) (record.Device, error) {
	if said.offloaded == 0 {
		return record.Device{}, noGPU("llama.cpp put none of the model's %d layers on a GPU", said.all)
	}
	d := record.Device{Class: record.GPU, Name: strings.Join(said.devices, ", "),
		Detail: map[string]string{"threads": strconv.Itoa(c.threads()), "gpu_layers": said.layers(c.GPULayers), "cpu": machine.CPU()}}
	if d.Name == "" {
		d.Name = "unknown: llama.cpp's log names no device"
	}
	return d, nil
}
