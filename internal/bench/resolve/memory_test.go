package resolve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/browser/webllm"
	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/predict/estimate"
	"llmparity/internal/record"
	"llmparity/native/llamacpp"
)

// strange is an engine whose memory use is unknown.
type strange struct{ engine.Engine }

func (strange) Name() string { return "exec:strange" }

func predictorOf(m models.Model) *predictor {
	e := Engine{Engine: strange{}, Kind: &engine.Kind{}}
	s := &Chosen{Setup: &plan.Setup{}, Model: m, launch: &launch{set: &set{engines: []Engine{e}}}}
	return &predictor{r: &Resolver{cache: cache{}}, s: s, by: map[int]estimatedCell{}}
}

func TestUnknownEngineGetsWeightsAndKVOnly(t *testing.T) {
	small, err := (models.Finder{}).Find(t.Context(), models.Tiny, 512)
	check.Err(t, err)
	cell := record.Cell{ID: 3, Engine: "exec:strange", Prompt: "The quick brown fox", MaxTokens: 8}
	f := predictorOf(small)
	p := f.Predict(context.Background(), cell)
	weights, _ := p.Part(estimate.Weights)
	if weights.Best != small.WeightsB || weights.Confidence != "low" || len(p.Parts) != 3 || p.Setup["mmap"] != "" {
		t.Errorf("%+v", p)
	}
	if r := f.Judge(context.Background(), p, nil); r.Level != record.RiskUnknown || len(r.Reasons) == 0 {
		t.Errorf("%+v", r)
	}
	served, err := (models.Finder{}).Find(t.Context(), "served:nobody", 512)
	check.Err(t, err)
	f = predictorOf(served)
	if p := f.Predict(context.Background(), cell); !strings.Contains(p.Absent, "sizes unknown") {
		t.Errorf("%+v", p)
	}
	gone := small
	gone.Path = filepath.Join(t.TempDir(), "gone.gguf")
	f = predictorOf(gone)
	if p := f.Predict(context.Background(), cell); !strings.Contains(p.Absent, "gone.gguf") {
		t.Errorf("%+v", p)
	}
	broken := gone
	check.Err(t, os.WriteFile(broken.Path, []byte("GGUF\x03\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"),
		0o600))
	if p := predictorOf(broken).Predict(context.Background(), cell); p.Absent == "" {
		t.Errorf("%+v", p)
	}
}

// llama.cpp repacks weights; an unknown engine may not.
func TestUnknownEngineDoesNotRepack(t *testing.T) {
	f := predictorOf(models.Model{Path: "q4.gguf", Model: record.Model{Format: "gguf"}})
	m, err := modelsize.FromNumbers(modelsize.Numbers{Layers: 4, Hidden: 512, Heads: 8, HeadDim: 64, Intermediate: 1024,
		Vocab: 1000})
	check.Err(t, err)
	m.Stored, m.Matrices = map[string]int64{"q4_0": 9 * record.MiB}, map[string]int64{"q4_0": 8 * record.MiB}
	f.r.cache[[3]string{"estimated", "q4.gguf", ""}] = found[estimate.Model]{value: m}
	p := f.Predict(t.Context(), record.Cell{ID: 1, Engine: "exec:strange", Prompt: "a", MaxTokens: 8})
	if weights, _ := p.Part(estimate.Weights); weights.Best != 9*record.MiB {
		t.Errorf("%+v", p)
	}
}

// A launch refuses what does not fit into the context; the prediction covers what does.
func TestPredictsRequestsBeyondContext(t *testing.T) {
	small, err := (models.Finder{}).Find(t.Context(), models.Tiny, 16)
	check.Err(t, err)
	f := predictorOf(small)
	for _, c := range []record.Cell{{Prompt: "\xff\xfe", MaxTokens: 1},
		{Prompt: strings.Repeat("\xff", 16<<10), MaxTokens: 100},
		{Prompt: strings.Repeat("fox ", 100), MaxTokens: 0}} {
		c.Engine = "exec:strange"
		if p := f.Predict(t.Context(), c); p.Absent != "" || len(p.Parts) != 3 {
			t.Errorf("%d bytes, %d tokens: %+v", len(c.Prompt), c.MaxTokens, p)
		}
	}
}

// The length of a prompt decides how much of a compute buffer is used.
func TestPromptsAreCounted(t *testing.T) {
	small, err := (models.Finder{}).Find(t.Context(), models.Tiny, 512)
	check.Err(t, err)
	f := predictorOf(small)
	short, note := f.r.counted(small, "The quick brown fox jumps over the lazy dog.")
	if short != 25 || note != "" {
		t.Errorf("%d tokens, %q", short, note)
	}
	other := models.Model{Model: record.Model{Format: models.WebLLM}}
	if n, note := f.r.counted(other, "12345678"); n != 2 || note == "" {
		t.Errorf("%d tokens, %q", n, note)
	}
}

