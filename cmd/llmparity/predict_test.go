package main

import (
	"cmp"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/estimate"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/tiny"
	"llmparity/internal/tiny/reference"
	"llmparity/native/llamacpp"
)

// What is foretold of a run of the real llama.cpp is what its log says of its buffers, and its settings have the same
// names and values as those that it tells itself.
func TestWhatIsForetoldIsWhatLlamaCppHas(t *testing.T) {
	cmd := program(t, "run", "-q", "--engines", "llamacpp", "--repetitions", "1", "--max-tokens", "8", "--context",
		"1024",
		"--llamacpp-ubatch", "128", "--llamacpp-flash-attention", "on", "--llamacpp-cache-type-v", "f16",
		"--no-check-oom")
	if _, stderr, code := output(t, cmd); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	r, err := record.Open(filepath.Join(cmd.Dir, "results", "latest"))
	if err != nil {
		t.Fatal(err)
	}
	if resolved(t, r.Dir).ChecksOOM() {
		t.Error("the plan doesn't say that nothing is refused")
	}
	p, a := r.Predictions[1], r.Attempts[len(r.Attempts)-1]
	foreseen(t, r, a)
	if part, ok := p.Part(estimate.Increase); !ok || part.Best <= 0 || !strings.Contains(part.Method, "mmap on") ||
		!strings.Contains(part.Method, "repacking off") {
		t.Errorf("increase: %+v", part)
	}
	info, _ := a.Engine()
	for _, name := range []string{"context", "kv_dtype", "weights_dtype", "flash_attention", "mmap", "ubatch",
		"gpu_layers", "repacking"} {
		if p.Setup[name] == "" || p.Setup[name] != info.Policy[name] {
			t.Errorf("%s: %q was taken for granted, the engine says %q", name, p.Setup[name], info.Policy[name])
		}
	}
}

// foreseen holds what was foretold of weights and KV cache against what an attempt's ledger or log says, and what was
// taken for granted against what the engine says of itself.
func foreseen(t *testing.T, r *record.Run, a *record.Attempt) {
	t.Helper()
	p, ok := r.Predictions[a.Cell]
	if !ok || p.Absent != "" || r.Risks[a.Cell].Level != record.RiskLow {
		t.Errorf("cell %d: %+v, %+v", a.Cell, p, r.Risks[a.Cell])
		return
	}
	method := map[string]string{browser.Name: "webgpu_ledger",
		llamacpp.Name: llamacpp.EngineLog}[r.CellByID(a.Cell).Engine]
	for name, value := range map[string]string{estimate.Weights: "weights_bytes",
		estimate.KVReserved: "kv_reserved_bytes", estimate.KVUsed: "kv_used_bytes"} {
		part, _ := p.Part(name)
		told := a.AtEdge(record.Measure, method, value)
		if len(told) != 1 {
			t.Errorf("cell %d, %s: %v is told", a.Cell, value, told)
		}
		for _, bytes := range told {
			if math.Abs(float64(part.Best)-bytes) > 0.01*bytes {
				t.Errorf("cell %d, %s: %d bytes are foretold, %s says %.0f", a.Cell, name, part.Best, method, bytes)
			}
		}
	}
	info, _ := a.Engine()
	for name, granted := range p.Setup {
		if told, ok := info.Policy[name]; ok && told != granted {
			t.Errorf("cell %d, %s: %q was taken for granted, the engine says %q", a.Cell, name, granted, told)
		}
	}
	if part, ok := p.Part(estimate.Increase); !ok || part.Best <= 0 {
		t.Errorf("cell %d: increase %+v", a.Cell, part)
	}
}

