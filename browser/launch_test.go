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
	_, err := launch(watched(t), path, nil, func(any) {})
	if fault.Code(err) != int(fault.NoChrome) || !strings.Contains(err.Error(), "cannot open display") {
		t.Errorf("error %v, want NoChrome with the browser's words", err)
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
