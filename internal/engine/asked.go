package engine

import (
	"slices"

	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Asked judges whether an engine runs on the device that the plan asks for. If it does not, that is an error, or a
// warning if the plan allows it. Both are nil if nothing was asked for.
func Asked(d record.Device, allowed bool) (*record.Warning, error) {
	got := string(d.Class) + " " + d.Name
	switch known := slices.Contains(record.DeviceClasses, d.Class); {
	case d.Missed() && !allowed:
		return nil, &Failure{Class: record.Fallback, Err: fault.New(fault.Fallback,
			"ask for what is here (llmparity doctor shows it), or give --allow-fallback to measure it nevertheless",
			"the plan asks for %s, but the engine runs on %s", d.Asked, got)}
	case d.Missed():
		return new(record.Warnf(fallback, "the plan asks for %s, but the engine runs on %s", d.Asked, got)), nil
	case d.Asked != "" && !known:
		return new(record.Warnf(fallback, "the plan asks for %s; whether the engine runs on it is unknown: %s", d.Asked,
			d.Name)), nil
	}
	return nil, nil
}

const fallback = "fallback" // code of the warning