// What won't fit on any machine is not launched, and the run says so; its record can be read and reported.
func TestWhatWontFitIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wide.gguf")
	// 256 GiB of keys and values
	spec := tiny.Spec{Layers: 2, Hidden: 64, Heads: 64, KVHeads: 64, HeadDim: 256, FFN: 64, Vocab: 512,
		Context: 1 << 20}
	if err := tiny.WriteRandomFile(t.Context(), path, spec); err != nil {
		t.Fatal(err)
	}
	cmd := program(t, "run", "--engines", "llamacpp", "--model", path, "--context", "0", "--repetitions", "1")
	out, stderr, code := output(t, cmd)
	if code != int(fault.WontFit) || !strings.Contains(
		stderr, "llamacpp: prompt 1 is refused: it would run out of memory") ||
		!strings.Contains(lastLine(stderr), "--no-check-oom launches it all the same") {
		t.Fatalf("exit code %d\n%s%s", code, out, stderr)
	}
	latest := filepath.Join(cmd.Dir, "results", "latest")
	r, err := record.Open(latest)
	if err != nil {
		t.Fatal(err)
	}
	risk := r.Risks[1]
	if !risk.Refused || risk.Level != record.RiskHigh || len(r.Attempts) != 0 || len(risk.Recommendations) == 0 ||
		risk.Places[0].Name != estimate.RAM {
		t.Errorf("%d attempts, %+v", len(r.Attempts), risk)
	}
	if p := resolved(t, latest); !p.ChecksOOM() {
		t.Error("the plan says that nothing was checked")
	}
	if out, stderr, code := output(t, program(t, "report", latest)); code != 0 {
		t.Errorf("report: exit code %d\n%s%s", code, out, stderr)
	}
	_, stderr, code = output(t, program(t, "run", "--no-check-oom=perhaps"))
	if code != int(fault.Usage) || !strings.Contains(stderr, "no-check-oom") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// strange is an engine of which nobody knows how it has memory.
type strange struct{ engine.Engine }

func (strange) Name() string { return "exec:strange" }

func TestWhatIsKnownOfModelsThatOthersHave(t *testing.T) {
	small, err := tinyModel(512)
	if err != nil {
		t.Fatal(err)
	}
	cell := record.Cell{ID: 3, Engine: "exec:strange", Prompt: "The quick brown fox", MaxTokens: 8}
	f := newForetelling([]engine.Engine{strange{}}, small)
	p := f.foretell(context.Background(), cell)
	weights, _ := p.Part(estimate.Weights)
	if weights.Best != small.WeightsB || weights.Confidence != "low" || len(p.Parts) != 3 || p.Setup["mmap"] != "" {
		t.Errorf("%+v", p)
	}
	if r := f.judge(context.Background(), p, nil); r.Level != record.RiskUnknown || len(r.Reasons) == 0 {
		t.Errorf("%+v", r)
	}
	served, _ := servedModel("served:nobody", 512)
	f = newForetelling([]engine.Engine{strange{}}, served)
	if p := f.foretell(context.Background(), cell); !strings.Contains(p.Absent, "no file") {
		t.Errorf("%+v", p)
	}
	gone := small
	gone.Path = filepath.Join(t.TempDir(), "gone.gguf")
	f = newForetelling([]engine.Engine{strange{}}, gone)
	if p := f.foretell(context.Background(), cell); !strings.Contains(p.Absent, "gone.gguf") {
		t.Errorf("%+v", p)
	}
	broken := gone
	if err := os.WriteFile(broken.Path, []byte("GGUF\x03\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if p := newForetelling([]engine.Engine{strange{}}, broken).foretell(context.Background(), cell); p.Absent == "" {
		t.Errorf("%+v", p)
	}
}

// Weights are laid out anew by llama.cpp, not by whoever else reads the same file.
func TestOthersLayNothingOutAnew(t *testing.T) {
	f := newForetelling([]engine.Engine{strange{}}, engine.Model{Path: "q4.gguf", Model: record.Model{Format: "gguf"}})
	m, err := estimate.FromNumbers(estimate.Numbers{Layers: 4, Hidden: 512, Heads: 8, HeadDim: 64, Intermediate: 1024,
		Vocab: 1000})
	if err != nil {
		t.Fatal(err)
	}
	m.Stored, m.Matrices = map[string]int64{"q4_0": 9 * record.MiB}, map[string]int64{"q4_0": 8 * record.MiB}
	f.models["q4.gguf"] = m
	p := f.foretell(t.Context(), record.Cell{ID: 1, Engine: "exec:strange", Prompt: "a", MaxTokens: 8})
	if weights, _ := p.Part(estimate.Weights); weights.Best != 9*record.MiB {
		t.Errorf("%+v", p)
	}
}

// Where there is no room for what is asked for, a launch says so in words of its own; what is foretold is of what there
// is room for.
func TestForecastsOfMoreThanThereIsRoomFor(t *testing.T) {
	small, err := tinyModel(16)
	if err != nil {
		t.Fatal(err)
	}
	f := newForetelling([]engine.Engine{strange{}}, small)
	for _, c := range []record.Cell{{Prompt: "\xff\xfe", MaxTokens: 1},
		{Prompt: strings.Repeat("\xff", 2*mostText), MaxTokens: 100},
		{Prompt: strings.Repeat("fox ", 100), MaxTokens: 0}} {
		c.Engine = "exec:strange"
		if p := f.foretell(t.Context(), c); p.Absent != "" || len(p.Parts) != 3 {
			t.Errorf("%d bytes, %d tokens: %+v", len(c.Prompt), c.MaxTokens, p)
		}
	}
}

// A prompt's tokens are found once, whatever the engines: the vocabulary of a large model takes a good part of a second
// to read.
func TestTokensAreFoundOnce(t *testing.T) {
	small, err := tinyModel(512)
	if err != nil {
		t.Fatal(err)
	}
	f := newForetelling(nil, small)
	text := strings.Repeat("The quick brown fox ", 1000)
	n, note := f.prompted(text)
	f.texts = func() (*reference.Tokenizer, error) {
		t.Error("they are found again")
		return nil, os.ErrNotExist
	}
	if again, said := f.prompted(text); again != n || said != note || note == "" {
		t.Errorf("%d tokens, %q, and then %d, %q", n, note, again, said)
	}
}

// The tokens of a prompt decide how much of a compute buffer is touched; of a long one a part is looked at.
func TestPromptsAreCounted(t *testing.T) {
	small, err := tinyModel(512)
	if err != nil {
		t.Fatal(err)
	}
	f := newForetelling(nil, small)
	short, note := f.prompted("The quick brown fox jumps over the lazy dog.")
	if short != 25 || note != "" {
		t.Errorf("%d tokens, %q", short, note)
	}
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 10000)
	if n, note := f.prompted(text); n < 200_000 || n > 300_000 || !strings.Contains(note, "in proportion") {
		t.Errorf("%d tokens, %q", n, note)
	}
	other := newForetelling(nil, engine.Model{Model: record.Model{Format: webllmFormat}})
	if n, note := other.prompted("12345678"); n != 2 || note == "" {
		t.Errorf("%d tokens, %q", n, note)
	}
}

