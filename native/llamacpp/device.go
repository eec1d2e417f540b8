package llamacpp

import (
	"context"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/machine"
	"llmparity/internal/record"
	"llmparity/native/logs"
	"llmparity/native/program"
)

// onCPU tells the device of whoever has nothing on a GPU. Where layers are to lie on one it is known once they do.
func (c Config) onCPU(p engine.Probe) {
	if c.GPULayers > 0 {
		return
	}
	p.Event(record.Event{At: time.Now(), Device: &record.Device{Class: record.CPU, Name: machine.CPU(),
		Detail: map[string]string{"threads": strconv.Itoa(c.threads()), "gpu_layers": "0"}}})
}

// unknownClass is of a device of which the log does not tell what it is: it may not be held against any other.
const unknownClass record.DeviceClass = "unknown"

// noGPU is for layers that were to lie on a GPU and don't.
func noGPU(format string, args ...any) *engine.Failure {
	return &engine.Failure{Class: record.SetUp, Err: fault.New(fault.NoLlamaServer,
		"give one that was built for the GPU, or leave out --llamacpp-gpu-layers", format, args...)}
}

// gpu refuses layers on a GPU where a program of llama.cpp's has no device for them: it would silently compute on the
// CPU.
func (c Config) gpu(ctx context.Context, p program.Program, path string) error {
	if c.GPULayers == 0 {
		return nil
	}
	lines, err := p.Ask(ctx, path, "--list-devices", environment(""))
	if err != nil {
		return err
	}
	// A heading, then a line a device, indented: its name, a colon, what it is.
	for _, line := range lines {
		if name, _, ok := strings.Cut(line, ": "); ok && !strings.ContainsAny(name, " \t") && name != "BLAS" &&
			name != "warning" {
			return nil
		}
	}
	return noGPU("%s has no GPU to put %d layers on: --list-devices shows none", path, c.GPULayers)
}

// device is where the layers are that were to lie on a GPU, by the log.
func (c Config) device(said logs.Load) (record.Device, error) {
	if said.NoGPU || said.Offloaded == 0 {
		return record.Device{}, noGPU("llama.cpp put none of the model's layers on a GPU")
	}
	d := record.Device{Class: record.GPU, Name: strings.Join(said.Devices, ", "),
		Detail: map[string]string{"threads": strconv.Itoa(c.threads()), "gpu_layers": said.Layers(c.GPULayers),
			"cpu": machine.CPU()}}
	if said.Offloaded < 0 {
		d.Class, d.Name = unknownClass, "unknown: llama.cpp's log does not tell whether layers were put on a GPU"
	} else if d.Name == "" {
		d.Name = "unknown: llama.cpp's log names no device"
	}
	return d, nil
}
