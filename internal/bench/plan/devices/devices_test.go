package devices_test

import (
	"strings"
	"testing"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/plan/devices"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
)

// An engine runs with each of its devices, and with no other combination of their settings.
func TestDevices(t *testing.T) {
	p, err := plan.Parse([]byte("name: p\nengines: [webllm, llamacpp]\nmodel: tiny\nprompts: [hello]\nmax_tokens: 1\n"),
		"p.yaml", kinds.All...)
	check.Err(t, err)
	k := p.Kind("webllm")
	devices.Vary(&p, k, []engine.Section{{"adapter": "swiftshader"}, {"adapter": "lavapipe", "thread": "page"},
		{"adapter": "lavapipe", "thread": "worker"}})
	check.Err(t, p.Validate())
	m, err := p.Expand()
	check.Err(t, err)
	var got []string
	for _, c := range m.Cells {
		words := []string{c.Engine, c.Settings["adapter"], c.Settings["thread"]}
		got = append(got, strings.TrimSpace(strings.Join(words, " ")))
	}
	want := "webllm swiftshader page, llamacpp, webllm lavapipe page, webllm lavapipe worker"
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("%s, want %s", all, want)
	}
}
