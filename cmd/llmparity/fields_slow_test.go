//go:build slow

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"llmparity/compare"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// The fields of a plan that show only in a run do something there.
func TestEveryLaunchedFieldDoesSomething(t *testing.T) {
	t.Chdir(walkFolder(t))
	for name, c := range launchedMoves {
		t.Run(name, func(t *testing.T) {
			if a, b := launchedTo(t, walked(c.rest)), launchedTo(t, walked(c.rest+"\n"+c.added)); a == b {
				t.Errorf("%s does nothing:\n%s", c.added, a)
			}
		})
	}
}

// logging is an engine that logs what it is asked and how many seconds after its first request.
const logging = `#!/usr/bin/env python3
import json, sys, time
begun = None
def answer(request, event, **fields):
    print(json.dumps({"id": request["id"], "event": event, **fields}), flush=True)
for line in sys.stdin:
    r = json.loads(line)
    if r["op"] == "hello":
        answer(r, "done", protocol=1, name="log", version="1", device={"class": "cpu"},
               caps={"exact": True, "ignore_eos": True}, policy={"prompt_cache": "off"})
    elif r["op"] == "generate":
        begun = begun or time.time()
        with open("LOG", "a") as log:
            log.write("%s %d %.0f\n" % (r["prompt"], r["max_tokens"], 2 * (time.time() - begun)))
        time.sleep(3 if r["prompt"] == "sleep" else 0.01 * (1 + time.time() % 3))
        for i in range(r["max_tokens"]):
            answer(r, "token", text="x")
        answer(r, "done", finish="length", prompt_tokens=1, generated=r["max_tokens"])
    else:
        answer(r, "done")
`

// answering is a server of Ollama's and OpenAI's API. It writes down what it is asked.
func answering(sent *strings.Builder) http.Handler {
	answers := map[string]string{
		"/v1/models":      `{"data":[{"id":"m"}]}`,
		"/v1/completions": `data: {"choices":[{"index":0,"text":"x","finish_reason":"length"}]}` + "\n\ndata: [DONE]\n\n",
		"/v1/chat/completions": `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"length"}]}` +
			"\n\ndata: [DONE]\n\n",
		"/api/version": `{"version":"0.6.5"}`, "/api/ps": `{"models":[]}`,
		"/api/tags": `{"models":[{"name":"m:latest","model":"m:latest"}]}`, "/api/show": `{}`,
		"/api/generate": `{"response":"x","done":true,"done_reason":"length","prompt_eval_count":1,"eval_count":1}` + "\n",
	}
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var body struct {
			KeepAlive any `json:"keep_alive"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body) // some have none
		if answers[r.URL.Path] == "" {
			http.NotFound(w, r)
			return
		}
		if r.Method == http.MethodPost {
			fmt.Fprintln(sent, r.URL.Path, r.Header.Get("Authorization"), body.KeepAlive)
		}
		fmt.Fprint(w, answers[r.URL.Path])
	})
}

// launchedTo is what engines were asked in a run, how its launches ended and the seconds between them, what was scored,
// and what the run's result says of goals and gates.
func launchedTo(t *testing.T, text string) string {
	t.Helper()
	cmd := program(t, "run", "plan.yaml")
	var sent strings.Builder
	host := "no host"
	if strings.Contains(text, "URL") {
		server := httptest.NewServer(answering(&sent))
		defer server.Close()
		host = server.Listener.Addr().String()
		text = strings.ReplaceAll(text, "URL", server.URL)
		cmd.Env = append(cmd.Env, "A_KEY=secret")
	}
	text = strings.Replace(text, "engines: [llamacpp]\nmodel", "engines: ['exec:./log.py']\nmodel", 1)
	put(t, cmd.Dir, "plan.yaml", text)
	for _, name := range []string{"a.jsonl", "a.csv"} {
		put(t, cmd.Dir, name, readFile(t, name))
	}
	path, err := filepath.Abs("chat.gguf")
	check(t, err)
	check(t, os.Symlink(path, filepath.Join(cmd.Dir, "chat.gguf")))
	put(t, cmd.Dir, "log.py", strings.Replace(logging, "LOG", filepath.Join(cmd.Dir, "log"), 1))
	stdout, stderr, code := output(t, cmd)
	if code == 2 {
		t.Fatalf("%s\n%s%s", text, stdout, stderr)
	}
	var out strings.Builder
	dir, err := filepath.EvalSymlinks(filepath.Join(cmd.Dir, "results", "latest"))
	r, broken := record.Open(dir)
	if err = errors.Join(err, broken); err != nil { // refused before there was a run
		return fmt.Sprintf("exit code %d", code)
	}
	name, _, _ := strings.Cut(filepath.Base(dir), "-2")
	fmt.Fprintf(&out, "%s: exit code %d, %d scorings\n", name, code, len(r.Scorings))
	for _, s := range r.Scorings {
		fmt.Fprintf(&out, "reference %d\n", s.Scoring.Reference)
	}
	asked, _ := os.ReadFile(filepath.Join(cmd.Dir, "log")) // missing if nothing was asked
	out.Write(asked)
	out.WriteString(sent.String())
	last := int64(0)
	for _, a := range r.Attempts {
		for _, e := range a.Events {
			if e.Device != nil {
				fmt.Fprintln(&out, e.Device.Class, strings.ReplaceAll(e.Device.Name, host, "HOST"))
			}
			if e.Engine != nil && e.Engine.Parts["browser"] != "" {
				fmt.Fprintf(&out, "%v %v\n", e.Engine.Parts, e.Engine.Policy)
			}
		}
		if !strings.Contains(text, "exec:") { // its times have no meaning here
			continue
		}
		fmt.Fprintf(&out, "cell %d: %s %s after %d s\n", a.Cell, a.Status, a.Class, (a.BeginNS-last)/2e9)
		last = a.EndNS
		for _, q := range a.Measured() {
			fmt.Fprintf(&out, "due at %d %s\n", (q.Slot.Due-a.BeginNS)/2e9, q.Slot.Kind)
		}
	}
	result := compare.With(comparison(), r)
	for _, c := range result.Comparisons {
		fmt.Fprintf(&out, "cell %d is compared with cell %d\n", c.B, c.A)
	}
	for i := range result.Cells {
		fmt.Fprintf(&out, "goodput %v", result.Cells[i].Figure(figure.GoodShare).Values)
	}
	return out.String()
}
