package container

import (
	"fmt"
	"syscall"
)

// pidNamespace identifies the namespace of a process's ids.
func pidNamespace(pid int) (uint64, error) {
	var s syscall.Stat_t
	if err := syscall.Stat(fmt.Sprintf("/proc/%d/ns/pid", pid), &s); err != nil {
		return 0, err
	}
	return s.Ino, nil
}