func TestBuffersOfAdapters(t *testing.T) {
	e := estimate.Estimate{Setup: estimate.Setup{Engine: webllm.Memory}}
	for _, c := range []struct {
		whole, bound string
		free         int64
	}{
		{"4294967296", "4294967292", 1 << 30},
		{"1073741824", "1073741824", 1 << 30},
		{"268435456", "134217728", 1 << 27},
		{"1073741824", "536870912", 1 << 27}, // WebLLM requests 1 GiB, and otherwise little
		{"536870912", "1073741824", 1 << 28},
		{"", "1073741824", 0}, {"x", "y", 0},
	} {
		room := bufferOf(e, record.Device{Detail: map[string]string{"maxBufferSize": c.whole,
			"maxStorageBufferBindingSize": c.bound}})
		if room.Free != c.free {
			t.Errorf("%q and %q: %+v", c.whole, c.bound, room)
		}
	}
}

// A browser that does not start is not started again for each cell.
func TestAdapterIsRequestedOnce(t *testing.T) {
	f, starts := predictorOf(models.Model{}), 0
	cell := estimatedCell{engine: "webllm", device: func(context.Context) (record.Device, error) {
		starts++
		return record.Device{}, errors.New("no browser")
	}}
	for range 3 {
		if room := f.buffer(t.Context(), cell, 1<<29); room.Free > 0 || starts != 1 {
			t.Errorf("%+v, started %d times", room, starts)
		}
	}
}

func TestMemoryIsPredictedForLongestRequest(t *testing.T) {
	f := predictorOf(models.Model{})
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
		cell := record.Cell{InputTokens: 16, MaxTokens: 8, Traffic: c.traffic}
		input, output, note := f.r.longest(models.Model{}, &cell)
		if input != c.input || output != c.output || note != "" {
			t.Errorf("%s: %d and %d (%s), want %d and %d", name, input, output, note, c.input, c.output)
		}
	}
}

// cards fakes a machine with AMD GPUs of the given total and used bytes.
func cards(t *testing.T, memory ...[2]int64) *gpu.Monitor {
	t.Helper()
	o := gpu.Options{Sys: t.TempDir(), Proc: t.TempDir()}
	for i, m := range memory {
		check.Tree(t, filepath.Join(o.Sys, fmt.Sprintf("class/drm/card%d/device", i)), map[string]string{
			"uevent":                                fmt.Sprintf("DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:0%d:00.0\n", i+3),
			fmt.Sprintf("drm/renderD%d/dev", 128+i): fmt.Sprintf("226:%d\n", 128+i),
			"mem_info_vram_total":                   fmt.Sprintln(m[0]), "mem_info_vram_used": fmt.Sprintln(m[1])})
	}
	m := gpu.Open(t.Context(), o)
	t.Cleanup(m.Close)
	return m
}

func TestFreeGPUMemory(t *testing.T) {
	m, err := modelsize.FromNumbers(modelsize.Numbers{Layers: 4, Hidden: 512, Heads: 8, HeadDim: 64, Intermediate: 1024,
		Vocab: 1000})
	check.Err(t, err)
	two := cards(t, [2]int64{64 * record.MiB, 4 * record.MiB}, [2]int64{256 * record.MiB, 6 * record.MiB})
	for name, c := range map[string]struct {
		setup estimate.Setup
		gpus  *gpu.Monitor
		free  int64 // -1: unknown
		level record.RiskLevel
	}{
		"largest GPU": {estimate.Setup{Engine: webllm.Memory, OnGPU: true, DType: "float32"}, two,
			250 * record.MiB, record.RiskLow},
		"layers on all GPUs": {estimate.Setup{Engine: llamacpp.Memory,
			GPULayers: 4}, two, 310 * record.MiB,
			record.RiskLow},
		"too small": {estimate.Setup{Engine: llamacpp.Memory, GPULayers: 4},
			cards(t, [2]int64{24 * record.MiB, 20 * record.MiB}), 4 * record.MiB, record.RiskHigh},
		"no GPU": {estimate.Setup{Engine: llamacpp.Memory,
			GPULayers: 4}, cards(t), -1,
			record.RiskUnknown},
	} {
		c.setup.Context = 512
		e, err := estimate.Of(m, c.setup)
		check.Err(t, err)
		rooms := Rooms(t.Context(), e, c.gpus)
		room, ok := rooms[estimate.VRAM]
		if ok != (c.free >= 0) || ok && room.Free != c.free {
			t.Errorf("%s: %+v (%v), want %d", name, room, ok, c.free)
		}
		if r := e.Risk(rooms); r.Level != c.level {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
