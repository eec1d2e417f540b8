package protocol_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/native/protocol"
)

// block is a block of the document, by its language.
func block(t testing.TB, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/howto/add-an-engine.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)\n```" + language + "\n(.*?)\n```\n").FindSubmatch(text)
	if m == nil {
		t.Fatalf("docs/howto/add-an-engine.md has no %s", language)
	}
	return string(m[1])
}

// inPython is the document's engine in Python.
func inPython(t testing.TB) protocol.Command {
	t.Helper()
	path := filepath.Join(t.TempDir(), "echo.py")
	if err := os.WriteFile(path, []byte(block(t, "python")), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatalf("%v: run `make setup`", err)
	}
	return protocol.Command{Name: "echo.py", Argv: []string{path}}
}

func TestConformanceOfTheDocumentsPython(t *testing.T) {
	command := inPython(t)
	m := enginetest.TinyModel(t)
	enginetest.Run(t, enginetest.Case{Model: m, Prompt: "the quick", MaxTokens: 24, Text: "",
		New: func(*testing.T) engine.Engine { return protocol.New(protocol.Config{Command: command}) }})
}

func TestTheDocumentsPythonEchoes(t *testing.T) {
	o := play(t, protocol.New(protocol.Config{Command: inPython(t)}), enginetest.TinyModel(t))
	if o.err != nil || o.usage.Text != "thet" || o.usage.PromptTokens != 3 {
		t.Errorf("%+v, %v", o.usage, o.err)
	}
	if log, closed := o.probe.Logged("exec-echo.py"); !closed || !strings.HasPrefix(log, "loading ") {
		t.Errorf("its log: %q, closed: %v", log, closed)
	}
	if info := o.probe.Engine(); info.Policy["token_times"] != "its own, of CLOCK_MONOTONIC" ||
		info.Parts["engine"] != "echo" {
		t.Errorf("%+v", info)
	}
}

// The session in the document is what the example engine says.
func TestTheDocumentsSessionIsReal(t *testing.T) {
	cmd := exec.Command(example(t))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers, n := bufio.NewScanner(out), 0
	session := strings.ReplaceAll(block(t, "session"), "/models/tiny.gguf", enginetest.TinyModel(t).Path)
	for line := range strings.Lines(session) {
		line = strings.TrimSpace(line)
		if request, ok := strings.CutPrefix(line, "> "); ok {
			if _, err := io.WriteString(in, request+"\n"); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, ok := strings.CutPrefix(line, "< ")
		if !ok {
			t.Fatalf("neither sent nor answered: %s", line)
		}
		if n++; !answers.Scan() {
			t.Fatalf("no answer: %v, want %s", answers.Err(), want)
		}
		if got := answers.Text(); !reflect.DeepEqual(without(t, got, "reported"), without(t, want, "reported")) {
			t.Errorf("%s\nthe document has %s", got, want)
		}
	}
	if in.Close(); answers.Scan() || n < 8 {
		t.Errorf("%d answers; after the last one: %s", n, answers.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// without is a JSON object but for a field whose values differ from time to time.
func without(t *testing.T, line, field string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	delete(m, field)
	return m
}
