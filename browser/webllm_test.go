package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/assets/page"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/tiny/reference"
)

func TestWebLLM(t *testing.T) { conformance(t, PageThread) }

// conformance holds the engine against the suite.
func conformance(t *testing.T, thread Thread) {
	c, m := tinyModel(t)
	tokens, model, err := reference.Open(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	const prompt = "The third clock had stopped, and nobody asked what time it was."
	ids := tokens.Encode(prompt)
	expected, _, err := model.Greedy(ids, 24)
	if err != nil {
		t.Fatal(err)
	}
	c.Thread = thread
	enginetest.Run(t, enginetest.Case{
		New:   func(*testing.T) engine.Engine { return New(c) },
		Model: m, Prompt: prompt, PromptIDs: ids, Expected: expected,
	})
}

func TestEnginePassesTheStagesOfALoadInOrder(t *testing.T) {
	loaded(t)
	var last time.Time
	spans := shared.probe.Spans()
	for i, s := range spans {
		if s.Name != stageNames[i].name {
			t.Errorf("stage %d is %s, want %s", i, s.Name, stageNames[i].name)
		}
		if !last.IsZero() && !s.Begin.Equal(last) {
			t.Errorf("stage %s begins %v after the end of the one before", s.Name, s.Begin.Sub(last))
		}
		last = s.End
	}
	if len(spans) != len(stageNames) {
		t.Errorf("%d stages, want %d", len(spans), len(stageNames))
	}
}

// A second generation is refused at once, and the first one goes on as if nothing had been.
func TestOneGenerationAtATime(t *testing.T) {
	s := loaded(t)
	r := engine.Request{Prompt: "the quick brown fox", MaxTokens: 48, IgnoreEOS: true}
	say := func(on func(record.Token)) (ids []int) {
		t.Helper()
		_, err := s.Generate(watched(t), r, func(tok record.Token) {
			ids = append(ids, tok.ID)
			on(tok)
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	alone := say(func(record.Token) {})
	refused := 0
	first := say(func(tok record.Token) {
		if tok.Index%16 != 2 {
			return
		}
		refused++
		if _, err := s.Generate(watched(t),
			r, func(record.Token) { t.Error("a token of the second generation came") }); !errors.Is(
			err, engine.ErrBusy) {
			t.Errorf("a second generation: %v, want %v", err, engine.ErrBusy)
		}
	})
	if refused != 3 || len(first) != r.MaxTokens || !slices.Equal(first, alone) {
		t.Errorf("%d were refused; the first said %v, and alone it says %v", refused, first, alone)
	}
	if err := s.Load(watched(t), engine.Model{}); !errors.Is(err, errLoaded) {
		t.Errorf("a second Load: %v, want %v", err, errLoaded)
	}
	if again := say(func(record.Token) {}); !slices.Equal(again, alone) {
		t.Errorf("after a Load that was refused it says %v, and before %v", again, alone)
	}
}

func TestPromptThatIsTooLongIsCounted(t *testing.T) {
	s := loaded(t)
	r := engine.Request{Prompt: "the quick brown fox", MaxTokens: 1, IgnoreEOS: true}
	u, err := s.Generate(watched(t), r, func(record.Token) {})
	if err != nil {
		t.Fatal(err)
	}
	// One token too many.
	r.MaxTokens = window - len(u.PromptIDs) + 1
	_, err = s.Generate(watched(t), r, func(record.Token) { t.Error("a token came") })
	if fault.Of(err) != fault.PromptTooLong {
		t.Errorf("error %v, want PromptTooLong", err)
	}
}

func TestBrokenPackagesAreExplained(t *testing.T) {
	_, m := tinyModel(t)
	right := files.pack
	noWasm := right
	noWasm.Library.Path = filepath.Join(t.TempDir(), "library.wasm")
	if err := os.WriteFile(noWasm.Library.Path, []byte("this is no wasm"), 0o600); err != nil {
		t.Fatal(err)
	}
	noWeights, noName := copyOf(t, right), copyOf(t, right)
	if err := os.Remove(filepath.Join(noWeights.Dir, "params_shard_0.bin")); err != nil {
		t.Fatal(err)
	}
	rename(t, filepath.Join(noName.Dir, "tensor-cache.json"), "model.norm.weight", "model.form.weight")

	var offered Package
	s, _ := idle(t)
	s.webllm.config.Package = func(context.Context, engine.Model, Target, func(string)) (
		Package, error) {
		return offered, nil
	}
	for _, x := range []struct {
		Package
		class record.Class
		say   string
	}{
		{noWasm, record.Other, "WebAssembly"},
		{noWeights, record.Download, "params_shard_0.bin"},
		// TVM's words, said before the wasm aborts
		{noName, record.Crash, "Cannot find parameter in cache: model.norm.weight"},
	} {
		offered = x.Package
		clear(s.webllm.packages)
		err := s.Load(watched(t), m)
		if err == nil || !strings.Contains(err.Error(), x.say) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line with %s", err, x.say)
		}
		if engine.ClassOf(err) != x.class {
			t.Errorf("class %s of %v, want %s", engine.ClassOf(err), err, x.class)
		}
		if err == nil || !strings.Contains(err.Error(), page.WebLLM) {
			t.Errorf("error %v does not name WebLLM's version", err)
		}
	}
	// What failed is cleared away: the same page can load the right one.
	offered = right
	clear(s.webllm.packages)
	if err := s.Load(watched(t), m); err != nil {
		t.Errorf("after failed loads: %v", err)
	}
}

func copyOf(t *testing.T, p Package) Package {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "package")
	if err := os.CopyFS(dir, os.DirFS(p.Dir)); err != nil {
		t.Fatal(err)
	}
	p.Dir = dir
	return p
}

func rename(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s does not hold %s", path, from)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), from, to)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnotherShapeOfWebLLMIsRefused(t *testing.T) {
	_, m := tinyModel(t)
	s, _ := idle(t)
	_, err := call[any](watched(t), s.tab, `import("./dist/web-llm.js").then((m) => {
		const reload = m.MLCEngine.prototype.reload;
		globalThis.restore = () => { m.MLCEngine.prototype.reload = reload; };
		m.MLCEngine.prototype.reload = async function (id) {
			await reload.call(this, id);
			this.loadedModelIdToPipeline.get(id).processNextToken = undefined;
		};
	})`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := call[any](watched(t), s.tab, "restore()"); err != nil {
			t.Error(err)
		}
	}()
	err = s.Load(watched(t), m)
	if err == nil || !strings.Contains(err.Error(), "processNextToken") || !strings.Contains(err.Error(), page.WebLLM) {
		t.Errorf("error %v, want one that names what is missing and WebLLM's version", err)
	}
}

// WebGPU frees a destroyed buffer some time later; Unload must not return before.
func TestUnloadReturnsWhenBuffersAreFreed(t *testing.T) {
	const size = 200 << 20
	_, m := tinyModel(t)
	s, probe := idle(t)
	if err := s.Load(watched(t), m); err != nil {
		t.Fatal(err)
	}
	if _, err := call[any](watched(t), s.tab, fmt.Sprintf(`navigator.gpu.requestAdapter().then(async (a) => {
		const d = await a.requestDevice({ requiredLimits: { maxBufferSize: %d } });
		const b = d.createBuffer({ size: %[1]d, usage: GPUBufferUsage.COPY_DST });
		const part = new Uint8Array(4 << 20).fill(1);
		for (let at = 0; at < b.size; at += part.length) d.queue.writeBuffer(b, at, part);
		await d.queue.onSubmittedWorkDone();
	})`, size)); err != nil {
		t.Fatal(err)
	}
	full := private(t, probe, "gpu-process")
	if err := s.Unload(watched(t)); err != nil {
		t.Fatal(err)
	}
	if freed := full - private(t, probe, "gpu-process"); freed < size*9/10 {
		t.Errorf("of %d MiB, %d are free after Unload", size>>20, freed>>20)
	}
}

// private reads the memory that a process shares with nobody.
func private(t *testing.T, probe *enginetest.Probe, role string) int64 {
	t.Helper()
	for _, source := range probe.Attached() {
		sample := record.NewSample()
		if source.Describe().Role != role {
			continue
		}
		if err := source.Read(t.Context(), &sample); err != nil {
			t.Fatal(err)
		}
		if sample.USS != record.Absent {
			return sample.USS
		}
	}
	t.Fatalf("no source reads the private memory of the %s", role)
	return 0
}

func TestCloseFreesThePortAndNothingIsAttachedAfterIt(t *testing.T) {
	c, _ := tinyModel(t)
	s, probe := fresh(t, c)
	nothingIsAttached(t, s, probe)
	address := s.tab.server.base
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	if r, err := http.Get(address + "/"); err == nil {
		r.Body.Close()
		t.Error("the server still answers")
	}
	if err := s.Unload(watched(t)); !errors.Is(err, errClosed) {
		t.Errorf("Unload after Close: %v, want %v", err, errClosed)
	}
}

// nothingIsAttached closes what a session samples while it attaches more, as a Close may come at any time.
func nothingIsAttached(t *testing.T, s *session, probe *enginetest.Probe) {
	t.Helper()
	done := make(chan error)
	go func() { done <- s.tab.attach(watched(t), probe) }()
	s.tab.processes.detach() // before, while or after
	<-done
	if err := s.tab.attach(watched(t), probe); !errors.Is(err, errClosed) {
		t.Errorf("attaching to a closed session: %v, want %v", err, errClosed)
	}
	if n := len(probe.Attached()); n != 0 {
		t.Errorf("%d sources are attached after Close", n)
	}
}

func TestOpenThatIsCancelledLeavesNothing(t *testing.T) {
	c, _ := tinyModel(t)
	before := leftBehind() // the shared browser
	for _, after := range []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		s, err := New(c).Open(ctx, &enginetest.Probe{})
		cancel()
		switch {
		case err == nil: // it was faster
			if err := s.Close(); err != nil {
				t.Errorf("after %v: Close: %v", after, err)
			}
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("after %v: %v, want a context error", after, err)
		}
		for _, left := range leftBehind() {
			if !slices.Contains(before, left) {
				t.Errorf("after %v: left behind: %s", after, left)
			}
		}
	}
}
