package gpu

import (
	"fmt"
	"slices"

	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// figures is the state of a device. What is unknown is absent. Energy is the driver's counter, with any start.
type figures map[string]float64

// Names of figures in records. A GPU may also use memory of the system.
const (
	memoryUsed     = "memory_used_bytes"
	memoryFree     = "memory_free_bytes"
	memoryTotal    = "memory_total_bytes"
	memoryReserved = "memory_reserved_bytes"
	systemUsed     = "system_memory_used_bytes"
	systemTotal    = "system_memory_total_bytes"
	busy           = "utilization_gpu_percent"
	memoryBusy     = "utilization_memory_percent"
	watts          = "power_watts"
	celsius        = "temperature_celsius"
	joules         = "energy_joules"
)

// values returns the figures sorted by name. A load of more than 100% is an error, and left out.
func (f figures) values() []record.Value {
	return slices.DeleteFunc(sample.Values(f), func(v record.Value) bool {
		return (v.Name == busy || v.Name == memoryBusy) && v.Value > 100
	})
}

// sane calculates free memory that is not reported. It returns an error for impossible amounts of memory: a counter
// below zero reads as a huge number.
func (f figures) sane() error {
	total, known := f[memoryTotal]
	used, reported := f[memoryUsed]
	if !known {
		return nil
	}
	if reported && used > total {
		return fmt.Errorf("counter overflow: %.0f bytes used of %.0f", used, total)
	}
	if _, has := f[memoryFree]; !has && reported {
		f[memoryFree] = total - used
	}
	if free := f[memoryFree]; free > total || free < 0 {
		return fmt.Errorf("counter overflow: %.0f bytes free of %.0f", free, total)
	}
	return nil
}

// counter makes an energy counter start at 0 with the first reading.
type counter struct {
	began       bool
	first, last float64
}

// since returns the increase since the first reading.
func (c *counter) since(now float64) (float64, error) {
	switch {
	case !c.began:
		c.began, c.first, c.last = true, now, now
	case now < c.last:
		return 0, fmt.Errorf("energy counter went back from %.3f to %.3f J (restart or overflow)", c.last, now)
	}
	c.last = now
	return now - c.first, nil
}
