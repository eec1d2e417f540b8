package openai

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// deviceWith returns the device of this process on a machine with an AMD GPU, of which it holds some bytes.
func deviceWith(t *testing.T, held string, contained bool) record.Device {
	t.Helper()
	sys, proc := t.TempDir(), t.TempDir()
	check.Tree(t, filepath.Join(sys, "class/drm/card1/device"), map[string]string{
		"uevent":             "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:6861\nPCI_SLOT_NAME=0000:08:00.0\n",
		"drm/renderD128/dev": "226:128\n", "mem_info_vram_used": "17776640\n", "mem_info_vram_total": "17163091968\n",
		"mem_info_gtt_used": "25608192\n", "mem_info_gtt_total": "17163091968\n", "gpu_busy_percent": "12\n"})
	check.Tree(t, filepath.Join(proc, fmt.Sprint(os.Getpid())), map[string]string{"fd/9": "-> /dev/dri/renderD128",
		"fdinfo/9": "drm-driver:\tamdgpu\ndrm-pdev:\t0000:08:00.0\ndrm-client-id:\t5\ndrm-memory-vram:\t" + held + " KiB\n"})
	m := gpu.Open(context.Background(), gpu.Options{Sys: sys, Proc: proc})
	defer m.Close()
	if len(m.GPUs) == 0 {
		t.Fatalf("no GPU: %+v", m)
	}
	return deviceOf(t.Context(), m, []int{os.Getpid()}, contained, record.Device{Class: "unknown"})
}

// A server runs on a GPU if its processes hold GPU memory, else on the CPU; in a container a driver may not show it.
func TestDerivedDevice(t *testing.T) {
	for _, c := range []struct {
		held      string
		contained bool
		class     record.DeviceClass
	}{{"2048", false, record.GPU}, {"2048", true, record.GPU}, {"0", false, record.CPU}, {"0", true, "unknown"}} {
		d := deviceWith(t, c.held, c.contained)
		if d.Class != c.class || (d.Class != "unknown") != (d.Origin == record.DeviceDerived) {
			t.Errorf("%s KiB held, in a container: %v: %+v", c.held, c.contained, d)
		}
	}
}
