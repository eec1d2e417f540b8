//go:build !linux

package child

// Group needs /proc and finds nothing elsewhere: a browser's children are then only those that it names itself.
func Group(int) []int { return nil }

// Descendants finds nothing elsewhere.
func Descendants(int) []int { return nil }

// GroupNaming finds nothing elsewhere.
func GroupNaming(string) int { return 0 }

// Describe tells nothing elsewhere.
func Describe([]int) string { return "" }
