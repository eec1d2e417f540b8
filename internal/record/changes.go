package record

import (
	"fmt"
	"strings"
)

// changes warns of what the machine itself did between launches: figures of before and after were not made on the same
// one.
func (r *Run) changes() []Warning {
	var out []Warning
	if text := r.differed(func(m *MachineState) string { return m.Governor }); text != "" {
		out = append(out, Warning{Code: "governor-changed",
			Text: "the processors' frequency governor was not the same before all launches: " + text})
	}
	frequency := func(m *MachineState) string {
		if m.MaxMHz == 0 {
			return ""
		}
		return fmt.Sprintf("%.0f MHz", m.MaxMHz)
	}
	if text := r.differed(frequency); text != "" {
		out = append(out, Warning{Code: "frequency-limit-changed",
			Text: "the processors were not allowed the same frequency before all launches: " +
				text})
	}
	return append(out, r.throttled()...)
}

// differed says which value stood before which attempts; empty where there was but one. Only where it changes it is
// said again.
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
			parts = append(parts, fmt.Sprintf("%s from attempt %d on", last, a.ID))
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

// throttled tells between which attempts processors were slowed because of heat. What happens behind the last one's
// begin nobody reads. The count begins anew with the machine.
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
					first = fmt.Sprintf("first between the begins of attempts %d and %d", before.ID, a.ID)
				}
				stretches++
			}
		}
		before = a
	}
	if times == 0 {
		return nil
	}
	return []Warning{{Code: "throttled",
		Text: fmt.Sprintf("processors were slowed because they were too hot, between %d launches of the run and the "+
			"next (%s; %d times by the kernel's counts): times and rates there are the heat's too", stretches, first,
			times)}}
}
