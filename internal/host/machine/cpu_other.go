//go:build !unix

package machine

import "time"

// SelfCPU is unknown here.
func SelfCPU() time.Duration { return 0 }
