package doctor

import (
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/record"
)

// WebGPU is the browser's adapter.
type WebGPU struct {
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

// newWebGPU reads a device's details; limits begin with max.
func newWebGPU(d record.Device) *WebGPU {
	w := &WebGPU{Name: d.Name, Class: d.Class, Vendor: d.Detail["vendor"], Architecture: d.Detail["architecture"],
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
