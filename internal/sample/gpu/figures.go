package gpu

import (
	"fmt"
	"math"
	"strings"

	"llmparity/internal/record"
)

// figures is what is known of a device at a moment. NaN: not known. Energy is the driver's own counter, since whenever.
type figures struct {
	used, free, total, reserved float64 // bytes
	systemUsed, systemTotal     float64 // bytes of the machine's memory that the GPU may use
	busy, memoryBusy            float64 // percent
	watts, celsius, joules      float64
}

func unknownFigures() figures {
	n := math.NaN()
	return figures{n, n, n, n, n, n, n, n, n, n, n}
}

// values names what is known.
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
		// nobody is busy for longer than there is time
		if math.IsNaN(v.Value) || strings.HasSuffix(v.Name, "_percent") && v.Value > 100 {
			continue
		}
		out = append(out, v)
	}
	return out
}

// sane is an error where memory can't be as it is told: a counter that fell below zero reads as a huge number.
func (f figures) sane() error {
	if !math.IsNaN(f.used) && !math.IsNaN(f.total) && f.used > f.total {
		return fmt.Errorf("it tells %.0f bytes of memory used, of %.0f that it has: its counter has turned negative or wrapped", f.used, f.total)
	}
	if f.free > f.total || f.free < 0 { // false where one is not known
		return fmt.Errorf("it tells %.0f bytes of memory free, of %.0f that it has: its counter has turned negative or wrapped", f.free, f.total)
	}
	return nil
}

// counter makes a counter of energy begin at nought with the first reading.
type counter struct {
	began       bool
	first, last float64
}

// since gives what was added since the first reading; NaN stays it.
func (c *counter) since(now float64) (float64, error) {
	switch {
	case math.IsNaN(now):
		return now, nil
	case !c.began:
		c.began, c.first, c.last = true, now, now
	case now < c.last:
		return 0, fmt.Errorf("its energy counter went back from %.3f to %.3f J: the driver has started anew, or the counter wrapped", c.last, now)
	}
	c.last = now
	return now - c.first, nil
}
