package huggingface

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/hffolder"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/reference"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
	"llmparity/native/protocol"
)

func TestMain(m *testing.M) { childtest.Main(m) }

// home is the cache that has the environment.
var home = cache.Dir(os.Getenv)

func newEngine(t testing.TB, change ...func(*Config)) *Engine {
	t.Helper()
	c := Config{Cache: home, Threads: 1}
	t.Setenv(cache.Variable, t.TempDir()) // where folders go
	for _, set := range change {
		set(&c)
	}
	if _, err := c.find(t.Context()); err != nil {
		t.Fatalf("%v", err)
	}
	return New(c)
}

// loaded opens a session and loads a model.
func loaded(t testing.TB, e *Engine, m models.Model) (engine.Session, *enginetest.Probe) {
	t.Helper()
	check.Err(t, e.Check(t.Context(), m))
	check.Err(t, e.Prepare(t.Context(), m, func(s string) { t.Log(s) }))
	s, p := enginetest.Open(t, e)
	enginetest.Load(t, s, m)
	return s, p
}

// say returns what an engine answers.
func say(t testing.TB, s engine.Session, prompt string, n int) (ids []int, u record.Usage) {
	t.Helper()
	u, err := s.Generate(t.Context(), engine.Request{Prompt: prompt, MaxTokens: n, IgnoreEOS: true},
		func(k record.Token) { ids = append(ids, k.ID) })
	check.Err(t, err)
	return ids, u
}

// thorough is for tests that make test does not need beside the others: each start of Python imports torch, which takes
// ten seconds.
func thorough(t *testing.T) {
	t.Helper()
	if !check.Slow {
		t.Skip("a thorough test")
	}
}

func TestConformance(t *testing.T) {
	thorough(t)
	c := enginetest.Tiny(t, 32)[1]
	c.New = func(t *testing.T) engine.Engine { return newEngine(t) }
	enginetest.Run(t, c)
}

// The engine answers all prompts as the reference, and says what it holds: weights and KV cache to the byte.
func TestReference(t *testing.T) {
	cases := enginetest.Tiny(t, 64)
	s, p := loaded(t, newEngine(t), cases[0].Model)
	f, err := gguf.Open(cases[0].Model.Path)
	check.Err(t, err)
	defer f.Close()
	a, err := f.Architecture()
	check.Err(t, err)
	longest := 0
	for _, c := range cases {
		ids, u := say(t, s, c.Prompt, 64)
		longest = max(longest, len(c.PromptIDs))
		if !slices.Equal(ids, c.Expected) || !slices.Equal(u.PromptIDs, c.PromptIDs) || u.Text != c.Text {
			t.Errorf("%.40q: %v and then %v %q, want %v and then %v %q", c.Prompt, u.PromptIDs, ids, u.Text, c.PromptIDs,
				c.Expected, c.Text)
		}
		// The last token is not computed, and so not in the cache.
		kv := 2 * 4 * a.BlockCount * a.HeadCountKV * a.HeadDim * (len(c.PromptIDs) + 63)
		v := p.Values(t, protocol.MethodTensors)
		if v["kv_used_bytes"] != float64(kv) {
			t.Errorf("%.40q: KV cache of %v bytes, want %d", c.Prompt, v["kv_used_bytes"], kv)
		}
		// The longest prefill so far had four hidden states, the rotation and three tensors of the feed-forward part;
		// a short one less than two copies of the logits.
		work := max(4*longest*(4*a.EmbeddingLength+2*a.HeadDim+3*a.FeedForwardLength), 8*512)
		if off := v["workspaces_bytes"]/float64(work) - 1; math.Abs(off) > 0.1 {
			t.Errorf("%.40q: intermediate tensors of %v bytes, want about %d", c.Prompt, v["workspaces_bytes"], work)
		}
	}
	weights := int64(0)
	for _, tensor := range f.Tensors {
		weights += tensor.Size
	}
	if v := p.Values(t, protocol.MethodTensors); v["weights_bytes"] != float64(weights) {
		t.Errorf("weights of %v bytes, want %d", v["weights_bytes"], weights)
	}
	info := p.Engine()
	for name, want := range map[string]string{"threads": "1", "weights_dtype": "f32", "kv_dtype": "f32",
		"device": "cpu", "context": "1024", "compile": "off"} {
		if info.Policy[name] != want {
			t.Errorf("policy %s is %q, want %q", name, info.Policy[name], want)
		}
	}
	if info.Name != Name || !strings.Contains(info.Version, "torch") || info.Parts["runner"] != runnerSHA256 {
		t.Errorf("%+v", info)
	}
	if w := p.Warnings(); len(w) > 0 {
		t.Errorf("warnings: %v", w)
	}
}

