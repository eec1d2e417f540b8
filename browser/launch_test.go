package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/record"
)

func TestFindChrome(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"chrome", "chromium", "mine"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv(ChromeVariable, "")
	if got, err := FindChrome(""); err != nil || got != filepath.Join(dir, "chromium") {
		t.Errorf("on PATH: %s, %v", got, err)
	}
	t.Setenv(ChromeVariable, "mine")
	if got, err := FindChrome(""); err != nil || got != filepath.Join(dir, "mine") {
		t.Errorf("by variable: %s, %v", got, err)
	}
	given := filepath.Join(dir, "chrome")
	if got, err := FindChrome(given); err != nil || got != given {
		t.Errorf("by path: %s, %v", got, err)
	}

	// One that was asked for and is not there is never replaced by another.
	for _, missing := range []string{"nosuchbrowser", ""} {
		t.Setenv(ChromeVariable, missing)
		if missing == "" {
			t.Setenv("PATH", t.TempDir())
		}
		_, err := FindChrome("")
		if fault.Code(err) != int(fault.NoChrome) || !strings.Contains(err.Error(), "install") {
			t.Errorf("%q: %v, want NoChrome and how to get it", missing, err)
		}
	}
}

func TestBrowserThatDoesNotStartIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chrome")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho cannot open display >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := launch(watched(t), path, Config{}, func(any) {})
	if fault.Code(err) != int(fault.NoChrome) || !strings.Contains(err.Error(), "cannot open display") {
		t.Errorf("error %v, want NoChrome with the browser's words", err)
	}
}

func TestBrowserThatDoesNotStartIsQuotedInALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chrome")
	script := `#!/bin/sh
cat >&2 <<.
[1:1:1121/180000.1:ERROR:a.cc:1] first
[1:1:1121/180000.2:FATAL:b.cc:2] no such luck: $(printf '%01000d' 7)
[1:1:1121/180000.3:ERROR:c.cc:3] write: Broken pipe (32)
.
exit 1
`
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := launch(watched(t), path, Config{}, func(any) {})
	if fault.Code(err) != int(fault.NoChrome) || !strings.Contains(err.Error(), "no such luck") || strings.Contains(err.Error(), "Broken") {
		t.Errorf("error %v, want NoChrome with the fatal line alone", err)
	}
	if n := len(err.Error()) - len(path); n > 300 {
		t.Errorf("%d characters of error: %v", n, err)
	}
	for text, want := range map[string]string{
		"a\n[1:ERROR:x] b\n[1:ERROR:x] c\nd\n\n": "[1:ERROR:x] c",
		"chrome failed to start:\nd\n\n":         "d",
		"":                                       "",
	} {
		if got := telling(text); got != want {
			t.Errorf("of %q, %q tells, want %q", text, got, want)
		}
	}
}

func TestTemporaryFolderMustLeaveRoomForASocket(t *testing.T) {
	path, err := FindChrome("")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	_, err = launch(watched(t), path, Config{}, func(any) {})
	if fault.Code(err) != int(fault.NoChrome) || !strings.Contains(err.Error(), "set TMPDIR to a shorter one") {
		t.Errorf("error %v, want NoChrome and what to do", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestParseAdapter(t *testing.T) {
	for in, want := range map[string]Adapter{"": Auto, "auto": Auto, "swiftshader": SwiftShader, "gpu": GPU} {
		if got, err := ParseAdapter(in); err != nil || got != want {
			t.Errorf("%q: %s, %v", in, got, err)
		}
	}
	if _, err := ParseAdapter("cpu"); fault.Code(err) != int(fault.Usage) {
		t.Errorf("cpu: %v, want a usage error", err)
	}
	if !SwiftShader.Software() || GPU.Software() || GPU.flags() != nil {
		t.Error("the adapters' flags are mixed up")
	}
}

func TestDeviceClass(t *testing.T) {
	for _, x := range []struct {
		adapterInfo
		class record.DeviceClass
		name  string
	}{
		{adapterInfo{Vendor: "nvidia", Architecture: "turing"}, record.GPU, "nvidia turing"},
		{adapterInfo{Vendor: "google", Architecture: "swiftshader"}, record.SoftwareAdapter, "google swiftshader"},
		{adapterInfo{Vendor: "mesa", Description: "llvmpipe (LLVM 15)"}, record.SoftwareAdapter, "mesa llvmpipe (LLVM 15)"},
		{adapterInfo{Fallback: true}, record.SoftwareAdapter, "unnamed adapter"},
	} {
		if d := x.device(); d.Class != x.class || d.Name != x.name {
			t.Errorf("%+v: %s %q, want %s %q", x.adapterInfo, d.Class, d.Name, x.class, x.name)
		}
	}
}
