//go:build slow

package llamacpp

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/depth"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// deep profiles a generation of SmolLM2.
func deep(t *testing.T, c Config, tokens int) (p depth.Profile, trace string) {
	t.Helper()
	s, _ := enginetest.Open(t, New(c))
	enginetest.Load(t, s, smolLM2(t, benchContext))
	p, err := s.(engine.DeepProfiler).Deep(t.Context(), engine.Request{Prompt: "Once upon a time", MaxTokens: tokens,
		IgnoreEOS: true}, filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatalf("%v: %q", err, p.Notes)
	}
	return p, p.Files[0]
}

// Operators and waits are each phase's time by the clock, every layer has its operators, and the bytes of the weights
// are those of the file.
func TestOperatorsExplainTheClock(t *testing.T) {
	const tokens = 9
	p, trace := deep(t, newEngine(t).config, tokens)
	for _, phase := range []string{record.Prefill, record.Decode} {
		if part := float64(p.Sum(phase)) / float64(p.Wall[phase]); part < 0.97 || part > 1.03 {
			t.Errorf("%s: rows are %.3f of the clock", phase, part)
		}
	}
	roles, gates := map[depth.Role]bool{}, 0
	var calls int64
	for _, r := range p.Rows {
		roles[r.Role] = true
		if r.Role != depth.Wait {
			calls += r.Calls
		}
		if r.Phase != record.Decode || !strings.HasPrefix(r.Kernel, "MUL_MAT ffn_gate ") {
			continue
		}
		gates++
		// 4 bits a weight, and for 32 of them a scale and a minimum of 16 bits; the vectors have 32
		if want := int64(tokens-1) * (576*1536*20/32 + 4*(576+1536)); r.Calls != tokens-1 || r.Bytes != want {
			t.Errorf("layer %d: %d calls, %d bytes; want %d and %d", r.Layer, r.Calls, r.Bytes, tokens-1, want)
		}
	}
	for _, role := range []depth.Role{depth.Embedding, depth.Norm, depth.Attention, depth.KVWrite, depth.FeedForward,
		depth.Head, depth.Sampling, depth.Wait} {
		if !roles[role] {
			t.Errorf("no operator has the role %s", role)
		}
	}
	if gates != 30 {
		t.Errorf("%d of 30 layers have ffn_gate", gates)
	}
	var events struct {
		TraceEvents []struct{ Name string }
	}
	check.Err(t, json.Unmarshal(check.Read(t, trace), &events))
	if n := int64(len(events.TraceEvents)); n != calls {
		t.Errorf("the trace has %d events of %d operators", n, calls)
	}
}

// planted repeats the dot products of vectors as long as the KV cache: those of attention's product with the values.
const planted = `#include <cstddef>
using vector = const float *;
extern "C" void __real_ggml_vec_dot_f32(int, float *, size_t, vector, size_t, vector, size_t, int);
extern "C" void __wrap_ggml_vec_dot_f32(int n, float * s, size_t bs, vector x, size_t bx, vector y, size_t by, int c) {
	for (int i = n == 256 ? 500 : 1; i > 0; i--) __real_ggml_vec_dot_f32(n, s, bs, x, bx, y, by, c);
}
`

// A matrix product that repeats itself is named first, in each layer, and only in the build that has it.
func TestPlantedProductIsNamedFirst(t *testing.T) {
	slow := func(r depth.Row) bool { return strings.HasPrefix(r.Kernel, "MUL_MAT kqv ") }
	first := func(p depth.Profile) depth.Row {
		return slices.MaxFunc(p.Rows, func(a, b depth.Row) int { return int(a.Self - b.Self) })
	}
	own, _ := deep(t, newEngine(t).config, 4)
	if r := first(own); slow(r) {
		t.Errorf("without it, %+v is first", r)
	}
	dir, c := beside(t)
	server, err := Find(newEngine(t).config)
	check.Err(t, err)
	build := filepath.Dir(filepath.Dir(server)) // with what scripts/setup llamacpp-operators links to
	source := filepath.Join(dir, "planted.cpp")
	check.Err(t, os.WriteFile(source, []byte(planted), 0o600))
	cmd := exec.Command("c++", "-O1", "-std=c++17", "-I"+filepath.Join(build, "include"), "-o",
		filepath.Join(dir, OperatorsName), "../../scripts/llamacpp-operators.cpp", source,
		"-Wl,--wrap=ggml_vec_dot_f32", "-L"+filepath.Join(build, "lib"), "-lllama", "-lggml", "-lggml-cpu",
		"-lggml-base", "-fopenmp", "-lpthread", "-ldl")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p, _ := deep(t, c, 4)
	if r := first(p); !slow(r) || r.Role != depth.Attention {
		t.Errorf("%+v is first", r)
	}
}
