package gpu

import (
	"fmt"
	"math"
	"strings"

	"llmparity/internal/record"
)

// figures is the state of a device; NaN: unknown. Energy is the driver's counter, with any start.
type figures struct {
	used, free, total, reserved float64 // bytes
	systemUsed, systemTotal     float64 // bytes of system memory that the GPU may use
	busy, memoryBusy            float64 // percent
	watts, celsius, joules      float64
}

func unknownFigures() figures {
	n := math.NaN()
	return figures{n, n, n, n, n, n, n, n, n, n, n}
}

// values returns the known figures by name.
func (f figures) values() []record.Value {
	out := make([]record.Value, 0, 11)
	for _, v := range [...]record.Value{
		{Name: "memory_used_bytes", Value: f.used}, {Name: "memory_free_bytes", Value: f.free},
		{Name: "memory_total_bytes", Value: f.total}, {Name: "memory_reserved_bytes", Value: f.reserved},
		{Name: "system_memory_used_bytes", Value: f.systemUsed},
		{Name: "system_memory_total_bytes", Value: f.systemTotal},
		{Name: "utilization_gpu_percent", Value: f.busy}, {Name: "utilization_memory_percent", Value: f.memoryBusy},
		{Name: "power_watts", Value: f.watts}, {Name: "temperature_celsius", Value: f.celsius},
		{Name: "energy_joules", Value: f.joules},
	} {
		// more than 100% is an error
		if math.IsNaN(v.Value) || strings.HasSuffix(v.Name, "_percent") && v.Value > 100 {
			continue
		}
		out = append(out, v)
	}
	return out
}

// sane returns an error for impossible amounts of memory: a counter below zero reads as a huge number.
func (f figures) sane() error {
	if !math.IsNaN(f.used) && !math.IsNaN(f.total) && f.used > f.total {
		return fmt.Errorf("counter overflow: %.0f bytes used of %.0f", f.used, f.total)
	}
	if f.free > f.total || f.free < 0 { // false for unknown ones
		return fmt.Errorf("counter overflow: %.0f bytes free of %.0f", f.free, f.total)
	}
	return nil
}

// counter makes an energy counter start at 0 with the first reading.
type counter struct {
	began       bool
	first, last float64
}

// since returns the increase since the first reading; NaN for NaN.
func (c *counter) since(now float64) (float64, error) {
	switch {
	case math.IsNaN(now):
		return now, nil
	case !c.began:
		c.began, c.first, c.last = true, now, now
	case now < c.last:
		return 0, fmt.Errorf("energy counter went back from %.3f to %.3f J (restart or overflow)", c.last, now)
	}
	c.last = now
	return now - c.first, nil
}
