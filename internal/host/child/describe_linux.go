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
	for p, s := range living() {
		if pgid != 0 && s.PGRP == pgid { // 0: kernel threads
			found = append(found, p.PID)
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
	for p, s := range living() {
		children[s.PPID] = append(children[s.PPID], p.PID)
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
	for p, s := range living() {
		if strings.Contains(commandLine(p), text) {
			return s.PGRP
		}
	}
	return 0
}

// living returns all processes except zombies.
func living() iter.Seq2[procfs.Proc, procfs.ProcStat] {
	return func(yield func(procfs.Proc, procfs.ProcStat) bool) {
		for _, p := range processes() {
			stat, err := p.Stat()
			if err == nil && stat.State != "Z" && stat.State != "X" && !yield(p, stat) {
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
	for p, stat := range living() {
		if slices.Contains(pids, p.PID) {
			fmt.Fprintf(&b, "process %d: state %s: %.2000s\n", p.PID, stat.State, commandLine(p))
		}
	}
	return b.String()
}

func commandLine(p procfs.Proc) string {
	line, _ := p.CmdLine() // it may have ended
	return strings.Join(line, " ")
}
