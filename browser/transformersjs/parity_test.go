package transformersjs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
)

// limited ends with the test's patience.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// loaded opens a session with a model.
func loaded(t *testing.T, e *Engine, m models.Model) (engine.Session, *enginetest.Probe) {
	t.Helper()
	check.Err(t, e.Prepare(limited(t), m, func(s string) { t.Log(s) }))
	s, probe := enginetest.Open(t, e)
	enginetest.Load(t, s, m)
	return s, probe
}

// ids generates greedily.
func ids(t *testing.T, s engine.Session, prompt string, n int) (got []int, u record.Usage) {
	t.Helper()
	u, err := s.Generate(limited(t), engine.Request{Prompt: prompt, MaxTokens: n, IgnoreEOS: true},
		func(tok record.Token) { got = append(got, tok.ID) })
	check.Err(t, err)
	return got, u
}

// backends are what tests run on. WebGPU on SwiftShader takes a minute to compile shaders and to generate.
func backends() []Config {
	all := []Config{{Settings: browser.Defaults(), Backend: Wasm}}
	if check.Slow {
		all = append(all, Config{Settings: browser.Defaults(), Backend: WebGPU})
	}
	return all
}

// TestTinyParity compares all prompts with the reference, which llama.cpp equals on them.
func TestTinyParity(t *testing.T) {
	for _, c := range backends() {
		for _, threads := range []int{1, 2} {
			if c.Backend == WebGPU && threads > 1 {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d threads", c.Backend, threads), func(t *testing.T) {
				cases := enginetest.Tiny(t, 64)
				s, probe := loaded(t, made(t, c, engine.Settings{Threads: threads}), cases[0].Model)
				for i, one := range cases {
					got, u := ids(t, s, one.Prompt, 64)
					if !slices.Equal(u.PromptIDs, one.PromptIDs) || !slices.Equal(got, one.Expected) {
						t.Errorf("prompt %d: ids %v,\nwant %v", i, got, one.Expected)
					}
				}
				if n := probe.Engine().Policy["threads"]; n != strconv.Itoa(threads) {
					t.Errorf("%s threads", n)
				}
				wasm := probe.Figures(t, browser.MethodWasm, "page")
				if wasm["memory_bytes"] < 16<<20 || wasm["memory_bytes"] > 64<<20 {
					t.Errorf("WebAssembly: %v", wasm)
				}
			})
		}
	}
}

// random writes a random model.
func random(t *testing.T, spec tiny.Spec) models.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "random.gguf")
	f, err := os.Create(path)
	check.Err(t, err)
	check.Err(t, tiny.WriteRandom(f, spec))
	check.Err(t, f.Close())
	m, err := models.Open(t.Context(), path, 0)
	check.Err(t, err)
	return m
}

// essential are the features that are tested always, and on every backend.
var essential = []string{"qwen3", "gemma3, two bases and linear scaling", "Q4_0", "qwen2", "a sliding window"}

// TestFeatureParity compares what architectures and types can have with the reference, in one page.
func TestFeatureParity(t *testing.T) {
	for _, c := range backends() {
		t.Run(c.Backend, func(t *testing.T) {
			e := made(t, c, engine.Settings{Threads: 1})
			s, _ := enginetest.Open(t, e)
			for _, f := range append(tinytest.Features(), tinytest.Types()...) {
				thorough := check.Slow && c.Backend == Wasm && !strings.Contains(f.Name, "2048 wide")
				if thorough || slices.Contains(essential, f.Name) {
					t.Run(f.Name, func(t *testing.T) { sameAsReference(t, e, s, f) })
				}
			}
		})
	}
}

func sameAsReference(t *testing.T, e *Engine, s engine.Session, f tinytest.Feature) {
	m := random(t, f.Spec)
	if err := e.Prepare(limited(t), m, func(string) {}); f.Spec.RotaryDim == 24 {
		if fault.Of(err) != fault.UnknownArch {
			t.Errorf("a part of a head that ONNX Runtime does not rotate: %v", err)
		}
		return
	} else if err != nil {
		t.Fatal(err)
	}
	enginetest.Load(t, s, m)
	defer func() { check.Also(t, s.Unload(limited(t))) }()
	prompts := f.Prompts()
	if e.config.backend() == WebGPU {
		prompts = prompts[3:] // the longest, and one of usual length
	}
	for _, a := range tinytest.Answers(t, tinytest.Random(t, f.Spec), prompts, 32) {
		if got, _ := ids(t, s, a.Text, 32); !slices.Equal(got, a.Out) {
			t.Errorf("%s: ids %v,\nwant %v", a.Name, got, a.Out)
		}
	}
}