// Every architecture gives the reference's tokens.
func TestArchitectures(t *testing.T) {
	thorough(t)
	const window, n = 512, 32
	s, _ := enginetest.Open(t, newEngine(t)) // a process for all: importing torch takes seconds
	for _, feature := range tinytest.Features() {
		t.Run(feature.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.gguf")
			check.Err(t, tiny.WriteRandomFile(t.Context(), path, feature.Spec))
			m, err := models.Open(t.Context(), path, window)
			check.Err(t, err)
			check.Err(t, newEngine(t).Check(t.Context(), m))
			enginetest.Load(t, s, m)
			defer func() { check.Also(t, s.Unload(t.Context())) }()
			tokenizer, want, err := reference.Open(path)
			check.Err(t, err)
			want.Context(window)
			for _, p := range feature.Prompts() {
				prompt := tokenizer.Prompt(p.Text)
				expected, _, err := want.Greedy(prompt, n)
				check.Err(t, err)
				if ids, u := say(t, s, p.Text, n); !slices.Equal(ids, expected) || !slices.Equal(u.PromptIDs, prompt) {
					t.Errorf("%s: %v and then %v, want %v and then %v", p.Name, u.PromptIDs, ids, prompt, expected)
				}
			}
		})
	}
}

// A folder is run as it is, and in other dtypes and with another attention.
func TestFolder(t *testing.T) {
	thorough(t)
	c := enginetest.Tiny(t, 16)[1]
	dir := filepath.Join(t.TempDir(), "Tiny-Model")
	_, err := hffolder.Write(t.Context(), c.Model.Path, dir)
	check.Err(t, err)
	m, err := models.Finder{}.Find(t.Context(), dir, 512)
	check.Err(t, err)
	for _, dtype := range []string{"f32", "bf16"} {
		s, p := loaded(t, newEngine(t, func(c *Config) { c.DType, c.Attention = dtype, "eager" }), m)
		ids, _ := say(t, s, c.Prompt, 16)
		if dtype == "f32" && !slices.Equal(ids, c.Expected) {
			t.Errorf("%v, want %v", ids, c.Expected)
		}
		info := p.Engine()
		if info.Policy["weights_dtype"] != dtype || info.Policy["attention"] != "eager" ||
			info.Policy["context"] != "512" {
			t.Errorf("%+v", info.Policy)
		}
		check.Err(t, s.Close())
	}
}

// Requests that come together are one batch, and each gets its own answer.
func TestBatch(t *testing.T) {
	thorough(t)
	cases := enginetest.Tiny(t, 24)[:4]
	s, _ := loaded(t, newEngine(t, func(c *Config) { c.Slots = 4 }), cases[0].Model)
	var all sync.WaitGroup
	firsts := make([]time.Time, len(cases))
	for i, c := range cases {
		all.Go(func() {
			var ids []int
			_, err := s.Generate(t.Context(), engine.Request{Prompt: c.Prompt, MaxTokens: 24 - i, IgnoreEOS: true},
				func(k record.Token) {
					if ids = append(ids, k.ID); len(ids) == 1 {
						firsts[i] = k.At
					}
				})
			if err != nil || !slices.Equal(ids, c.Expected[:24-i]) {
				t.Errorf("%.40q: %v, %v, want %v", c.Prompt, ids, err, c.Expected[:24-i])
			}
		})
	}
	all.Wait()
	for _, at := range firsts {
		if !at.Equal(firsts[0]) {
			t.Errorf("first tokens at %v: they are of several batches", firsts)
		}
	}
}

