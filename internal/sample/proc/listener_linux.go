package proc

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// States of a socket in the kernel's table.
const (
	established = "01"
	isListening = "0A"
)

// socket is a row of the kernel's table.
type socket struct {
	local, remote netip.AddrPort
	state, inode  string
}

// answering returns the process that holds the other end of a connection, whoever else listens on the port. Until the
// connection is accepted, it is the listening process.
func answering(ours, theirs netip.AddrPort) (int, error) {
	for try := 0; ; try++ {
		table, err := sockets()
		if err != nil {
			return 0, err
		}
		held := map[string]bool{}
		for _, s := range table {
			if s.state == established && s.local == theirs && s.remote == ours && s.inode != "0" {
				held["socket:["+s.inode+"]"] = true
			}
		}
		if len(held) > 0 || try == acceptTries {
			if len(held) == 0 {
				held = listening(table, theirs)
			}
			return holder(held, theirs)
		}
		time.Sleep(acceptPause)
	}
}

// How long to wait until a server accepts the connection.
const (
	acceptTries = 25
	acceptPause = 20 * time.Millisecond
)

// listening returns the sockets that listen on an address: on exactly that one, else on all addresses.
func listening(table []socket, at netip.AddrPort) map[string]bool {
	exact, any := map[string]bool{}, map[string]bool{}
	for _, s := range table {
		switch {
		case s.state != isListening || s.local.Port() != at.Port():
		case s.local == at:
			exact["socket:["+s.inode+"]"] = true
		case s.local.Addr().IsUnspecified():
			any["socket:["+s.inode+"]"] = true
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return any
}

// holder returns the oldest process that has one of the sockets open.
func holder(sockets map[string]bool, at netip.AddrPort) (int, error) {
	if len(sockets) == 0 {
		return 0, fmt.Errorf("no process found that listens at %v on this machine (containers have their own ports)",
			at)
	}
	pids, err := All()
	if err != nil {
		return 0, fmt.Errorf("finding the listener at %v: %w", at, err)
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
		if p, err := Look(pid); err == nil &&
			(first.PID == 0 || p.Start < first.Start || p.Start == first.Start && p.PID < first.PID) {
			first = p
		}
	}
	if first.PID == 0 {
		return 0, fmt.Errorf("can't find the listener at %v: it belongs to another user (%d processes "+
			"can't be read) or runs in another container", at, hidden)
	}
	return first.PID, nil
}

// sockets reads the kernel's tables.
func sockets() ([]socket, error) {
	var out []socket
	read := 0
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if errors.Is(err, fs.ErrNotExist) {
			continue // no IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("can't read listening sockets: %w", err)
		}
		read++
		for s := bufio.NewScanner(f); s.Scan(); {
			if row, ok := parseSocket(s.Text()); ok {
				out = append(out, row)
			}
		}
		_ = f.Close() // read-only
	}
	if read == 0 {
		return nil, errors.New("can't read listening sockets: no /proc/net/tcp")
	}
	return out, nil
}

// parseSocket reads a row of the kernel's table: number, local address, remote address, state … inode.
func parseSocket(row string) (s socket, ok bool) {
	f := strings.Fields(row)
	if len(f) < 10 {
		return s, false
	}
	var local, remote bool
	s.local, local = parseEnd(f[1])
	s.remote, remote = parseEnd(f[2])
	s.state, s.inode = f[3], f[9]
	return s, local && remote
}

// parseEnd reads an address of the kernel's table: 4-byte words in native order, and a port.
func parseEnd(text string) (netip.AddrPort, bool) {
	address, port, ok := strings.Cut(text, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	b, err2 := hex.DecodeString(address)
	if !ok || err != nil || err2 != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	ip, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), ok
}

// holds reports whether a process has one of the sockets open.
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

// program returns the file that a process runs; nil if unknown.
func program(pid int) os.FileInfo {
	f, err := os.Stat(of(pid, "exe"))
	if err != nil {
		return nil
	}
	return f
}
