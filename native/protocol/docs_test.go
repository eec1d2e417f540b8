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
	"llmparity/internal/kit/check"
	"llmparity/native/protocol"
)

// block returns a code block of the documentation by its language.
func block(t testing.TB, language string) string {
	t.Helper()
	text := check.Read(t, "../../docs/howto/add-an-engine.md")
	m := regexp.MustCompile("(?s)\n```" + language + "\n(.*?)\n```\n").FindSubmatch(text)
	if m == nil {
		t.Fatalf("docs/howto/add-an-engine.md has no %s", language)
	}
	return string(m[1])
}

// inPython writes the documentation's Python engine.
func inPython(t testing.TB) protocol.Command {
	t.Helper()
	path := filepath.Join(t.TempDir(), "echo.py")
	check.Err(t, os.WriteFile(path, []byte(block(t, "python")), 0o755))
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatalf("%v: run `make setup`", err)
	}
	return protocol.Command{Name: "echo.py", Argv: []string{path}}
}

func TestConformanceOfDocumentedPython(t *testing.T) {
	command := inPython(t)
	m := enginetest.TinyModel(t)
	enginetest.Run(t, enginetest.Case{Model: m, Prompt: "the quick", MaxTokens: 24, Text: "",
		New: func(*testing.T) engine.Engine { return protocol.New(protocol.Config{Command: command}) }})
}

// The documented session is that of the example engine.
func TestDocumentedSession(t *testing.T) {
	cmd := exec.Command(example(t))
	in, err := cmd.StdinPipe()
	check.Err(t, err)
	out, err := cmd.StdoutPipe()
	check.Err(t, err)
	check.Err(t, cmd.Start())
	answers, n := bufio.NewScanner(out), 0
	session := strings.ReplaceAll(block(t, "session"), "/models/tiny.gguf", enginetest.TinyModel(t).Path)
	for line := range strings.Lines(session) {
		line = strings.TrimSpace(line)
		if request, ok := strings.CutPrefix(line, "> "); ok {
			_, err := io.WriteString(in, request+"\n")
			check.Err(t, err)
			continue
		}
		want, ok := strings.CutPrefix(line, "< ")
		if !ok {
			t.Fatalf("neither request nor answer: %s", line)
		}
		if n++; !answers.Scan() {
			t.Fatalf("no answer: %v, want %s", answers.Err(), want)
		}
		if got := answers.Text(); !reflect.DeepEqual(without(t, got, "reported"), without(t, want, "reported")) {
			t.Errorf("%s\nthe documentation has %s", got, want)
		}
	}
	if in.Close(); answers.Scan() || n < 8 {
		t.Errorf("%d answers; after the last one: %s", n, answers.Text())
	}
	check.Also(t, cmd.Wait())
}

// without returns a JSON object without a field that always differs.
func without(t *testing.T, line, field string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	delete(m, field)
	return m
}

// example builds the example engine.
func example(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine")
	if out, err := exec.Command("go", "build", "-o", path, "../../examples/engine").CombinedOutput(); err != nil {
		t.Fatalf("building the example: %v\n%s", err, out)
	}
	return path
}

func TestConformanceOfExample(t *testing.T) {
	path := example(t)
	c := enginetest.Tiny(t, 32)[1]
	c.New = func(t *testing.T) engine.Engine {
		return protocol.New(protocol.Config{Command: protocol.Command{Name: "engine", Argv: []string{path}}})
	}
	enginetest.Run(t, c)
}
