//go:build !linux && !darwin

package machine

import "llmparity/internal/record"

// systemCaches are not told by a call that every such system has.
func systemCaches() []record.Cache { return nil }
