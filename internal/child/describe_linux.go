package child

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Group lists the living processes of a process group, without zombies.
func Group(pgid int) (found []int) {
	for pid, s := range living() {
		if pgid != 0 && s.group == pgid { // 0: kernel threads
			found = append(found, pid)
		}
	}
	return found
}

// Descendants lists the living processes of a tree including its root; none for 0.
func Descendants(root int) (tree []int) {
	if root == 0 {
		return nil
	}
	children := map[int][]int{}
	for pid, s := range living() {
		children[s.parent] = append(children[s.parent], pid)
	}
	tree = []int{root}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i]]...)
	}
	return tree
}

// GroupNaming returns the process group of a process whose command line contains text, e.g. the path of its own
// folder; 0: none.
func GroupNaming(text string) int {
	for pid, s := range living() {
		line, err := os.ReadFile(filepath.Join(proc(pid), "cmdline"))
		if err == nil && bytes.Contains(line, []byte(text)) {
			return s.group
		}
	}
	return 0
}

type status struct{ parent, group int }

// living returns all processes except zombies.
func living() iter.Seq2[int, status] {
	return func(yield func(int, status) bool) {
		for _, pid := range pids() {
			// state ppid pgrp …
			f := stat(proc(pid))
			if len(f) < 3 || f[0] == "Z" || f[0] == "X" {
				continue
			}
			parent, _ := strconv.Atoi(f[1]) // always a number
			group, _ := strconv.Atoi(f[2])
			if !yield(pid, status{parent, group}) {
				return
			}
		}
	}
}

// Describe helps to see why processes hang: their command lines, and each thread's state and place in the kernel, as
// far as readable.
func Describe(pids []int) string {
	var b strings.Builder
	for _, pid := range pids {
		line, err := os.ReadFile(filepath.Join(proc(pid), "cmdline"))
		if err != nil {
			continue // it ended
		}
		fmt.Fprintf(&b, "process %d: %s\n", pid, cut(strings.ReplaceAll(string(line), "\x00", " "), 2000))
		threads, _ := filepath.Glob(filepath.Join(proc(pid), "task/*")) // the pattern is valid
		for _, dir := range threads {
			describeThread(&b, dir)
		}
	}
	return b.String()
}

func describeThread(b *strings.Builder, dir string) {
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name)) // empty if unreadable or ended
		return strings.Join(strings.Fields(string(text)), " ")
	}
	state := ""
	if f := stat(dir); len(f) > 0 {
		state = f[0]
	}
	fmt.Fprintf(b, "  thread %s %s: state %s", filepath.Base(dir), read("comm"), state)
	for _, name := range []string{"wchan", "syscall", "stack"} {
		if text := read(name); text != "" && text != "0" {
			fmt.Fprintf(b, ", %s %s", name, cut(text, 400))
		}
	}
	b.WriteByte('\n')
}

// stat returns the fields of a stat file after the name, which may contain anything.
func stat(dir string) []string {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// pids lists all processes; none without /proc.
func pids() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // as far as readable
	var all []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

func proc(pid int) string { return "/proc/" + strconv.Itoa(pid) }

func cut(text string, most int) string {
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
