//go:build !unix

package machine

import "time"

// SelfCPU is not known here; the reads' own time is.
func SelfCPU() time.Duration { return 0 }
