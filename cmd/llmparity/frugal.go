package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// Where runs take more than this, garbage is collected earlier than Go does by itself.
const frugalAbove = 48 << 20

// frugal has the rows of long runs, which stay in memory until the end, not doubled by garbage: Go by itself lets so
// much gather as is in use. A collection is cheap here, because rows hold next to no pointers. Whoever sets GOGC has
// their way. The function that it gives puts everything back.
func frugal() (restore func()) {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc < frugalAbove || os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(10)
	return func() { debug.SetGCPercent(was) }
}
