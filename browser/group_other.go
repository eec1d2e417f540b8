//go:build !linux

package browser

func typeOf(int) string { return "browser-helper" }

func smallSharedMemory() bool { return false }
