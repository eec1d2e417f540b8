//go:build slow

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// Operators of Hugging Face have layers, and with the waits, which have times of their own, they are what the clock of
// another library says of each phase. Products read the weights of each token; those and the KV cache are in the
// memory of roles and of the process to the byte. Its own files are there.
func TestProfileOfOperators(t *testing.T) {
	dir, rows := profiled(t, huggingface.Name)
	layers, read, held := map[int]bool{}, map[depth.Role]int64{}, map[[2]string]int64{}
	for _, r := range rows {
		if r.Phase == record.Decode {
			layers[r.Layer] = true
		}
		if r.Phase == record.Decode && r.Kernel == "aten::mm" {
			read[r.Role] += r.Bytes
		}
		key := [2]string{r.Phase, r.Kernel}
		if held[key] += r.Bytes; r.Role == depth.Memory && r.Kernel == "KV cache" {
			held[key] -= 2 * r.Bytes // what layers hold, less that of the process
		}
	}
	if !layers[0] || !layers[1] || !layers[depth.NoLayer] {
		t.Errorf("layers %v", layers)
	}
	// Each of the tiny model's layers has three matrices of 128 × 256 values, and of 128 × 128 two and two halves.
	const tokens, width = 47, 4
	for role, of := range map[depth.Role]int64{depth.FeedForward: 3 * 128 * 256, depth.Attention: 3 * 128 * 128} {
		if n := 2 * tokens * width * of; read[role] < n || read[role] > n*21/20 {
			t.Errorf("%s reads %d bytes, of which %d are weights", role, read[role], n)
		}
	}
	if p, w := held[[2]string{"after load", "parameters"}], held[[2]string{"after load", "weights"}]; p != w || p == 0 {
		t.Errorf("layers have %d bytes of parameters, the process %d", p, w)
	}
	if gap := held[[2]string{"after inference", "KV cache"}]; gap != 0 {
		t.Errorf("layers have %+d bytes of KV cache more than the process", gap)
	}
	if before, after := held[[2]string{"before load", "RSS"}], held[[2]string{"after load", "RSS"}]; before == 0 ||
		after-before < held[[2]string{"after load", "weights"}] {
		t.Errorf("RSS of %d before the load and %d after it", before, after)
	}
	for _, at := range depth.Moments {
		if pss, rss := held[[2]string{at, "PSS"}], held[[2]string{at, "RSS"}]; pss == 0 || pss > rss {
			t.Errorf("%s: PSS of %d, RSS of %d", at, pss, rss)
		}
	}
	for _, phase := range []string{record.Prefill, record.Decode} {
		if held[[2]string{phase, "intermediate tensors"}] == 0 {
			t.Errorf("%s: no memory of intermediate tensors", phase)
		}
	}
	text := readFile(t, filepath.Join(dir, "profile.txt"))
	of := regexp.MustCompile(`of the clock +([0-9.]+)%`).FindAllStringSubmatch(text, -1)
	if len(of) != 2 {
		t.Fatalf("of the clock: %v", of)
	}
	for _, phase := range of {
		if share, err := strconv.ParseFloat(phase[1], 64); err != nil || share < 97 || share > 103 {
			t.Errorf("operators and waits are %s%% of the clock", phase[1])
		}
	}
	for _, ending := range []string{".trace.json", ".operators.txt", ".memory.txt", ".calls.txt", ".prof",
		".checkpoints.txt", ".layers.txt"} {
		if info, err := os.Stat(filepath.Join(dir, huggingface.Name+ending)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", ending, err)
		}
	}
}

// slow makes one module's product repeat itself.
const slow = `import torch
linear = torch.nn.functional.linear
def repeated(input, weight, bias=None):
    if weight.shape == (128, 256):  # the tiny model's down_proj
        wide = input.expand(-1, 64, -1) if input.shape[1] == 1 else input
        for _ in range(50):
            linear(wide, weight, bias)
    return linear(input, weight, bias)
torch.nn.functional.linear = repeated
`

// A slow product is named first, with its role.
func TestProfileNamesSlowOperator(t *testing.T) {
	path := t.TempDir()
	check(t, os.WriteFile(filepath.Join(path, "sitecustomize.py"), []byte(slow), 0o644))
	t.Setenv("PYTHONPATH", path)
	dir, _ := profiled(t, huggingface.Name)
	_, table, _ := strings.Cut(readFile(t, filepath.Join(dir, "profile.txt")), "its own kernels\n")
	first := strings.Split(table, "\n")[1]
	if !strings.Contains(first, string(depth.FeedForward)) || !strings.HasSuffix(first, "aten::mm") {
		t.Errorf("the first operator is %s", first)
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
