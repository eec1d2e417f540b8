package machine

import "context"

// Room is how much memory can be had now, and how that was found out; ok is false where nothing is told.
func Room(context.Context) (free int64, how string, ok bool) { return here().room() }
