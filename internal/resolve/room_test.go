package resolve

import (
	"fmt"
	"path/filepath"
	"testing"

	"llmparity/browser/webllm"
	"llmparity/internal/check"
	"llmparity/internal/estimate"
	"llmparity/internal/modelsize"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
	"llmparity/native/llamacpp"
)

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
		"layers on all GPUs": {estimate.Setup{Engine: llamacpp.Memory, GPULayers: 4}, two, 310 * record.MiB,
			record.RiskLow},
		"too small": {estimate.Setup{Engine: llamacpp.Memory, GPULayers: 4},
			cards(t, [2]int64{24 * record.MiB, 20 * record.MiB}), 4 * record.MiB, record.RiskHigh},
		"no GPU": {estimate.Setup{Engine: llamacpp.Memory, GPULayers: 4}, cards(t), -1,
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
