package container

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Open opens a file or folder by its path in the container, whose links lead to files in the container, too.
func (c *Container) Open(name string) (*os.File, error) {
	root, err := unix.Open(c.root(), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("files of container %s: %w", c.Name, err)
	}
	defer unix.Close(root)
	// Without blocking: it may be a pipe.
	file, err := unix.Openat2(root, name, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return nil, fmt.Errorf("%s in container %s: %w", name, c.Name, err)
	}
	return os.NewFile(uintptr(file), name), nil
}
