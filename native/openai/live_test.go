package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/native/openai"
	"llmparity/native/openai/openaitest"
	"llmparity/native/wire"
)

// A chat gives the same text as completing the prompt in the server's template.
func TestChatUsesTemplate(t *testing.T) {
	m := enginetest.TinyModel(t)
	server := openaitest.Llama(t, m.Path, "-np", "1", "-c", "1024", "--api-key", "sk-very-secret")
	t.Setenv("KEY", "sk-very-secret")
	t.Setenv("WRONG", "sk-other")
	config := openai.Config{URL: server.URL + "/v1", KeyFrom: "KEY"}

	var templated struct {
		Prompt string `json:"prompt"`
	}
	client := wire.Client{Base: server.URL, Key: "sk-very-secret", HTTP: wire.NewClient(true)}
	if err := client.Call(t.Context(), http.MethodPost, "/apply-template", map[string]any{
		"messages": []map[string]string{{"role": "user", "content": "Once"}}}, &templated); err != nil ||
		templated.Prompt == "" {
		t.Fatalf("%v: templated prompt %q", err, templated.Prompt)
	}

	wrong := config
	wrong.KeyFrom = "WRONG"
	enginetest.OneLine(t, openai.New(wrong).Check(t.Context(), m), fault.ServerUnreachable, record.SetUp,
		"check the key in $WRONG")

	raw, _ := loaded(t, config, m)
	want, err := raw.Generate(t.Context(), request(templated.Prompt, 24), func(record.Token) {})
	check.Err(t, err)
	counts := func(c openai.Config, prompt string, want int) {
		t.Helper()
		if n, err := openai.New(c).Count(t.Context(), m, prompt); err != nil || n != want {
			t.Errorf("%d tokens are counted, %v; want %d", n, err, want)
		}
	}
	counts(config, templated.Prompt, want.PromptTokens)
	config.API = openai.Chat
	counts(config, "Once", want.PromptTokens)
	chat, p := loaded(t, config, m)
	g, err := generated(t.Context(), chat, 24)
	check.Err(t, err)
	if g.Usage.Text != want.Text || g.Usage.Generated != 24 || g.Usage.PromptTokens != want.PromptTokens ||
		g.Usage.CachedTokens != 0 {
		t.Errorf("%q (%+v), want %q", g.Usage.Text, g.Usage, want.Text)
	}
	if info := p.Engine(); !strings.Contains(info.Policy["prompt"], "template") ||
		info.Parts["server"] != "llama-server" || info.Parts["url"] != server.URL+"/v1" {
		t.Errorf("%+v", info)
	}
	if w := p.Warned("weights-unverified"); len(w) > 0 {
		t.Errorf("the server has loaded the same file, but: %q", w)
	}
}

// Processes and /metrics of a running server are sampled.
func TestServerIsSampled(t *testing.T) {
	m := enginetest.TinyModel(t)
	server := openaitest.Llama(t, m.Path, "-np", "2", "-c", "2048", "--metrics", "--alias", "mouse")
	s, p := loaded(t, openai.Config{URL: server.URL}, served)
	_, err := generated(t.Context(), s, 16)
	check.Err(t, err)
	got, methods := p.Values(t, openai.MethodMetrics), map[string]int{}
	for _, source := range p.Attached() {
		methods[source.Describe().Method] = source.Describe().PID
	}
	if got["generated_tokens_count"] < 16 || got["prompt_tokens_count"] < 1 || got["requests_waiting_count"] != 0 {
		t.Errorf("%v", got)
	}
	for _, method := range []string{record.MethodStatm, record.MethodSmapsRollup, record.MethodCPUTime,
		openai.MethodMetrics} {
		if methods[method] != server.PID {
			t.Errorf("%s samples process %d, the server is %d", method, methods[method], server.PID)
		}
	}
	if d := p.Device(); d.Class != record.CPU || d.Origin != record.DeviceDerived || d.Name == "" {
		t.Errorf("the device of a server that holds no GPU memory: %+v", d)
	}
	check.Err(t, s.Unload(t.Context()))
	check.Err(t, s.Load(t.Context(), served))
	if _, err := os.Stat("/proc"); err == nil && len(p.Attached()) != 4 {
		t.Errorf("%d sources", len(p.Attached()))
	}
}

