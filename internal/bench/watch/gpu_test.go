package watch_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/internal/bench/watch"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/check"
)

// The process is real; the GPU and its memory are faked files of the kernel.
func TestGPUMemoryOfProcess(t *testing.T) {
	cmd, _ := sleeper(t)
	pid := strconv.Itoa(cmd.Process.Pid)
	const device = "class/drm/card0/device/"
	sys := check.Tree(t, t.TempDir(), map[string]string{device +
		"uevent": "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0\n",
		device + "drm/renderD128/dev": "226:128\n",
		device + "mem_info_vram_used": "104857600\n", device + "mem_info_vram_total": "1073741824\n",
		device + "gpu_busy_percent": "12\n"})
	proc := check.Tree(t, t.TempDir(), map[string]string{pid + "/fd/0": "", pid + "/fd/7": "-> /dev/dri/renderD128",
		pid + "/fdinfo/7": "drm-driver:\tamdgpu\ndrm-client-id:\t1\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t5 MiB\n"})
	m := gpu.Open(t.Context(), gpu.Options{Sys: sys, Proc: proc})
	defer m.Close()
	path := filepath.Join(t.TempDir(), "out.gpu.csv")
	rows, err := watch.Create(path, "a,b", watch.GPUColumns, false)
	check.Err(t, err)
	sum, err := watch.Run(t.Context(), watch.Options{PIDs: []int{cmd.Process.Pid}, Interval: 50 * time.Millisecond,
		Duration: 1500 * time.Millisecond,
		GPU:      m, GPURows: rows, Say: func(string) {}})
	if err != nil || rows.Close() != nil {
		t.Fatal(err)
	}
	text := check.Read(t, path)
	all, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(all) != sum.GPURows+1 || strings.Join(all[0], ",") != watch.GPUColumns {
		t.Fatalf("%d rows, summary %d, %v", len(all), sum.GPURows, err)
	}
	for _, want := range [][]string{{"a,b", pid, "", "sleep", "drm_fdinfo", "gpu_memory_bytes", "5242880"},
		{"a,b", "", "", "gpu0", "drm_sysfs", "memory_used_bytes", "104857600"}} {
		if !slices.ContainsFunc(all[1:], func(row []string) bool {
			row = slices.Clone(row[1:])
			if started := row[2] != ""; started != (want[1] != "") {
				return false
			}
			row[2] = ""
			return slices.Equal(row, want)
		}) {
			t.Errorf("no row %q in\n%s", want, text)
		}
	}
	if words := strings.Join(sum.Lines(), "\n"); !strings.Contains(words,
		"GPU memory of the processes: 5.0 MiB (total, by drm_fdinfo)") {
		t.Errorf("the summary lacks it:\n%s", words)
	}
}

// GPU tools that we run are not part of the command.
func TestGPUToolsAreNotWatched(t *testing.T) {
	sys, dir, asked := check.Tree(t, t.TempDir(), map[string]string{"class/kfd/kfd/dev": "510:0\n"}), t.TempDir(),
		filepath.Join(t.TempDir(), "asked")
	script := fmt.Sprintf("#!/bin/sh\necho x >>%s\nsleep 0.3\n"+
		`echo '{"card0": {"VRAM Total Memory (B)": "1000000", "VRAM Total Used Memory (B)": "1000", "GPU use (%%)": "5"}}'`+"\n", asked)
	check.Err(t, os.WriteFile(filepath.Join(dir, "rocm-smi"), []byte(script), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	m := gpu.Open(t.Context(), gpu.Options{Sys: sys, Proc: t.TempDir()})
	defer m.Close()
	if len(m.GPUs) != 1 {
		t.Fatalf("%+v", m.Warnings)
	}
	var out bytes.Buffer
	c, err := watch.Start([]string{"sleep", "6"}, nil, &out, &out)
	check.Err(t, err)
	sum, err := watch.Run(t.Context(), watch.Options{Command: c, Interval: 20 * time.Millisecond, GPU: m,
		Say: func(string) {}})
	check.Err(t, err)
	text, err := os.ReadFile(asked)
	if err != nil || bytes.Count(text, []byte("x")) < 2 {
		t.Fatalf("the tool did not run while the command was watched: %q, %v", text, err)
	}
	if sum.Processes != 1 {
		t.Errorf("%d processes were watched", sum.Processes)
	}
}
