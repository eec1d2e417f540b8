//go:build !linux && !darwin

package machine

import "llmparity/internal/record"

// systemCaches are not available here.
func systemCaches() []record.Cache { return nil }
