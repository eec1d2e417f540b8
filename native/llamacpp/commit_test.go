package llamacpp

import (
	"strings"
	"testing"
)

func TestCommitOf(t *testing.T) {
	for version, want := range map[string]string{"3000 (0a0a0a0a)": "0a0a0a0a",
		"0.6.0-dev (build 11434, commit 1f0da53c6)":           "1f0da53c6",
		"0.6.0-dev (build 11434, commit unknown)":             "",
		"11434 (unknown)":                                     "",
		"b11434":                                              "",
		"1 (not-a-commit) (deadbeef) of something else again": ""} {
		if got := commitOf(version); got != want {
			t.Errorf("%s: commit %q, want %q", version, got, want)
		}
	}
}

func FuzzCommitOf(f *testing.F) {
	f.Add("3000 (0a0a0a0a)")
	f.Add("0.6.0-dev (build 11434, commit 1f0da53c6)")
	f.Fuzz(func(t *testing.T, version string) {
		if c := commitOf(version); c != "" && (len(c) < 7 || len(c) > 40 || strings.Trim(c, "0123456789abcdef") != "" ||
			!strings.HasSuffix(version, c+")")) {
			t.Errorf("commit %q in %q", c, version)
		}
	})
}
