//go:build slow

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/cache"
	"llmparity/internal/child"
	"llmparity/internal/record"
)

// The program's own memory and files do not grow over fifty cells: the median RSS after the last ten launches is at
// most 4 MiB above that of launches 11 to 20.
func TestFiftyCellsLeaveNothingBehind(t *testing.T) {
	const cells, mostMiB = 50, 4
	moved(t)
	text := "name: fifty\nengines: [webllm, llamacpp]\nmodel: tiny\nmax_tokens: 8\ntemperature: 0\ncontext: 512\nrepetitions: 1\ntimeout: 3m\n" +
		"warmup:\n  launches: 0\n  tokens: 1\nprompts:\n"
	for i := range cells / 2 {
		text += fmt.Sprintf("  - %d clocks, and what they said\n", i+1)
	}
	check(t, os.WriteFile("fifty.yaml", []byte(text), 0o644))
	after := &held{}
	var stdout bytes.Buffer
	if code := execute([]string{"run", "fifty.yaml"}, &stdout, after); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &stdout, &after.said)
	}
	if len(after.launches) != cells {
		t.Fatalf("%d launches ended, want %d\n%s", len(after.launches), cells, &after.said)
	}
	r := opened(t, filepath.Join("results", "latest"))
	if len(r.Cells) != cells || len(r.Attempts) != cells || r.Status != record.OK {
		t.Errorf("%d cells, %d launches, status %s", len(r.Cells), len(r.Attempts), r.Status)
	}
	first, last := after.launches[0], after.launches[cells-1]
	t.Logf("after the first launch %v, after the last %v", first, last)
	for i, h := range after.launches {
		if h.descriptors > first.descriptors || h.goroutines > first.goroutines || len(h.processes)+len(h.folders)+
			h.ports > 0 {
			t.Errorf("after launch %d: %v, after the first: %v", i+1, h, first)
		}
	}
	early, late := medianRSS(after.launches[10:20]), medianRSS(after.launches[cells-10:])
	t.Logf("RSS: %.1f MiB after launches 11 to 20, %.1f MiB after the last ten", early, late)
	if late > early+mostMiB {
		t.Errorf("RSS grew from %.1f to %.1f MiB", early, late)
	}
}

// held is what this process holds after each launch.
type held struct {
	said     bytes.Buffer
	launches []holding
}

type holding struct {
	descriptors, ports, goroutines int
	processes                      []int
	folders                        []string
	rss                            float64 // MiB
}

var ended = regexp.MustCompile(`^\[\d+/\d+\] .*\n$`)

func (h *held) Write(line []byte) (int, error) {
	if ended.Match(line) {
		now := holding{ports: ports(), goroutines: runtime.NumGoroutine(), processes: child.Tagged(os.Getpid()),
			folders: child.Scratches(os.Getpid())}
		open, _ := os.ReadDir("/proc/self/fd") // Linux has it
		now.descriptors = len(open)
		status, _ := os.ReadFile("/proc/self/status")
		_, rest, _ := strings.Cut(string(status), "VmRSS:")
		var kib float64
		_, _ = fmt.Sscan(rest, &kib) // 0 fails the test
		now.rss = kib / 1024
		h.launches = append(h.launches, now)
	}
	return h.said.Write(line)
}

var _ io.Writer = (*held)(nil)

// ports counts the listening sockets of this process.
func ports() int {
	mine := map[string]bool{}
	links, _ := filepath.Glob("/proc/self/fd/*") // the pattern is well formed
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil {
			mine[target] = true
		}
	}
	n := 0
	for _, file := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, _ := os.ReadFile(file) // no IPv6: none
		for line := range strings.Lines(string(text)) {
			const listening = "0A"
			if f := strings.Fields(line); len(f) > 9 && f[3] == listening && mine["socket:["+f[9]+"]"] {
				n++
			}
		}
	}
	return n
}

func medianRSS(launches []holding) float64 {
	var all []float64
	for _, h := range launches {
		all = append(all, h.rss)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// moved changes to a temporary folder.
func moved(t *testing.T) {
	t.Helper()
	dir := shortDir(t)
	t.Setenv("LLMPARITY_CACHE", cache.Dir(os.Getenv)) // before TMPDIR and the folder change
	t.Setenv("TMPDIR", dir)
	t.Chdir(dir)
}
