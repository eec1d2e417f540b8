package reports

import (
	"strings"

	"llmparity/compare"
	"llmparity/compare/hardware"
	"llmparity/internal/figure"
)

// gpuInfo is what was read of GPUs, whichever process held their memory.
type gpuInfo struct {
	Number   int         `json:"num_gpus"`
	Devices  []gpuMemory `json:"gpu_memory_per_device"`
	MultiGPU *float64    `json:"multi_gpu_overhead_gb,omitempty"`
}

// gpuMemory is one device's.
type gpuMemory struct {
	Device string   `json:"device"`
	Name   string   `json:"name,omitempty"`
	Peak   *float64 `json:"peak_gb,omitempty"`
	Mean   *float64 `json:"mean_gb,omitempty"`
	StdDev *float64 `json:"stddev_gb,omitempty"`
	Method string   `json:"method"`
}

// gpuDetails are statistics over the devices at the moment of their highest sum, and each device's peak.
type gpuDetails struct {
	Sum     *float64    `json:"sum_gb,omitempty"`
	Max     *float64    `json:"max_gb,omitempty"`
	Mean    *float64    `json:"mean_gb,omitempty"`
	StdDev  *float64    `json:"stddev_gb,omitempty"`
	Devices []gpuMemory `json:"devices"`
}

func newGPUInfo(c *compare.Cell) *gpuInfo {
	devices := gpuDevices(c)
	if len(devices) == 0 {
		return nil
	}
	whole := 0
	for _, d := range devices {
		if !strings.Contains(d.Device, ".") { // a part of a divided one counts with it
			whole++
		}
	}
	return &gpuInfo{Number: whole, Devices: devices, MultiGPU: gib(c.Parts.Component(figure.MultiGPUOverhead).Figure)}
}

func gpuDevices(c *compare.Cell) []gpuMemory {
	var out []gpuMemory
	for _, h := range c.Hardware {
		if h.Kind == hardware.OfGPU {
			out = append(
				out,
				gpuMemory{h.Role, h.Name, gib(h.Figure(hardware.GPUPeak)), gib(h.Figure(hardware.GPUMean)),
					gib(h.Figure(hardware.GPUDeviation)), h.Method},
			)
		}
	}
	return out
}

// newGPUDetails has the sum, maximum, mean and deviation over devices; for a single one they are its peak.
func newGPUDetails(c *compare.Cell) *gpuDetails {
	devices := gpuDevices(c)
	if len(devices) == 0 {
		return nil
	}
	d := &gpuDetails{Devices: devices}
	if len(devices) == 1 && devices[0].Peak != nil {
		d.Sum, d.Max, d.Mean, d.StdDev = devices[0].Peak, devices[0].Peak, devices[0].Peak, rounded(0)
	}
	for _, h := range c.Hardware {
		if f := h.Figure(hardware.GPUSum); h.Kind == hardware.OfGPUs && f.Known() {
			d.Sum, d.Max = gib(f), gib(h.Figure(hardware.GPUHighest))
			d.Mean, d.StdDev = gib(h.Figure(hardware.GPUMean)), gib(h.Figure(hardware.GPUDeviation))
		}
	}
	return d
}
