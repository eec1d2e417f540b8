package plan_test

import (
	"maps"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
)

const asked = `name: p
engines: [openai]
model: served:mouse
prompts: [hello]
max_tokens: 8
warmup:
  launches: 0
  tokens: 1
repetitions: 1
timeout: 1m
`

func TestAServerInAPlan(t *testing.T) {
	p, err := plan.Parse([]byte(asked+"openai:\n  url: http://127.0.0.1:8080/v1\n  model: mouse\n  api: chat\n  key_env: KEY\n"), "p.yaml", kinds.All...)
	if err != nil {
		t.Fatal(err)
	}
	if want := (engine.Section{"url": "http://127.0.0.1:8080/v1", "model": "mouse", "api": "chat",
		"key_env": "KEY"}); !maps.Equal(p.Sections["openai"], want) {
		t.Errorf("%+v", p.Sections)
	}
	text, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := plan.Parse(text, "again", kinds.All...); err != nil ||
		!maps.Equal(again.Sections["openai"], p.Sections["openai"]) {
		t.Errorf("%v: %+v of\n%s", err, again.Sections, text)
	}
	if p, err := plan.Parse([]byte(asked), "p.yaml", kinds.All...); err != nil || len(p.Sections) > 0 {
		t.Errorf("%v: a plan without a server has one: %+v", err, p.Sections)
	}
	for section, want := range map[string]string{
		"openai:\n  api: chat\n":                       "p.yaml line 11: openai.url: no server is named",
		"openai:\n  url: http://x\n  api: chatter\n":   `p.yaml line 13: openai.api: "chatter", use completions or chat`,
		"openai:\n  url: http://x\n  key: sk-secret\n": "p.yaml line 13: openai.key: unknown field",
	} {
		if _, err := plan.Parse([]byte(asked+section), "p.yaml", kinds.All...); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", section, err, want)
		}
	}
}
