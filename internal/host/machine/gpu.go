package machine

import (
	"path/filepath"
	"slices"
	"sync"
)

// HasGPU looks once for the device files of GPU drivers on Linux: it is asked for every cell of a plan.
var HasGPU = sync.OnceValue(func() bool {
	patterns := []string{"/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/kfd", "/dev/dxg"}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		found, _ := filepath.Glob(pattern) // the pattern is valid
		return len(found) > 0
	})
})
