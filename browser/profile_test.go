package browser

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
)

// read parses a profile.
func read(t *testing.T, path string, v any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// generated makes the stub report some tokens.
func generated(t *testing.T, p *Page) (ids []float64) {
	t.Helper()
	said, err := Long[answer](watched(t), p, "llmparity.interrupt()", "llmparity.generate", map[string]any{"tokens": 9},
		func(told Told) {
			for i := 0; i < len(told.Tokens); i += 2 {
				ids = append(ids, told.Tokens[i])
			}
		})
	if err != nil || said.Text != "said" {
		t.Errorf("text %q, %v", said.Text, err)
	}
	return ids
}

// profiled runs a generation in a worker with every kind of profile, and returns the prefix of the files and their
// names.
func profiled(t *testing.T) (string, []string) {
	t.Helper()
	p, _ := fresh(t, Config{Thread: WorkerThread})
	finish, err := p.Profile(watched(t), []engine.Profile{engine.HeapSnapshot, engine.SamplingProfile, engine.Trace,
		engine.CPUProfile})
	check.Also(t, err)
	for range 3 {
		generated(t, p)
	}
	prefix := filepath.Join(t.TempDir(), "1-measure")
	check.Also(t, finish(watched(t), prefix))
	found, err := filepath.Glob(prefix + "*")
	check.Err(t, err)
	return prefix, found
}

func TestProfilesOpenInDevTools(t *testing.T) {
	prefix, found := profiled(t)
	want := []string{prefix + ".cpuprofile", prefix + ".heapprofile", prefix + ".heapsnapshot", prefix + ".trace.json",
		prefix + "-worker" + ".cpuprofile", prefix + "-worker" + ".heapprofile", prefix + "-worker" + ".heapsnapshot"}
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Fatalf("files %q, want %q", found, want)
	}
	for _, name := range []string{"", "-worker"} {
		var cpu struct {
			Nodes               []struct{ CallFrame struct{ URL string } }
			Samples, TimeDeltas []int
		}
		read(t, prefix+name+".cpuprofile", &cpu)
		ours := slices.ContainsFunc(cpu.Nodes, func(n struct{ CallFrame struct{ URL string } }) bool {
			return strings.Contains(n.CallFrame.URL, "engine.js")
		})
		if len(cpu.Samples) == 0 || len(cpu.Samples) != len(cpu.TimeDeltas) || name != "" && !ours {
			t.Errorf("%s%s: %d samples, %d times, functions of the engine: %v", name, ".cpuprofile", len(cpu.Samples),
				len(cpu.TimeDeltas), ours)
		}
		var heap struct {
			Snapshot struct {
				Meta struct {
					NodeFields []string `json:"node_fields"`
				}
				NodeCount int `json:"node_count"`
			}
			Nodes   []int
			Strings []string
		}
		read(t, prefix+name+".heapsnapshot", &heap)
		if n := heap.Snapshot.NodeCount * len(heap.Snapshot.Meta.NodeFields); n == 0 || len(heap.Nodes) != n ||
			!slices.Contains(heap.Strings, "llmparity") {
			t.Errorf("%s%s is incomplete, or has none of our objects", name, ".heapsnapshot")
		}
		var sampling struct {
			Head    *struct{ Children []any }
			Samples []struct{ Size float64 }
		}
		if read(t, prefix+name+".heapprofile", &sampling); sampling.Head == nil || sampling.Samples == nil {
			t.Errorf("%s%s lacks a tree or samples", name, ".heapprofile")
		}
	}
	var trace struct {
		TraceEvents []struct{ Name, Cat, Ph string }
		Metadata    map[string]any
	}
	read(t, prefix+".trace.json", &trace)
	seen := map[string]bool{}
	for _, e := range trace.TraceEvents {
		seen[e.Name] = true
	}
	// By these the performance panel finds the page and its threads.
	for _, name := range []string{"TracingStartedInBrowser", "thread_name", "RunTask"} {
		if !seen[name] {
			t.Errorf("the trace of %d events has no %s", len(trace.TraceEvents), name)
		}
	}
}
