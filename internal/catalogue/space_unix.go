//go:build linux || darwin

package catalogue

import "syscall"

// free is how many bytes we may still write where dir is; not ok where that can't be told.
func free(dir string) (n int64, ok bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
