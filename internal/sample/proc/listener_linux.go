package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// PIDOfListener gives the process that listens on a TCP port of this machine. Where several hold the socket, such as a server and its
// workers, it is the one that was started first.
func PIDOfListener(port int) (int, error) {
	sockets, err := listening(port)
	if err != nil {
		return 0, err
	}
	if len(sockets) == 0 {
		return 0, fmt.Errorf("nobody listens on port %d of this machine, as far as can be seen from here (a container has ports of its own)", port)
	}
	pids, err := All()
	if err != nil {
		return 0, fmt.Errorf("who listens on port %d: %w", port, err)
	}
	var first Process
	hidden := 0
	for _, pid := range pids {
		held, err := holds(pid, sockets)
		if errors.Is(err, fs.ErrPermission) {
			hidden++
		}
		if !held {
			continue
		}
		if p, err := Look(pid); err == nil && (first.PID == 0 || p.Start < first.Start || p.Start == first.Start && p.PID < first.PID) {
			first = p
		}
	}
	if first.PID == 0 {
		return 0, fmt.Errorf("who listens on port %d can't be seen: %d processes of other users may not be looked into, or it is in another container",
			port, hidden)
	}
	return first.PID, nil
}

// isListening is the state of a listening socket in the kernel's table.
const isListening = "0A"

// listening gives the sockets that listen on a port, as the links of their descriptors name them.
func listening(port int) (map[string]bool, error) {
	sockets := map[string]bool{}
	read := 0
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if errors.Is(err, fs.ErrNotExist) {
			continue // no IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("who listens on port %d: %w", port, err)
		}
		read++
		for s := bufio.NewScanner(f); s.Scan(); {
			if inode, ok := listener(s.Text(), port); ok {
				sockets["socket:["+inode+"]"] = true
			}
		}
		_ = f.Close() // it was only read
	}
	if read == 0 {
		return nil, fmt.Errorf("who listens on port %d can't be seen: /proc/net/tcp is not there", port)
	}
	return sockets, nil
}

// listener reads a row of the kernel's table: number, local address, remote address, state … inode.
func listener(row string, port int) (inode string, ok bool) {
	f := strings.Fields(row)
	if len(f) < 10 || f[3] != isListening {
		return "", false
	}
	_, hex, _ := strings.Cut(f[1], ":")
	n, err := strconv.ParseUint(hex, 16, 16)
	return f[9], err == nil && int(n) == port
}

// holds tells whether a process has one of the sockets open.
func holds(pid int, sockets map[string]bool) (bool, error) {
	dir := of(pid, "fd")
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, fd := range fds {
		if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && sockets[to] {
			return true, nil
		}
	}
	return false, nil
}
