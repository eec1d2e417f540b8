//go:build !unix

package child

// alive errs on the safe side: where a process can't be probed, its folder is kept.
func alive(int) bool { return true }
