//go:build unix

package truth

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// held is the memory that the child has allocated.
type held struct{ maps [][]byte }

// take maps memory and touches every page of it, unless how ends in -untouched.
func (h *held) take(how string, bytes int) error {
	how, hold := strings.CutSuffix(how, untouched)
	file, protection, flags := -1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON
	switch how {
	case anonymous:
	case mapped:
		file, protection, flags = mappedFile, unix.PROT_READ, unix.MAP_SHARED
	case shared:
		file, flags = sharedFile, unix.MAP_SHARED
	default:
		return fmt.Errorf("unknown kind of memory %q", how)
	}
	m, err := unix.Mmap(file, 0, bytes, protection, flags)
	if err != nil {
		return fmt.Errorf("mapping %d bytes (%s): %w", bytes, how, err)
	}
	h.maps = append(h.maps, m)
	if hold {
		return nil
	}
	var read byte
	for at := 0; at < len(m); at += os.Getpagesize() {
		if how == mapped {
			read |= m[at]
		} else {
			m[at] = 7
		}
	}
	if how == mapped && read == 0 { // also keeps the compiler from removing the reads
		return errors.New("the mapped file is empty")
	}
	return nil
}

func (h *held) giveBack() error {
	var all error
	for _, m := range h.maps {
		all = errors.Join(all, unix.Munmap(m))
	}
	h.maps = nil
	return all
}
