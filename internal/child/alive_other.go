//go:build !unix

package child

// Alive is always true: if processes cannot be checked, their folders are kept.
func Alive(int) bool { return true }
