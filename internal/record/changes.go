package record

import (
	"fmt"
	"strings"
)

// changes warns if the state of the machine changed between launches.
func (r *Run) changes() []Warning {
	var out []Warning
	if text := r.differed(func(m *MachineState) string { return m.Governor }); text != "" {
		out = append(out, Warnf("governor-changed", "CPU frequency governor changed during the run: %s", text))
	}
	frequency := func(m *MachineState) string {
		if m.MaxMHz == 0 {
			return ""
		}
		return fmt.Sprintf("%.0f MHz", m.MaxMHz)
	}
	if text := r.differed(frequency); text != "" {
		out = append(out, Warnf("frequency-limit-changed", "CPU frequency limit changed during the run: %s", text))
	}
	return append(out, r.throttled()...)
}

// differed lists the values that a setting had, each with the first attempt that had it; empty if it never changed.
func (r *Run) differed(of func(*MachineState) string) string {
	const most = 6
	var parts []string
	last, changes := "", 0
	for _, a := range r.Attempts {
		if a.Machine == nil || of(a.Machine) == "" || of(a.Machine) == last {
			continue
		}
		last = of(a.Machine)
		if changes++; changes <= most {
			parts = append(parts, fmt.Sprintf("%s from attempt %d", last, a.ID))
		}
	}
	if changes < 2 {
		return ""
	}
	if changes > most {
		parts = append(parts, fmt.Sprintf("and %d more changes", changes-most))
	}
	return strings.Join(parts, ", ")
}

// throttled warns of thermal throttling between the starts of attempts. A reboot resets the counter.
func (r *Run) throttled() []Warning {
	var before *Attempt
	times, stretches, first := int64(0), 0, ""
	for _, a := range r.Attempts {
		if a.Machine == nil || a.Machine.Throttled == nil {
			continue
		}
		if before != nil {
			if n := *a.Machine.Throttled - *before.Machine.Throttled; n > 0 {
				if times += n; stretches == 0 {
					first = fmt.Sprintf("first between attempts %d and %d", before.ID, a.ID)
				}
				stretches++
			}
		}
		before = a
	}
	if times == 0 {
		return nil
	}
	return []Warning{{Code: "throttled", Text: fmt.Sprintf("CPUs throttled because of heat (events: %d; intervals "+
		"between launches with events: %d, %s); speeds may be too low", times, stretches, first)}}
}
