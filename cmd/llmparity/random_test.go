package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/gguf"
)

func TestRandomModel(t *testing.T) {
	cmd := program(t, "model", "random", "--arch", "qwen2", "--layers", "3", "--kv-heads", "1", "--tied", "--context",
		"256", "-o",
		"made/r.gguf")
	stdout, stderr, code := output(t, cmd)
	path := filepath.Join("made", "r.gguf")
	if code != 0 || !strings.HasPrefix(stdout, path+"  ") || !strings.HasSuffix(stdout, " parameters\n") {
		t.Fatalf("code %d: %s%s", code, stdout, stderr)
	}
	f, err := gguf.Open(filepath.Join(cmd.Dir, path))
	check(t, err)
	defer f.Close()
	if a, err := f.Architecture(); err != nil || a.Name != gguf.Qwen2 || a.BlockCount != 3 || a.HeadCountKV != 1 ||
		!a.Tied ||
		a.ContextLength != 256 {
		t.Errorf("%+v %v", a, err)
	}
	info := program(t, "model", "info", filepath.Join(cmd.Dir, path), "--json")
	stdout, stderr, code = output(t, info)
	var said struct{ Architecture string }
	if err := json.Unmarshal([]byte(stdout), &said); err != nil || code != 0 || said.Architecture != gguf.Qwen2 {
		t.Errorf("info says %s%s, %v", stdout, stderr, err)
	}
	well(t, program(t, "model", "random", "--rope-factor", "4", "--rope-scaling", "linear", "--window", "0"))
}
