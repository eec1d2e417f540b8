package openai_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/native/openai"
	"llmparity/native/openai/openaitest"
)

// A chat is the prompt in the server's template: the same words come where the templated prompt is completed as it is.
func TestChatUsesTheServersTemplate(t *testing.T) {
	m := enginetest.TinyModel(t)
	server := openaitest.Llama(t, m.Path, "-np", "1", "-c", "1024", "--api-key", "sk-very-secret")
	config := openai.Config{URL: server.URL + "/v1", Key: "sk-very-secret", KeyFrom: "KEY"}

	var templated struct {
		Prompt string `json:"prompt"`
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/apply-template",
		strings.NewReader(`{"messages":[{"role":"user","content":"Once"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sk-very-secret")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&templated); err != nil || templated.Prompt == "" {
		t.Fatalf("%v: the template gives %q", err, templated.Prompt)
	}

	wrong := config
	wrong.Key = "sk-other"
	oneLine(t, openai.New(wrong).Check(t.Context(), m), record.SetUp, fault.ServerUnreachable, "check the key in $KEY")

	raw, _ := loaded(t, config, m)
	want, err := raw.Generate(t.Context(), request(templated.Prompt, 24), func(record.Token) {})
	if err != nil {
		t.Fatal(err)
	}
	config.API = openai.Chat
	chat, p := loaded(t, config, m)
	g, err := generated(t.Context(), chat, 24)
	if err != nil {
		t.Fatal(err)
	}
	if g.Usage.Text != want.Text || g.Usage.Generated != 24 || g.Usage.PromptTokens != want.PromptTokens ||
		g.Usage.CachedTokens != 0 {
		t.Errorf("%q (%+v), want %q", g.Usage.Text, g.Usage, want.Text)
	}
	if info := p.Engine(); !strings.Contains(info.Policy["prompt"], "template") ||
		info.Parts["server"] != "llama-server" || info.Parts["url"] != server.URL+"/v1" {
		t.Errorf("%+v", info)
	}
	for _, w := range p.Warnings() {
		if w.Code == "weights-unverified" {
			t.Error("the server has read the very file, and yet: " + w.Text)
		}
	}
	if text, err := json.Marshal([]any{p.Events(), p.Warnings(), config}); err != nil ||
		strings.Contains(string(text), "very-secret") {
		t.Errorf("%v: the key is in what is recorded", err)
	}
}

// The suite kills what is sampled; here the server's own word of itself is looked at, and that all of it is seen.
func TestAServerIsSampled(t *testing.T) {
	m := enginetest.TinyModel(t)
	server := openaitest.Llama(t, m.Path, "-np", "2", "-c", "2048", "--metrics", "--alias", "mouse")
	s, p := loaded(t, openai.Config{URL: server.URL}, served)
	if _, err := generated(t.Context(), s, 16); err != nil {
		t.Fatal(err)
	}
	got, methods := metricsOf(t, p), map[string]int{}
	for _, source := range p.Attached() {
		methods[source.Describe().Method] = source.Describe().PID
	}
	if got["generated_tokens_count"] < 16 || got["prompt_tokens_count"] < 1 || got["requests_waiting_count"] != 0 {
		t.Errorf("%v", got)
	}
	for _, method := range []string{record.MethodStatm, record.MethodSmapsRollup, openai.MethodMetrics} {
		if methods[method] != server.PID {
			t.Errorf("%s is read of process %d, the server is %d", method, methods[method], server.PID)
		}
	}
	if err := s.Unload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context(), served); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc"); err == nil && len(p.Attached()) != 3 {
		t.Errorf("%d sources", len(p.Attached()))
	}
}
