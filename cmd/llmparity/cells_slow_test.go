//go:build slow

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"testing"

	"github.com/shirou/gopsutil/v3/process"

	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
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
	put(t, ".", "fifty.yaml", text)
	after := &held{}
	var stdout bytes.Buffer
	if code := execute([]string{"run", "fifty.yaml"}, &stdout, after); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &stdout, &after.said)
	}
	if len(after.launches) != cells {
		t.Fatalf("%d launches ended, want %d\n%s", len(after.launches), cells, &after.said)
	}
	r := recorded(t, ".")
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
		now := holding{goroutines: runtime.NumGoroutine(), processes: child.Tagged(os.Getpid()),
			folders: child.Scratches(os.Getpid())}
		self := process.Process{Pid: int32(os.Getpid())}
		sockets, err := self.Connections()
		for _, s := range sockets {
			if s.Status == "LISTEN" {
				now.ports++
			}
		}
		files, err2 := self.NumFDs()
		memory, err3 := self.MemoryInfo()
		if err := errors.Join(err, err2, err3); err != nil {
			return 0, err
		}
		now.descriptors, now.rss = int(files), float64(memory.RSS)/record.MiB
		h.launches = append(h.launches, now)
	}
	return h.said.Write(line)
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
