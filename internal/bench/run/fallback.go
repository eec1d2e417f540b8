package run

import "llmparity/internal/engine"

// asked judges the device that the engine reports. It is called after each phase, because some engines know their
// device only once they have loaded or generated.
func (a *attempt) asked() error {
	d, fresh := a.live.relay.device()
	if !fresh {
		return nil
	}
	w, err := engine.Asked(d, a.setup.Plan.AllowFallback)
	if w != nil {
		a.live.relay.Warn(*w)
	}
	return err
}
