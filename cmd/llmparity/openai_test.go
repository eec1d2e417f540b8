package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/native/openai/openaitest"
)

// recorded opens the run that a command recorded.
func recorded(t *testing.T, dir string) *record.Run {
	t.Helper()
	return opened(t, filepath.Join(dir, "results", "latest"))
}

func TestServedModelNeedsNoFile(t *testing.T) {
	lightTest(t)
	t.Parallel()
	m := enginetest.TinyModel(t)
	server := openaitest.Llama(t, m.Path, "-np", "1", "-c", "512", "--alias", "mouse", "--metrics", "--api-key",
		"sk-very-secret")
	run := program(t, "run", "--engines", "openai", "--openai-url", server.URL, "--openai-key-env", "MOUSE_KEY",
		"--model", "served:mouse", "--repetitions", "2", "--max-tokens", "12", "--prompt", "The third clock")
	run.Env = append(run.Env, "MOUSE_KEY=sk-very-secret")
	well(t, run)
	mentions(t, details(t, run.Dir), "OpenAI server: llama-server ", "is not verified", "already-running",
		"all 2 requests gave the same text")
	r := recorded(t, run.Dir)
	if c := r.Cells[0]; c.Model.Name != "mouse" || c.Model.Format != "served" || c.Model.SHA256 != "" ||
		c.Isolation != record.OfServer {
		t.Errorf("%+v", c)
	}
	for _, a := range r.Attempts {
		if len(a.Samples) == 0 || len(a.Metrics) == 0 {
			t.Errorf("attempt %d has %d samples and %d figures of the server's own", a.ID, len(a.Samples),
				len(a.Metrics))
		}
	}
	mentions(t, readFile(t, filepath.Join(r.Dir, "report.html")), "mouse, served by llama-server")
	// What was resolved can be run again, also with a length that the server counts. It does not have the key.
	again := program(t, "run", "-q", "--repetitions", "1", "--input-len", "20", filepath.Join(r.Dir, "plan.yaml"))
	again.Env = append(again.Env, "MOUSE_KEY=sk-very-secret")
	well(t, again)
	files, err := filepath.Glob(filepath.Join(r.Dir, "*"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%v: %v", err, files)
	}
	for _, f := range files {
		// a folder can't be read
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), "very-secret") {
			t.Errorf("the key is in %s", f)
		}
	}
	r = recorded(t, again.Dir)
	if r.Cells[0].Model.Name != "mouse" {
		t.Errorf("%+v", r.Cells[0])
	}
	for _, q := range r.Attempts[len(r.Attempts)-1].Requests {
		if n := q.Prompted(); q.Phase == record.Measure && n != 20 {
			t.Errorf("a prompt of %d tokens, not 20", n)
		}
	}
	said, _, _ := output(t, resumed(run, "doctor", "--quick", "--openai-url", server.URL, "--openai-key-env",
		"MOUSE_KEY"))
	mentions(t, said, "OpenAI server", "with mouse")
}

// A server that was running generates the same text as one that llmparity starts.
func TestServerAgreesWithLlamaCpp(t *testing.T) {
	lightTest(t)
	t.Parallel()
	m := enginetest.TinyModel(t)
	server := openaitest.Llama(t, m.Path, "-np", "1", "-c", "1024")
	run := program(t, "run", "-q", "--engines", "llamacpp,openai", "--openai-url", server.URL+"/v1", "--model", m.Path,
		"--repetitions", "1", "--max-tokens", "48", "--prompt", "The third clock", "--prompt", "Once upon a time")
	well(t, run)
	if text := details(t, run.Dir); strings.Count(text, "identical text") < 2 ||
		strings.Contains(text, "weights-unverified") || strings.Contains(text, "counts-differ") {
		t.Errorf("the server has the same file:\n%s", text)
	}
}

func TestServerWithoutRoomForPrompt(t *testing.T) {
	lightTest(t)
	t.Parallel()
	server := openaitest.Llama(t, enginetest.TinyModel(t).Path, "-np", "1", "-c", "512", "--alias", "mouse")
	refuses(t, program(t, "run", "-q", "--engines", "openai", "--model", "served:mouse", "--openai-url", server.URL,
		"--repetitions", "1", "--max-tokens", "512"), fault.PromptTooLong, "do not fit in a context of 512")
}
