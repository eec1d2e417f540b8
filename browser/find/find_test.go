package find

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
)

func TestBuildID(t *testing.T) {
	text := filepath.Join(t.TempDir(), "script")
	check.Err(t, os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755))
	if id := BuildID("/proc/self/exe"); len(id) != 40 { // Go's linker sets one
		t.Errorf("build id of this program: %q", id)
	}
	for _, path := range []string{text, text + "-none"} {
		if id := BuildID(path); id != "" {
			t.Errorf("%s has build ID %q", path, id)
		}
	}
}

func TestChrome(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"chrome", "chromium", "mine", "microsoft-edge", "google-chrome-unstable",
		"google-chrome-beta"} {
		check.Err(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700))
	}
	for _, c := range []struct{ path, variable, given, want string }{
		{dir, "", "", "chromium"}, {dir, "mine", "", "mine"}, {dir, "beta", "", "google-chrome-beta"},
		{dir, "mine", filepath.Join(dir, "chrome"), "chrome"}, {dir, "", "edge", "microsoft-edge"},
		{dir, "", "dev", "google-chrome-unstable"}, {dir, "", "canary", "google-chrome-unstable"},
		// A requested browser that is missing is never replaced by another.
		{dir, "nosuchbrowser", "", ""}, {dir, "", "nosuchbrowser", ""}, {t.TempDir(), "", "", ""},
	} {
		t.Setenv("PATH", c.path)
		t.Setenv(Variable, c.variable)
		got, err := Chrome(c.given)
		if c.want == "" && err == nil && c.path != dir && filepath.IsAbs(got) &&
			slices.ContainsFunc(Brands, func(b string) bool { return slices.Contains(brands[b].unix, got) }) {
			continue // installed on this machine, but not on PATH
		}
		if c.want == "" && fault.Of(err) == fault.NoChrome && strings.Contains(err.Error(), "install") {
			continue
		}
		if err != nil || got != filepath.Join(dir, c.want) {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
}

func TestUsualPlaces(t *testing.T) {
	env := map[string]string{"HOME": "/Users/me", "ProgramFiles": `C:\Program Files`,
		"LocalAppData": `C:\Users\me\AppData\Local`}
	for _, c := range []struct{ goos, brand, want string }{
		{"linux", "edge", "microsoft-edge"},
		{"linux", "dev", "/opt/google/chrome-unstable/chrome"},
		{"darwin", "canary", "/Applications/Google Chrome Canary.app/Contents/MacOS/Google Chrome Canary"},
		{"darwin", "edge", "/Users/me/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge"},
		{"windows", "chrome", `C:\Program Files\Google\Chrome\Application\chrome.exe`},
		{"windows", "edge", "msedge"},
		{"windows", "canary", `C:\Users\me\AppData\Local\Google\Chrome SxS\Application\chrome.exe`},
	} {
		if got := usualPlaces(c.goos, c.brand, func(name string) string { return env[name] }); !slices.Contains(
			got, c.want) {
			t.Errorf("%s on %s: %q lack %s", c.brand, c.goos, got, c.want)
		}
	}
}
