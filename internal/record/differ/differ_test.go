package differ_test

import (
	"slices"
	"testing"

	"llmparity/internal/gates"
	"llmparity/internal/record"
	"llmparity/internal/record/differ"
)

// lines are what differs, with what kind it is; a question mark: one side does not know it.
func lines(all []differ.Difference) []string {
	out := []string{}
	for _, d := range all {
		line := string(d.Kind) + " " + d.String()
		if !d.Known {
			line += "?"
		}
		if !d.Figures {
			line += " (idle)"
		}
		out = append(out, line)
	}
	return out
}

func expect(t *testing.T, got []differ.Difference, want ...string) {
	t.Helper()
	if got := lines(got); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestMachines(t *testing.T) {
	desk := record.Environment{OS: "debian 12", Kernel: "6.1", CPU: "A", Cores: 8, MemoryB: 100 << 30, Load1: 0.5,
		Memory:    &record.Memory{HugePages: "madvise", SwapB: 2 << 30},
		Processor: &record.Processor{Turbo: "on", MaxMHz: 4000}, Limits: &record.Limits{CPUs: 2},
		GPUs: []record.GPUInfo{{Name: "X", Driver: "555"}}}
	expect(t, differ.Machines(desk, desk))
	other := desk
	other.MemoryB, other.Load1 = 96<<30, 3
	expect(t, differ.Machines(desk, other), "system load average: 3.0, was 0.5 (idle)")
	other.MemoryB, other.Load1 = 90<<30, 0.5
	expect(t, differ.Machines(desk, other), "machine memory: 90.0 GiB, was 100.0 GiB")
	other = desk
	other.Kernel, other.Memory, other.Limits = "6.2", nil, &record.Limits{}
	other.GPUs = []record.GPUInfo{{Name: "X", Driver: "560"}}
	expect(t, differ.Machines(desk, other), "machine CPU quota: none, was 2 cores", "system OS kernel: 6.2, was 6.1",
		"system GPU driver: 560, was 555", "system huge pages: unknown, was madvise?",
		"system reclaimers of idle memory: unknown, was none?", "system merging of equal pages (KSM): unknown, was off?",
		"system zswap: unknown, was off?", "system swap: unknown, was 2.0 GiB?")
}

// Of what goes with a version or a name, only that is named.
func TestEngines(t *testing.T) {
	info := func(version, sha, origin string, of *record.Library, parts map[string]string) record.EngineInfo {
		return record.EngineInfo{Name: "webllm", Version: version, SHA256: sha, Origin: origin, Library: of,
			Parts: parts}
	}
	ours := func(variant, sha string) *record.Library {
		return &record.Library{Maker: record.Llmparity, Variant: variant, SHA256: sha}
	}
	was := info("1", "aa", "npm", ours("software kernels", "11"),
		map[string]string{"browser": "C 1", "browser_build_id": "x"})
	expect(t, differ.Engines(was, was))
	now := map[string]string{"browser": "C 2", "browser_build_id": "y"}
	expect(t, differ.Engines(was, info("2", "bb", "file", &record.Library{Maker: "MLC", SHA256: "22"}, now)),
		"engine version: 2, was 1", "browser browser: C 2, was C 1",
		"library model library: MLC's, was llmparity's (software kernels)")
	now["browser"] = "C 1"
	expect(t, differ.Engines(was, info("1", "", "file", ours("gpu kernels", "22"), now)),
		"engine program: unknown, was aa?",
		"kernels model library: llmparity's (gpu kernels), was llmparity's (software kernels)",
		"browser browser build id: y, was x", "engine origin: file, was npm")
	expect(t, differ.Engines(was, info("1", "aa", "", nil, nil)), "browser browser: unknown, was C 1",
		"library model library: unknown, was llmparity's (software kernels)?",
		"library model library sha256: unknown, was 11?", "engine origin: unknown, was npm?")
}

func TestToolsAndDevices(t *testing.T) {
	tool := record.Tool{Version: "1", SHA256: "aa", GoOS: "linux", GoArch: "amd64"}
	other := tool
	other.SHA256 = "bb"
	expect(t, differ.Tools(tool, other), "system llmparity's program: bb, was aa")
	other.Version, other.GoArch = "2", "arm64"
	expect(t, differ.Tools(tool, other), "system llmparity: 2, was 1")
	expect(t, differ.Devices(record.Device{Class: record.GPU, Name: "A"}, record.Device{Class: record.CPU}),
		"machine device class: cpu, was gpu", "machine device: unknown, was A")
}

// What is not of the machine can be put under test, by the same name.
func TestKindsCanBeUnderTest(t *testing.T) {
	for _, k := range []differ.Kind{differ.Engine, differ.Library, differ.Kernels, differ.Browser, differ.Model} {
		if !slices.Contains(gates.UnderTests(), string(k)) {
			t.Errorf("%s cannot be under test", k)
		}
	}
	if differ.System != gates.TestSystem {
		t.Errorf("the system is called %s and %s", differ.System, gates.TestSystem)
	}
}
