//go:build slow

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/browser/transformersjs"
	"llmparity/browser/webllm"
	"llmparity/browser/wllama"
	"llmparity/internal/depth"
	"llmparity/internal/record"
	"llmparity/native/huggingface"
	"llmparity/native/llamacpp"
)

// profiled runs the command, and returns its rows.
func profiled(t *testing.T, engine string, args ...string) (dir string, rows []depth.Row) {
	t.Helper()
	cmd := program(t, append([]string{"profile", "--engines", engine, "--max-tokens", "48"}, args...)...)
	well(t, cmd)
	found, err := filepath.Glob(filepath.Join(cmd.Dir, "results", "profile-*"))
	check(t, err)
	dir = found[len(found)-1]
	rows, err = depth.ReadCSV(strings.NewReader(readFile(t, filepath.Join(dir, "profile.csv"))))
	check(t, err)
	return dir, rows
}

// WebGPU kernels and the waits between them are nearly all of decode, each role of a model is there, and both layers of
// the tiny model do the same. wllama needs lavapipe's float16.
func TestProfileOfKernels(t *testing.T) {
	browserTest(t)
	roles := []depth.Role{depth.Attention, depth.KVWrite, depth.FeedForward, depth.Head}
	all := append(roles, depth.Embedding, depth.Sampling)
	for _, c := range []struct {
		engine string
		args   []string
		roles  []depth.Role
		stack  string // in the flame graph
	}{
		{webllm.Name, []string{"--adapter", "swiftshader"}, all, "generate"},
		{webllm.Name, []string{"--adapter", "lavapipe"}, all, "generate"},
		{transformersjs.Name, []string{"--adapter", "swiftshader", "--backend", "webgpu"}, roles, "generate"},
		{wllama.Name, []string{"--adapter", "lavapipe", "--wllama-backend", "webgpu"}, roles, "wllama-worker"},
	} {
		t.Run(strings.Join(append(c.args, c.engine), " "), func(t *testing.T) {
			dir, rows := profiled(t, c.engine, c.args...)
			kernelsOf(t, rows, c.roles)
			page := readFile(t, filepath.Join(dir, c.engine+".html"))
			if !strings.Contains(page, c.stack) || strings.Contains(page, "src=") {
				t.Error("the flame graph lacks the page's functions, or fetches something")
			}
			if held := readFile(t, filepath.Join(dir, c.engine+".buffers.csv")); !strings.Contains(held, ",weights,") {
				t.Errorf("kinds of buffers: %.300s", held)
			}
		})
	}
}

func kernelsOf(t *testing.T, rows []depth.Row, want []depth.Role) {
	t.Helper()
	var between, edges time.Duration
	roles, calls := map[depth.Role]time.Duration{}, map[int]int64{}
	copied := 0.0
	for _, r := range rows {
		switch {
		case r.Phase == depth.Adapter && r.Role == depth.Copy:
			copied = float64(r.Bytes) / r.Self.Seconds()
		case r.Phase != record.Decode:
		case r.Kernel == "before the first kernel" || r.Kernel == "after the last kernel":
			edges += r.Self
		default:
			between += r.Self
			roles[r.Role] += r.Self
			if r.Role != depth.Copy { // llama.cpp's last layer drops rows
				calls[r.Layer] += r.Calls
			}
		}
	}
	t.Logf("kernels and waits between them: %v; at the edges of decode: %v", between, edges)
	if edges > between/20 {
		t.Errorf("kernels and the waits between them take %v, and %v of decode are at its edges", between, edges)
	}
	for _, role := range want {
		if roles[role] <= 0 {
			t.Errorf("no kernel has the role %s", role)
		}
	}
	if calls[0] == 0 || calls[0] != calls[1] || calls[depth.NoLayer] == 0 || len(calls) != 3 {
		t.Errorf("calls by layer: %v", calls)
	}
	if copied < 1<<20 {
		t.Errorf("the adapter copies %g bytes/s", copied)
	}
}

// Operators of Hugging Face have layers, and its own files are there.
func TestProfileOfOperators(t *testing.T) {
	dir, rows := profiled(t, huggingface.Name)
	layers, matrix := map[int]bool{}, false
	for _, r := range rows {
		layers[r.Layer] = true
		matrix = matrix || r.Kernel == "aten::addmm" || r.Kernel == "aten::mm"
	}
	if !layers[0] || !layers[1] || !layers[depth.NoLayer] || !matrix {
		t.Errorf("layers %v, a matrix product: %v", layers, matrix)
	}
	for _, ending := range []string{".trace.json", ".operators.txt", ".memory.txt", ".calls.txt", ".prof"} {
		if info, err := os.Stat(filepath.Join(dir, huggingface.Name+ending)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", ending, err)
		}
	}
}

// Matrix products are the widest leaf of llama.cpp's stacks.
func TestProfileOfStacks(t *testing.T) {
	dir, _ := profiled(t, llamacpp.Name)
	folded := readFile(t, filepath.Join(dir, llamacpp.Name+".folded"))
	stacks, err := depth.ReadFolded(strings.NewReader(folded), time.Second)
	check(t, err)
	leaves := stacks.Leaves()
	var names []string
	for name := range leaves {
		names = append(names, name)
	}
	widest := slices.MaxFunc(names, func(a, b string) int { return int(leaves[a] - leaves[b]) })
	if depth.RoleOf(widest) != depth.Matrix {
		t.Errorf("the widest leaf is %s: %v", widest, leaves)
	}
}
