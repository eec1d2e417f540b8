package child

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// Group lists the living processes of a process group, without zombies.
func Group(pgid int) (found []int) {
	for pid, s := range living() {
		if pgid != 0 && s.PGRP == pgid { // 0: kernel threads
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
		children[s.PPID] = append(children[s.PPID], pid)
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
		if strings.Contains(commandLine(pid), text) {
			return s.PGRP
		}
	}
	return 0
}

// living returns all processes except zombies.
func living() iter.Seq2[int, procfs.ProcStat] {
	return func(yield func(int, procfs.ProcStat) bool) {
		for _, p := range processes() {
			stat, err := p.Stat()
			if err != nil || stat.State == "Z" || stat.State == "X" {
				continue
			}
			if !yield(p.PID, stat) {
				return
			}
		}
	}
}

// processes lists all processes; none without /proc.
func processes() procfs.Procs {
	all, _ := procfs.AllProcs()
	return all
}

// Describe helps to see why processes hang: their states and command lines, as far as readable.
func Describe(pids []int) string {
	var b strings.Builder
	for pid, stat := range living() {
		if slices.Contains(pids, pid) {
			fmt.Fprintf(&b, "process %d: state %s: %.2000s\n", pid, stat.State, commandLine(pid))
		}
	}
	return b.String()
}

func commandLine(pid int) string {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return ""
	}
	line, _ := p.CmdLine() // it may have ended
	return strings.Join(line, " ")
}
