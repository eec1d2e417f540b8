package browser

import (
	"strings"
	"testing"
	"time"

	"llmparity/browser/driver"
	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

func TestBrowserThatDoesNotStartIsQuoted(t *testing.T) {
	for text, x := range map[string]struct {
		limits    *driver.Limits
		want, not string
	}{
		"echo cannot open display >&2; exit 1": {nil, "cannot open display", "\n"},
		"sleep 300":                            {&driver.Limits{Answer: 100 * time.Millisecond}, "did not answer within 0.1 s", "\n"},
		`cat >&2 <<.
[1:1:1121/180000.1:ERROR:a.cc:1] first
[1:1:1121/180000.2:FATAL:b.cc:2] no such luck: $(printf '%01000d' 7)
[1:1:1121/180000.3:ERROR:c.cc:3] write: Broken pipe (32)
.
exit 1
`: {nil, "no such luck", "Broken"},
	} {
		path := check.Script(t, text, t.TempDir(), "chrome")
		_, err := Open(watched(t), Config{Chrome: path, limits: x.limits}, stubSite, engine.Unmeasured{})
		if fault.Of(err) != fault.NoChrome || !strings.Contains(err.Error(), x.want) ||
			strings.Contains(err.Error(), x.not) {
			t.Errorf("error %v, want NoChrome with %s", err, x.want)
		}
		if n := len(err.Error()) - len(path); n > 300 {
			t.Errorf("error of %d characters: %v", n, err)
		}
	}
}

func TestDeviceClass(t *testing.T) {
	for _, x := range []struct {
		adapterInfo
		class record.DeviceClass
		name  string
	}{
		{adapterInfo{Vendor: "nvidia", Architecture: "turing"}, record.GPU, "nvidia turing"},
		{adapterInfo{Vendor: "google", Architecture: "swiftshader"}, record.SoftwareAdapter, "SwiftShader"},
		{adapterInfo{Vendor: "mesa", Description: "llvmpipe (LLVM 15)"}, record.SoftwareAdapter,
			"mesa llvmpipe (LLVM 15)"},
		{adapterInfo{Vendor: "google", Architecture: "swiftshader", Device: "0xc0de",
			Description: "llvmpipe (LLVM 15)"}, record.SoftwareAdapter, "mesa lavapipe llvmpipe (LLVM 15)"},
		{adapterInfo{Fallback: true}, record.SoftwareAdapter, "unnamed adapter"},
		{adapterInfo{Vendor: "x", Backend: "vulkan", Type: "CPU"}, record.SoftwareAdapter, "x"},
		{adapterInfo{Vendor: "nvidia", Backend: "vulkan", Type: "discrete GPU"}, record.GPU, "nvidia"},
		{adapterInfo{Vendor: "intel", Backend: "openGLES", Type: "integrated GPU"}, record.OpenGLAdapter, "intel"},
		{adapterInfo{Description: "Virtio-GPU Venus (NVIDIA L4)", Type: "unknown"}, record.VirtualGPU,
			"Virtio-GPU Venus (NVIDIA L4)"},
		// Chromium 156 with --use-webgpu-adapter=opengles, for a page that asks for compatibility
		{adapterInfo{Device: "0xc0de", Backend: "openGLES", Type: "CPU", Fallback: true,
			Description: "ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver-5.0.0)"},
			record.SoftwareAdapter, "SwiftShader"},
	} {
		if d := x.device(); d.Class != x.class || d.Name != x.name {
			t.Errorf("%+v: %s %q, want %s %q", x.adapterInfo, d.Class, d.Name, x.class, x.name)
		}
	}
}

// A software adapter is no GPU, whatever name it takes, and lavapipe is not SwiftShader.
func TestAskedAdapter(t *testing.T) {
	nvidia := adapterInfo{Vendor: "nvidia", Architecture: "hopper"}
	swiftshader := adapterInfo{Vendor: "google", Architecture: "swiftshader"}
	lavapipe := adapterInfo{Vendor: "google", Architecture: "swiftshader", Description: "llvmpipe (LLVM 15)"}
	for _, c := range []struct {
		asked Adapter
		info  adapterInfo
		got   bool
	}{{Auto, swiftshader, true}, {GPU, nvidia, true}, {GPU, swiftshader, false}, {GPU, lavapipe, false},
		{GPU, adapterInfo{Vendor: "mesa", Fallback: true}, false},
		{GPU, adapterInfo{Vendor: "intel", Backend: "openGLES"}, false}, {GPU, adapterInfo{Device: "virgl"}, false},
		{SwiftShader, swiftshader, true},
		{SwiftShader, lavapipe, false}, {SwiftShader, nvidia, false}, {Lavapipe, lavapipe, true},
		{Lavapipe, swiftshader, false}} {
		if d := c.info.asked(c.asked); d.Missed() == c.got {
			t.Errorf("%s asked of %+v: %+v", c.asked, c.info, d)
		}
	}
}
