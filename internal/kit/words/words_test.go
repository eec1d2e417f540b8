package words

import "testing"

func TestVersionHasWhatIsKnown(t *testing.T) {
	for text, want := range map[string]string{
		"0.6.0-dev (build 11434, commit unknown)":                   "build 11434",
		"llama-server 0.6.0-dev (build 11434, commit unknown), f32": "llama-server build 11434, f32",
		"0.6.0-dev (build 11434, commit 0a1b2c3)":                   "0.6.0-dev (build 11434, commit 0a1b2c3)",
		"5200 (0a1b2c3)": "5200 (0a1b2c3)",
	} {
		if got := Version(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
