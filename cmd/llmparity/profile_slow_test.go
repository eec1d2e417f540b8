//go:build slow

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/browser/webllm"
	"llmparity/internal/depth"
	"llmparity/internal/record"
	"llmparity/native/huggingface"
	"llmparity/native/llamacpp"
)

// profiled runs the command, and returns its rows.
func profiled(t *testing.T, engine string) (dir string, rows []depth.Row) {
	t.Helper()
	cmd := program(t, "profile", "--engines", engine, "--max-tokens", "48")
	well(t, cmd)
	found, err := filepath.Glob(filepath.Join(cmd.Dir, "results", "profile-*"))
	check(t, err)
	dir = found[len(found)-1]
	rows, err = depth.ReadCSV(strings.NewReader(readFile(t, filepath.Join(dir, "profile.csv"))))
	check(t, err)
	return dir, rows
}

// WebLLM's kernels and the waits between them are nearly all of decode, and each role of a model is there.
func TestProfileOfKernels(t *testing.T) {
	browserTest(t)
	dir, rows := profiled(t, webllm.Name)
	var between, edges time.Duration
	roles := map[depth.Role]time.Duration{}
	for _, r := range rows {
		switch {
		case r.Phase != record.Decode:
		case r.Kernel == "before the first kernel" || r.Kernel == "after the last kernel":
			edges += r.Self
		default:
			between += r.Self
			roles[r.Role] += r.Self
		}
	}
	if edges > between/20 {
		t.Errorf("kernels and the waits between them take %v, and %v of decode are at its edges", between, edges)
	}
	for _, role := range []depth.Role{depth.Embedding, depth.Attention, depth.KVWrite, depth.FeedForward, depth.Head,
		depth.Sampling} {
		if roles[role] <= 0 {
			t.Errorf("no kernel has the role %s", role)
		}
	}
	page := readFile(t, filepath.Join(dir, webllm.Name+".html"))
	if !strings.Contains(page, "generate") || strings.Contains(page, "src=") {
		t.Error("the flame graph lacks the page's functions, or fetches something")
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
