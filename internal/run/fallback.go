package run

import (
	"cmp"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// asked judges whether the engine runs on the device that the plan asks for. It is asked after each phase, because some
// engines know their device only once they have generated.
func (a *attempt) asked() error {
	d, fresh := a.live.relay.device()
	if !fresh || d.Asked == "" {
		return nil
	}
	const code = "fallback"
	if got := string(d.Class) + " " + d.Name; d.Missed() && !a.setup.Plan.AllowFallback {
		return &engine.Failure{Class: record.Fallback, Err: fault.New(fault.Fallback,
			"ask for what is here (llmparity doctor shows it), or give --allow-fallback to measure it nevertheless",
			"the plan asks for %s, but the engine runs on %s", d.Asked, got)}
	} else if d.Missed() {
		a.live.relay.Warn(record.Warnf(code, "the plan asks for %s, but the engine runs on %s", d.Asked, got))
	} else if d.Class != record.GPU && d.Class != record.CPU && d.Class != record.SoftwareAdapter {
		a.live.relay.Warn(record.Warnf(code, "the plan asks for %s; whether the engine runs on it is unknown: %s",
			d.Asked, cmp.Or(d.Name, got)))
	}
	return nil
}
