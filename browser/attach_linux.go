package browser

import (
	"bytes"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// listeners are the processes of this machine that listen at an address, as far as we may see them.
func listeners(ip net.IP, port string) []int {
	if !here(ip) {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
	}
	var sockets []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // a kernel without
		}
		sockets = append(sockets, listening(string(text), ip, uint16(n))...)
	}
	return holders(sockets)
}

// here tells whether an address is one of this machine's.
func here(ip net.IP) bool {
	if ip.IsLoopback() {
		return true
	}
	own, _ := net.InterfaceAddrs() // none: it is not here
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

// listening reads one of the kernel's tables of TCP sockets: the inodes of those that listen on ip, or on every
// address, at port.
func listening(table string, ip net.IP, port uint16) []string {
	const listens = "0A"
	var inodes []string
	for line := range strings.Lines(table) {
		// sl local remote state queues timer retransmit uid timeout inode …
		f := strings.Fields(line)
		if len(f) < 10 || f[3] != listens {
			continue
		}
		address, p, ok := strings.Cut(f[1], ":")
		n, err := strconv.ParseUint(p, 16, 16)
		if !ok || err != nil || uint16(n) != port {
			continue
		}
		if local := kernelIP(address); local != nil && (local.IsUnspecified() || local.Equal(ip)) {
			inodes = append(inodes, f[9])
		}
	}
	return inodes
}

// kernelIP reads an address as the kernel prints it on a little-endian machine: words of four bytes, each turned round.
func kernelIP(text string) net.IP {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != net.IPv4len && len(b) != net.IPv6len {
		return nil
	}
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word)
	}
	return b
}

// holders are the processes that have one of the sockets open.
func holders(inodes []string) []int {
	if len(inodes) == 0 {
		return nil
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well formed
	var pids []int
	for _, f := range files {
		to, err := os.Readlink(f)
		if err != nil {
			continue // closed meanwhile, or not ours to read
		}
		inode, ok := strings.CutPrefix(to, "socket:[")
		if !ok || !slices.Contains(inodes, strings.TrimSuffix(inode, "]")) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(f, "/")[2]); err == nil && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// descendants lists the living processes of a tree with its root; none for 0.
func descendants(root int) []int {
	if root == 0 {
		return nil
	}
	children := map[int][]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, f := range files {
		stat, err := os.ReadFile(f)
		if err != nil {
			continue // ended meanwhile
		}
		// pid (name) state ppid …; the name may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(f, "/")[2])
		parent, err2 := strconv.Atoi(fields[1])
		if err == nil && err2 == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	tree := []int{root}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i]]...)
	}
	return tree
}
