//go:build !linux

package browser

// group needs /proc and finds nothing elsewhere: a browser's children are then only those that it names itself.
func group(int) []int { return nil }

func typeOf(int) string { return "browser-helper" }

func smallSharedMemory() bool { return false }
