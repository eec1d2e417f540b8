package pagecache

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// evict removes a file from the page cache. Unwritten data can't be dropped, so it is written first.
func evict(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_ = f.Sync() // the caller checks what is left
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// resident counts the pages of a file and those in memory, without reading any.
func resident(path string) (in, all int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	if info.Size() == 0 {
		return 0, 0, nil
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = unix.Munmap(mapped) }()
	size := os.Getpagesize()
	pages := make([]byte, (len(mapped)+size-1)/size)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(len(mapped)),
		uintptr(unsafe.Pointer(&pages[0])))
	if errno != 0 {
		return 0, 0, errno
	}
	for _, p := range pages {
		in += int(p & 1)
	}
	return in, len(pages), nil
}
