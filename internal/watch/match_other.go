//go:build !unix

package watch

// There are neither sessions nor groups of processes here.

func sameSession(int) bool { return false }
func readsFromUs(int) bool { return false }
