package browser

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine"
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
	said, err := Long[string](watched(t), p, "llmparity.stop()", "llmparity.generate", map[string]any{"tokens": 9},
		func(told Told) {
			for i := 0; i < len(told.Tokens); i += 2 {
				ids = append(ids, told.Tokens[i])
			}
		})
	if err != nil || said != "said" {
		t.Errorf("text %q, %v", said, err)
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
	if err != nil {
		t.Error(err)
	}
	generated(t, p)
	prefix := filepath.Join(t.TempDir(), "1-measure")
	if err := finish(watched(t), prefix); err != nil {
		t.Error(err)
	}
	found, err := filepath.Glob(prefix + "*")
	if err != nil {
		t.Fatal(err)
	}
	return prefix, found
}

func TestProfilesOpenInDevTools(t *testing.T) {
	prefix, found := profiled(t)
	want := []string{prefix + cpuEnding, prefix + samplingEnding, prefix + snapshotEnding, prefix + traceEnding,
		prefix + "-worker" + cpuEnding, prefix + "-worker" + samplingEnding, prefix + "-worker" + snapshotEnding}
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Fatalf("files %q, want %q", found, want)
	}
	for _, name := range []string{"", "-worker"} {
		if urls := cpuProfile(t, prefix+name+cpuEnding); name != "" && !strings.Contains(urls, "engine.js") {
			t.Errorf("the worker's CPU profile has no functions of the engine, but of %q", urls)
		}
		heapSnapshot(t, prefix+name+snapshotEnding)
		var sampling struct {
			Head *struct {
				CallFrame struct{ FunctionName string }
				Children  []any
			}
			Samples []struct{ Size, NodeID float64 }
		}
		if read(t, prefix+name+samplingEnding, &sampling); sampling.Head == nil ||
			sampling.Head.CallFrame.FunctionName != "(root)" || sampling.Samples == nil {
			t.Errorf("%s%s lacks a tree or samples", name, samplingEnding)
		}
	}
	var trace struct {
		TraceEvents []struct{ Name, Cat, Ph string }
		Metadata    map[string]any
	}
	read(t, prefix+traceEnding, &trace)
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

// cpuProfile checks that every sample's function is in the tree, and returns the URLs of their scripts.
func cpuProfile(t *testing.T, path string) string {
	t.Helper()
	var p struct {
		Nodes []struct {
			ID        int
			CallFrame struct{ URL string }
			Children  []int
		}
		StartTime, EndTime  float64
		Samples, TimeDeltas []int
	}
	read(t, path, &p)
	ids, urls := map[int]bool{}, ""
	for _, n := range p.Nodes {
		ids[n.ID] = true
		urls += n.CallFrame.URL + "\n"
	}
	if len(p.Samples) == 0 || len(p.Samples) != len(p.TimeDeltas) || p.EndTime <= p.StartTime {
		t.Errorf("%s: %d samples, %d times, from %f to %f", path, len(p.Samples), len(p.TimeDeltas), p.StartTime,
			p.EndTime)
	}
	for _, s := range p.Samples {
		if !ids[s] {
			t.Fatalf("%s: a sample has node %d, which is not in the tree", path, s)
		}
	}
	return urls
}

// heapSnapshot checks that the snapshot has all its nodes and edges, with all their fields.
func heapSnapshot(t *testing.T, path string) {
	t.Helper()
	var h struct {
		Snapshot struct {
			Meta struct {
				NodeFields []string `json:"node_fields"`
				EdgeFields []string `json:"edge_fields"`
			}
			NodeCount int `json:"node_count"`
			EdgeCount int `json:"edge_count"`
		}
		Nodes, Edges []int
		Strings      []string
	}
	read(t, path, &h)
	s := h.Snapshot
	if s.NodeCount == 0 || len(h.Nodes) != s.NodeCount*len(s.Meta.NodeFields) ||
		len(h.Edges) != s.EdgeCount*len(s.Meta.EdgeFields) {
		t.Errorf("%s: %d numbers for %d nodes of %d fields, %d for %d edges of %d", path, len(h.Nodes), s.NodeCount,
			len(s.Meta.NodeFields), len(h.Edges), s.EdgeCount, len(s.Meta.EdgeFields))
	}
	if !slices.Contains(h.Strings, "llmparity") {
		t.Errorf("%s has none of our objects", path)
	}
}

func TestUnwritableProfile(t *testing.T) {
	p, _ := blank(t)
	finish, err := p.Profile(watched(t), []engine.Profile{engine.HeapSnapshot, engine.CPUProfile})
	if err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "no", "folder")
	if err := finish(watched(t), nowhere); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that the folder does not exist", err)
	}
	// The failed profile is over: it can be taken again.
	finish, err = p.Profile(watched(t), []engine.Profile{engine.CPUProfile})
	prefix := filepath.Join(t.TempDir(), "again")
	if err = errors.Join(err, finish(watched(t), prefix)); err != nil {
		t.Error(err)
	}
	cpuProfile(t, prefix+cpuEnding)
}
