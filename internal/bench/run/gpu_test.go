package run_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// clientPID is above the kernel's limit: no process of this machine has it.
const clientPID = 4194305

// processSource is the cheap source of a process that uses a GPU.
type processSource int

func (pid processSource) Describe() record.Source {
	return record.Source{Role: "server", Method: record.MethodStatm, PID: int(pid), Start: 1, Every: time.Second,
		Sees: "RSS", Blind: "GPUs"}
}

func (processSource) Read(_ context.Context, r *record.Sample) error {
	r.Begin, r.End, r.RSS = time.Now(), time.Now(), 100*record.MiB
	return nil
}

// machineWithGPU fakes a machine with an AMD GPU of which a process holds 5 MiB.
func machineWithGPU(t *testing.T) gpu.Options {
	t.Helper()
	o := gpu.Options{Sys: t.TempDir(), Proc: t.TempDir()}
	const device = "class/drm/card0/device/"
	check.Tree(t, o.Sys, map[string]string{
		device + "uevent":             "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0\n",
		device + "drm/renderD128/dev": "226:128\n",
		device + "mem_info_vram_used": "1000\n", device + "mem_info_vram_total": "9000\n"})
	check.Tree(t, o.Proc, map[string]string{"4194305/fd/0": "", "4194305/fd/7": "-> /dev/dri/renderD128",
		"4194305/fdinfo/7": "drm-driver:\tamdgpu\ndrm-client-id:\t1\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t5 MiB\n"})
	return o
}

// launched runs the engine on a faked machine, without warnings about the real one.
func launched(t *testing.T, g gpu.Options) (r *record.Run) {
	t.Helper()
	o := options(t, &scripted{name: "a", opened: func(p engine.Probe) { p.Attach(processSource(clientPID)) }})
	o.GPU = g
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = do(t, t.Context(), o); err != nil {
			t.Fatal(err)
		}
	})
	r.Warnings = slices.DeleteFunc(r.Warnings,
		func(w record.Warning) bool { return w.Code == "noisy-machine" || w.Code == "memory-reclaimed" })
	return r
}

func TestAttemptsRecordGPUMemory(t *testing.T) {
	r := launched(t, machineWithGPU(t))
	if g := r.Environment.GPUs; len(g) != 1 || g[0].Role != "gpu0" || g[0].Driver != "amdgpu" || g[0].MemoryB != 9000 ||
		len(r.Warnings) != 0 {
		t.Errorf("%+v, warnings %+v", g, r.Warnings)
	}
	var env map[string]any
	text, err := os.ReadFile(filepath.Join(r.Dir, "environment.json"))
	if err != nil || json.Unmarshal(text, &env) != nil || env["gpus"] == nil {
		t.Errorf("environment.json: %s %v", text, err)
	}
	if len(r.Attempts) != 4 {
		t.Fatalf("%d attempts", len(r.Attempts))
	}
	for _, a := range r.Attempts {
		held := a.AtEdge(record.Measure, gpu.Fdinfo, "gpu_memory_bytes")
		used := a.AtEdge(record.Measure, gpu.Sysfs, "memory_used_bytes")
		for id, v := range held {
			if s := a.Sources[id]; v != 5*record.MiB || s.PID != clientPID || s.Role != "server" {
				t.Errorf("%+v: %v", s, v)
			}
		}
		for id, v := range used {
			if s := a.Sources[id]; v != 1000 || s.Role != "gpu0" {
				t.Errorf("%+v: %v", s, v)
			}
		}
		if len(held) != 1 || len(used) != 1 || len(a.Warnings) != 0 {
			t.Errorf("attempt %d: %v %v %+v", a.ID, held, used, a.Warnings)
		}
	}
}
