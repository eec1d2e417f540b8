//go:build !unix

package run

import "time"

// selfCPU is not known here; the reads' own time is.
func selfCPU() time.Duration { return 0 }