func TestBuffersOfAdapters(t *testing.T) {
	for _, c := range []struct {
		whole, bound string
		free         int64
	}{
		{"4294967296", "4294967292", 1 << 30},
		{"1073741824", "1073741824", 1 << 30},
		{"268435456", "134217728", 1 << 27},
		{"1073741824", "536870912", 1 << 27}, // WebLLM asks for a GiB, and where that is too much for little
		{"536870912", "1073741824", 1 << 28},
		{"", "1073741824", 0}, {"x", "y", 0},
	} {
		room, ok := bufferOf(record.Device{Detail: map[string]string{"maxBufferSize": c.whole,
			"maxStorageBufferBindingSize": c.bound}})
		if ok != (c.free > 0) || room.Free != c.free {
			t.Errorf("%q and %q: %+v %v", c.whole, c.bound, room, ok)
		}
	}
}

// A browser that doesn't start is not started again before each cell.
func TestABrowserIsAskedOnceForItsAdapter(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "chrome")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho started >>"+filepath.Join(dir, "starts")+"\nexit 1\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	starts := func() int {
		text, err := os.ReadFile(filepath.Join(dir, "starts"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "started")
	}
	f, w, first := newForetelling(nil, engine.Model{}), browser.New(browser.Config{Chrome: broken}), 0
	for range 3 {
		if room, ok := f.buffer(t.Context(), w, 1<<29); ok {
			t.Errorf("%+v", room)
		}
		n := starts()
		if first = cmp.Or(first, n); n != first {
			t.Errorf("it was started %d times for the first answer, and %d for more", first, n)
		}
	}
}

func TestRoomIsForetoldForTheLongestOfWhatIsAsked(t *testing.T) {
	f := newForetelling(nil, engine.Model{})
	for name, c := range map[string]struct {
		traffic       *record.Traffic
		input, output int
	}{
		"one request": {nil, 16, 8},
		"alike":       {&record.Traffic{Requests: 4}, 16, 8},
		"long ones": {&record.Traffic{Mix: []record.Kind{{InputTokens: 16, MaxTokens: 8},
			{InputTokens: 48, MaxTokens: 4}}}, 48, 4},
		"a trace": {&record.Traffic{Trace: []record.Arrival{{InputTokens: 10, MaxTokens: 90},
			{InputTokens: 20, MaxTokens: 20}}}, 10, 90},
		"a conversation": {&record.Traffic{Turns: 3}, 3*16 + 2*8, 8},
	} {
		input, output, note := f.longest(record.Cell{InputTokens: 16, MaxTokens: 8, Traffic: c.traffic})
		if input != c.input || output != c.output || note != "" {
			t.Errorf("%s: %d and %d (%s), want %d and %d", name, input, output, note, c.input, c.output)
		}
	}
}
