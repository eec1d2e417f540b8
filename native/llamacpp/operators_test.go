package llamacpp

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/depth"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// Names are those of llama.cpp's graphs.
func TestOperatorsHaveRolesAndLayers(t *testing.T) {
	for _, c := range []struct {
		op, tensor string
		layer      int
		role       depth.Role
		kernel     string
	}{
		{"GET_ROWS", "embd", depth.NoLayer, depth.Embedding, "GET_ROWS embd f32[4]"},
		{"RMS_NORM", "norm-12", 12, depth.Norm, "RMS_NORM norm f32[4]"},
		{"MUL", "ffn_norm-3", 3, depth.Norm, "MUL ffn_norm f32[4]"},
		{"MUL_MAT", "Qcur-0", 0, depth.Attention, "MUL_MAT Qcur f32[4]"},
		{"SOFT_MAX", "kq_soft_max-1", 1, depth.Attention, "SOFT_MAX kq_soft_max f32[4]"},
		{"SET_ROWS", "cache_k_l7 (view)", 7, depth.KVWrite, "SET_ROWS cache_k (view) f32[4]"},
		{"MUL_MAT", "ffn_moe_logits-2", 2, depth.FeedForward, "MUL_MAT ffn_moe_logits f32[4]"},
		{"ADD", "l_out-5", 5, depth.FeedForward, "ADD l_out f32[4]"},
		{"MUL_MAT", "result_output", depth.NoLayer, depth.Head, "MUL_MAT result_output f32[4]"},
		{"SAMPLE", "greedy", depth.NoLayer, depth.Sampling, "SAMPLE greedy f32[4]"},
		{"GET_ROWS", "node_68", depth.NoLayer, depth.Copy, "GET_ROWS f32[4]"},
		{"MUL_MAT", "node_9", depth.NoLayer, depth.Matrix, "MUL_MAT f32[4]"},
	} {
		got := operator(c.op, c.tensor, "f32[4]")
		if got.Layer != c.layer || got.Role != c.role || got.Kernel != c.kernel {
			t.Errorf("%s %s: %+v", c.op, c.tensor, got)
		}
	}
}

const operatorLines = "wall\tdecode\t900\t800\nop\tdecode\tADD\tl_out-0\tf32[4]\t2\t300\t64\t290\n" +
	"op\tdecode\tADD\tl_out-1\tf32[4]\t9\t200\t64\t110\nwait\tdecode\tbetween operators\t4\t400\n"

func TestOperatorLines(t *testing.T) {
	p, err := readOperators([]byte(operatorLines))
	check.Err(t, err)
	if p.Sum(record.Decode) != 900 || p.Wall[record.Decode] != 900 || p.Plain[record.Decode] != 800 ||
		len(p.Rows) != 3 || p.Rows[1].Calls != 9 || p.Rows[1].Bytes != 64 || len(p.Notes) != 1 ||
		!strings.HasPrefix(p.Notes[0], "ADD l_out f32[4] of layer 1, decode: one of 9 calls took ") {
		t.Errorf("%+v", p)
	}
	for text, want := range map[string]string{
		"":                             "no operator",
		"wall\tdecode\t1\t-1\n":        "line 1: want a number of at least 0",
		operatorLines + "op\tdecode\n": "line 5: unknown",
		operatorLines + "what\n":       `line 5: want a number of at least 0, got "what"`,
	} {
		if _, err := readOperators([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzOperatorLines(f *testing.F) {
	f.Add([]byte(operatorLines))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := readOperators(text); err == nil && len(p.Rows) == 0 {
			t.Errorf("%q: %+v", text, p)
		}
	})
}

// beside makes a folder with our llama-server and no other program.
func beside(t *testing.T) (dir string, c Config) {
	t.Helper()
	c = Config{Cache: cache.Dir(os.Getenv)}
	path, err := Find(c)
	check.Err(t, err)
	dir = t.TempDir()
	c.Path = filepath.Join(dir, "llama-server")
	check.Err(t, os.WriteFile(c.Path, check.Read(t, path), 0o700))
	return dir, c
}

// A llama-server of another build still generates, and the reason says how to get its operators.
func TestOperatorsNeedTheirProgram(t *testing.T) {
	_, c := beside(t)
	s, _ := enginetest.Open(t, New(c))
	enginetest.Load(t, s, randomModel(t, ascii()))
	p, err := s.(engine.DeepProfiler).Deep(t.Context(), engine.Request{Prompt: "once", MaxTokens: 2}, t.TempDir()+"/x")
	if !errors.Is(err, engine.ErrShallow) || len(p.Notes) != 1 ||
		!strings.Contains(p.Notes[0], "has no llmparity-operators beside it; run `scripts/setup llamacpp-operators`") {
		t.Errorf("%v: %q", err, p.Notes)
	}
}

// If the program fails, the reason is a note: stacks can still be sampled.
func TestOperatorsProgramFails(t *testing.T) {
	dir, c := beside(t)
	check.Script(t, "echo 'no memory' >&2; exit 3", dir, OperatorsName)
	s, _ := enginetest.Open(t, New(c))
	enginetest.Load(t, s, randomModel(t, ascii()))
	p, err := s.(engine.DeepProfiler).Deep(t.Context(), engine.Request{Prompt: "once", MaxTokens: 2}, t.TempDir()+"/x")
	if !errors.Is(err, engine.ErrShallow) || len(p.Notes) != 1 ||
		!strings.Contains(p.Notes[0], "failed: exit status 3: no memory; if it is old, run `scripts/setup") {
		t.Errorf("%v: %q", err, p.Notes)
	}
}
