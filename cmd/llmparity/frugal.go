package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// frugalAbove is the heap size above which garbage is collected more often.
const frugalAbove = 48 << 20

// frugal reduces peak memory after a long run was read. By default, Go lets garbage grow to the size of live data.
// Collections are cheap here because rows hold few pointers. GOGC takes precedence. restore undoes it.
func frugal() (restore func()) {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc < frugalAbove || os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(10)
	return func() { debug.SetGCPercent(was) }
}
