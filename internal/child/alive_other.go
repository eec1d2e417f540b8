//go:build !unix

package child

// Alive errs on the safe side: where a process can't be probed, its folder is kept.
func Alive(int) bool { return true }
