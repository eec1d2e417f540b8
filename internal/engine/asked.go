package engine

import (
	"cmp"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// Asked judges whether an engine runs on the device that the plan asks for. If it does not, that is an error, or a
// warning if the plan allows it. Both are nil if nothing was asked for.
func Asked(d record.Device, allowed bool) (*record.Warning, error) {
	got := string(d.Class) + " " + d.Name
	if tried := d.Tried(); len(tried) > 0 {
		got += " (tried " + strings.Join(tried, "; ") + ")"
	}
	switch known := slices.Contains(record.DeviceClasses, d.Class); {
	case d.Missed() && !allowed:
		return nil, failed("ask for what is here (llmparity doctor shows it), or",
			"the plan asks for %s, but the engine runs on %s", d.Asked, got)
	case d.Missed():
		return new(record.Warnf(fallback, "the plan asks for %s, but the engine runs on %s", d.Asked, got)), nil
	case d.Asked != "" && !known:
		return new(record.Warnf(fallback, "the plan asks for %s; whether the engine runs on it is unknown: %s", d.Asked,
			d.Name)), nil
	}
	return nil, nil
}

// AskedAlso judges what else the plan asks for. The first that was missed is the error, unless the plan allows it.
func AskedAlso(rows []ran.Row, allowed bool) (warnings []record.Warning, err error) {
	for _, r := range rows {
		switch got := cmp.Or(r.Got, "unknown"); {
		case r.Missed && !allowed:
			return warnings, failed("ask for what the engine can do here, or",
				"the plan asks for %s %s, but the engine ran with %s (%s)", r.What, r.Asked, got, r.Evidence)
		case r.Missed:
			warnings = append(warnings, record.Warnf(fallback, "the plan asks for %s %s, but the engine ran with %s (%s)",
				r.What, r.Asked, got, r.Evidence))
		case r.Asked != "" && r.Got == "":
			warnings = append(warnings, record.Warnf(fallback,
				"the plan asks for %s %s; whether the engine ran with it is unknown: %s", r.What, r.Asked, r.Evidence))
		}
	}
	return warnings, nil
}

func failed(do, format string, a ...any) error {
	return &Failure{Class: record.Fallback, Err: fault.New(fault.Fallback,
		do+" give --allow-fallback to measure it nevertheless", format, a...)}
}

const fallback = "fallback" // code of the warnings