// What a plan states about the device counts, but a warning says that the processes show another one.
func TestStatedDeviceIsChecked(t *testing.T) {
	server := openaitest.Llama(t, enginetest.TinyModel(t).Path, "-np", "1", "-c", "512", "--alias", "mouse")
	_, p := loaded(t, openai.Config{URL: server.URL, Device: "gpu"}, served)
	if d, w := p.Device(), p.Warned("device-differs"); d.Class != record.GPU || d.Origin != record.DeviceStated ||
		len(w) != 1 || !strings.Contains(w[0], "hold no GPU memory") {
		t.Errorf("%+v, %q", d, w)
	}
}

// TestConformance runs the suite against a running llama-server.
func TestConformance(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	c.New = func(t *testing.T) engine.Engine {
		return openai.New(openai.Config{URL: openaitest.Llama(t, c.Model.Path, "-np", "2", "-c", "2048",
			"--metrics").URL})
	}
	enginetest.Run(t, c)
}

// The server's sampling defaults do not change the text.
func TestSamplingDefaultsAreOverridden(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	server := openaitest.Llama(t, c.Model.Path, "-np", "1", "-c", "512", "--repeat-penalty", "1.8",
		"--presence-penalty", "1.5", "--dry-multiplier", "0.8",
		"--temp", "0.9", "--mirostat", "2")
	s, _ := loaded(t, openai.Config{URL: server.URL}, c.Model)
	u, err := s.Generate(t.Context(), engine.Request{Prompt: c.Prompt, MaxTokens: 32, IgnoreEOS: true},
		func(record.Token) {})
	if err != nil || u.Text != c.Text {
		t.Errorf("%v: %q, want %q", err, u.Text, c.Text)
	}
}

// TestOllama tests Ollama's OpenAI API. The suite does not fit, because Ollama silently truncates long prompts. Its KV
// cache is f16, so only the first tokens are compared with the reference.
func TestOllama(t *testing.T) {
	cases := enginetest.Tiny(t, 16)
	server := openaitest.Ollama(t, cases[1].Model.Path, "mouse", "{{ .Prompt }}")
	s, p := loaded(t, openai.Config{URL: server.URL}, served)
	info := p.Engine()
	if info.Parts["server"] != "Ollama" || info.Parts["model"] != "mouse:latest" || info.Parts["server_version"] == "" {
		t.Errorf("%+v", info)
	}
	roles := map[string]bool{}
	for _, source := range p.Attached() {
		roles[source.Describe().Role] = true
	}
	if !roles["server"] || !roles["runner"] {
		t.Errorf("sampled %v, want the server and its runner", roles)
	}
	c := cases[1]
	g, err := s.Generate(t.Context(), request(c.Prompt, 16), func(record.Token) {})
	if err != nil || g.Text != c.Text || g.Generated != 16 || g.Finish != "length" ||
		g.PromptTokens != len(c.PromptIDs) {
		t.Errorf("%v: %+v, want %q", err, g, c.Text)
	}
	chat, _ := loaded(t, openai.Config{URL: server.URL, API: openai.Chat}, served)
	if g, err := chat.Generate(t.Context(), request(c.Prompt, 16), func(record.Token) {}); err != nil ||
		g.Text != c.Text || g.Generated != 16 {
		t.Errorf("a chat with an empty template: %v, %q, want %q", err, g.Text, c.Text)
	}
	err = openai.New(openai.Config{URL: server.URL, Model: "moose"}).Check(t.Context(), served)
	enginetest.OneLine(t, err, fault.ServerUnreachable, record.SetUp,
		`does not have model "moose"; did you mean "mouse:latest"`)
	if slices.ContainsFunc(p.Warnings(), func(w record.Warning) bool { return strings.Contains(w.Code, "counts") }) {
		t.Errorf("%v", p.Warnings())
	}
}

// asServer makes the test binary act as a server with a list of models. It prints its address.
const asServer = "LLMPARITY_TEST_SERVER"

func serve() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[{"id":"m"}]}`)
	}))
	fmt.Println(s.URL)
	select {}
}

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		serve()
	}
	childtest.Main(m)
}