func TestConformanceOfBatches(t *testing.T) {
	thorough(t)
	c := enginetest.Tiny(t, 32)[1]
	c.Slots = 3
	c.New = func(t *testing.T) engine.Engine { return newEngine(t, func(c *Config) { c.Slots = 3 }) }
	enginetest.Run(t, c)
}

// The sampler's PSS is that of psutil, within 1%.
func TestPSSAgreesWithPsutil(t *testing.T) {
	thorough(t)
	e := newEngine(t)
	s, p := loaded(t, e, enginetest.TinyModel(t))
	say(t, s, "the clock", 8)
	pids := p.PIDs("engine")
	if len(pids) == 0 {
		t.Fatal("no process is sampled")
	}
	ours, theirs := 0.0, 0.0
	for _, pid := range pids {
		reading := record.NewSample()
		for _, source := range p.Attached() {
			if d := source.Describe(); d.PID == pid && d.Method == record.MethodSmapsRollup {
				check.Err(t, source.Read(t.Context(), &reading))
			}
		}
		ours += float64(reading.PSS)
		out, err := exec.CommandContext(t.Context(), e.found.python, "-c",
			"import psutil, sys; print(psutil.Process(int(sys.argv[1])).memory_full_info().pss)", strconv.Itoa(pid)).Output()
		check.Err(t, err)
		n, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		check.Err(t, err)
		theirs += n
	}
	t.Logf("PSS %.1f MiB, psutil %.1f", ours/record.MiB, theirs/record.MiB)
	if ours < 100*record.MiB || math.Abs(ours/theirs-1) > 0.01 {
		t.Errorf("PSS is %.0f bytes, psutil says %.0f", ours, theirs)
	}
}

func TestTrouble(t *testing.T) {
	t.Run("Python without torch", func(t *testing.T) {
		bare := filepath.Join(t.TempDir(), "bare")
		if out, err := exec.Command("python3", "-m", "venv", "--without-pip", bare).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		e := New(Config{Python: filepath.Join(bare, "bin", "python")})
		enginetest.OneLine(t, e.Check(t.Context(), enginetest.TinyModel(t)), fault.NoPython, record.SetUp,
			"has no torch (--huggingface-python)")
		e = New(Config{Python: "/bin/true"})
		enginetest.OneLine(t, e.Check(t.Context(), enginetest.TinyModel(t)), fault.NoPython, record.SetUp,
			"it is not Python")
		t.Setenv("PATH", filepath.Join(bare, "bin"))
		e = New(Config{Cache: t.TempDir()})
		enginetest.OneLine(t, e.Check(t.Context(), enginetest.TinyModel(t)), fault.NoPython, record.SetUp,
			"run scripts/setup huggingface")
	})
	t.Run("folder without tokenizer", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "x")
		_, err := hffolder.Write(t.Context(), enginetest.TinyModel(t).Path, dir)
		check.Err(t, err)
		check.Err(t, os.Remove(filepath.Join(dir, "tokenizer.json")))
		_, err = models.Finder{}.Find(t.Context(), dir, 0)
		if fault.Of(err) != fault.BadModel || !strings.Contains(err.Error(), "has no tokenizer; download") {
			t.Errorf("%v", err)
		}
	})
	t.Run("prompt too long", func(t *testing.T) {
		s, _ := loaded(t, newEngine(t), enginetest.TinyModel(t))
		_, err := s.Generate(t.Context(), engine.Request{Prompt: "a b c", MaxTokens: 5000}, func(record.Token) {})
		enginetest.OneLine(t, err, fault.PromptTooLong, record.SetUp)
		if ids, _ := say(t, s, "a b c", 4); len(ids) != 4 {
			t.Errorf("%v", ids)
		}
	})
	t.Run("a GPU that is not here", func(t *testing.T) {
		thorough(t)
		_, p := enginetest.Open(t, newEngine(t, func(c *Config) { c.Device = "cuda" }))
		if d := p.Device(); d == nil || d.Class == record.CPU && !d.Missed() {
			t.Errorf("%+v", d)
		}
	})
}
