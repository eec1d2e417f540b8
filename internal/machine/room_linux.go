package machine

import "context"

// Room returns the available memory and where that figure comes from; ok is false if it is unknown.
func Room(context.Context) (free int64, how string, ok bool) { return here().room() }
