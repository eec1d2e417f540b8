// Package proc reads the memory of processes.
//
// On Linux, statm (RSS and VMS) is read at every tick from an open descriptor and takes microseconds. smaps_rollup
// (PSS, USS, swap) and status (highest RSS) take milliseconds, and are read less often and at phase edges. On other
// systems gopsutil reads RSS and VMS only. None of them includes memory that a GPU driver allocates for the process.
package proc

import "time"

// Intervals of the cheap and the expensive sources.
const (
	FastEvery      = 100 * time.Millisecond
	ExpensiveEvery = 2 * time.Second
)

// Portable is the method on systems without /proc.
const Portable = "gopsutil"
