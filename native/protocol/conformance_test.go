package protocol_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
	"llmparity/native/protocol"
)

// example builds the example engine.
func example(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine")
	if out, err := exec.Command("go", "build", "-o", path, "../../examples/engine").CombinedOutput(); err != nil {
		t.Fatalf("building the example: %v\n%s", err, out)
	}
	return path
}

func TestConformanceOfTheExample(t *testing.T) {
	path := example(t)
	c := enginetest.Tiny(t, 32)[1]
	c.New = func(t *testing.T) engine.Engine {
		return protocol.New(protocol.Config{Command: protocol.Command{Name: "engine", Argv: []string{path}}})
	}
	enginetest.Run(t, c)
}

func TestTheExampleRefusesAnEmptyPrompt(t *testing.T) {
	s, err := protocol.New(protocol.Config{Command: protocol.Command{Name: "engine", Argv: []string{example(t)}}}).Open(
		t.Context(), &enginetest.Probe{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Load(t.Context(), enginetest.TinyModel(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Generate(t.Context(), engine.Request{MaxTokens: 4}, func(record.Token) {}); err == nil ||
		err.Error() != "exec:engine: the prompt has no tokens" {
		t.Errorf("%v", err)
	}
}

// A check leaves nothing open, however often it is made.
func TestChecksLeaveNothingOpen(t *testing.T) {
	e, m := scripted("right", time.Minute), enginetest.TinyModel(t)
	check := func() int {
		if err := e.Check(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(open)
	}
	before := check() // what is opened once is open now
	for range 3 {
		if now := check(); now > before {
			t.Fatalf("%d descriptors are open, and %d were", now, before)
		}
	}
}
