package machine

import (
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
)

// captured returns texts from real machines, some with fewer CPUs.
func captured(t testing.TB, name string) string {
	t.Helper()
	return string(check.Read(t, filepath.Join("testdata", name+".cpuinfo")))
}

func TestProcessors(t *testing.T) {
	for _, c := range []struct {
		file, name, vendor, simd string
		logical, cores           int
		mhz                      float64
	}{
		{"epyc-vm", "AMD EPYC", "AuthenticAMD",
			"sse4_2 avx f16c fma avx2 avx512f avx512bw avx512vl avx512_vnni avx512_bf16", 2, 2, 2596.138},
		{"xeon-vm", "Intel(R) Xeon(R) CPU @ 2.00GHz", "GenuineIntel",
			"sse4_2 avx f16c fma avx2 avx512f avx512bw avx512vl", 2, 1, 2000.186},
		{"sapphire", "Intel(R) Xeon(R) Platinum 8480+", "GenuineIntel",
			"sse4_2 avx f16c fma avx2 avx_vnni avx512f avx512bw avx512vl avx512_vnni avx512_bf16 avx512_fp16 amx_tile amx_int8 amx_bf16", 2, 2, 3800},
		{"pi5", "Cortex-A76 (Raspberry Pi 5 Model B Rev 1.0)", "ARM", "asimd fphp asimdhp asimddp", 2, 0, 0},
		{"phone", "Cortex-A55 + Cortex-A77", "ARM", "asimd fphp asimdhp asimddp", 2, 0, 0},
		{"armv7", "Cortex-A7", "ARM", "neon vfpv4", 2, 0, 0},
		{"graviton", "Neoverse-V1", "ARM", "asimd fphp asimdhp asimddp i8mm bf16 sve svei8mm svebf16", 1, 0, 0},
		{"power9", "POWER9, altivec supported", "", "", 2, 0, 3800},
	} {
		got := parseCPUInfo(captured(t, c.file))
		if got.name() != c.name || got.vendor != c.vendor || got.logical != c.logical || len(got.cores) != c.cores ||
			got.mhz != c.mhz {
			t.Errorf("%s: %q of %q, %d processors, %d cores, %g MHz", c.file, got.name(), got.vendor, got.logical,
				len(got.cores), got.mhz)
		}
		if simd := strings.Join(got.simd(), " "); simd != c.simd {
			t.Errorf("%s: %s", c.file, simd)
		}
		if vm := strings.HasSuffix(c.file, "-vm"); got.flags["hypervisor"] != vm {
			t.Errorf("%s: a virtual machine: %v", c.file, !vm)
		}
	}
}

func TestUnknownCores(t *testing.T) {
	got := parseCPUInfo("processor : 0\nCPU implementer : 0x77\nCPU part : 0x123\n\nprocessor : 1\nCPU implementer : 0x61\nCPU part : 0x999\n")
	if want := "implementer 0x77 part 0x123 + Apple part 0x999"; got.name() != want {
		t.Errorf("%q, want %q", got.name(), want)
	}
	if name := parseCPUInfo("").name(); name != "" {
		t.Errorf("no processor is called %q", name)
	}
}
