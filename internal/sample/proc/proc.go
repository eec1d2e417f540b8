// Package proc reads the memory of processes.
//
// On Linux statm (resident and virtual size) is read at the sampling rate from a descriptor that stays open, at a few
// microseconds a read; smaps_rollup (proportional and unique size, swap) and status (the highest resident size so far)
// cost milliseconds and are read more rarely and at phase edges. Elsewhere gopsutil gives resident and virtual size
// alone. None of them sees memory that a GPU's driver keeps for the process.
package proc

import "time"

// The rates of the cheap and of the expensive sources.
const (
	FastEvery      = 100 * time.Millisecond
	ExpensiveEvery = 2 * time.Second
)

// Portable is the name of the method where there is no /proc; those of Linux are the record's.
const Portable = "gopsutil"
