package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/truth"
)

// shared is the browser that the tests use that don't harm it, with the tiny model loaded.
var shared struct {
	once    sync.Once
	session *session
	probe   enginetest.Probe
	err     error
}

// TestMain gives the tests a temporary folder of their own, which must be empty in the end. Its path is short: a
// browser's socket has to fit below it.
func TestMain(m *testing.M) {
	if address := os.Getenv(bareAddress); address != "" {
		if err := bareScript(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(takesMemory) != "" {
		if err := truth.Allocate(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	temporary, err := os.MkdirTemp("", "lp")
	if err == nil {
		err = os.Setenv("TMPDIR", temporary)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	code := m.Run()
	for _, s := range []*session{shared.session, sharedIdle.session} {
		if s == nil {
			continue
		}
		if err := s.Close(); err != nil {
			fmt.Println("closing a shared browser:", err)
			code = 1
		}
	}
	if err := errors.Join(sharedPlain.plain.close(), sharedPlain.plain.complaint()); err != nil {
		fmt.Println("closing the shared page's browser:", err)
		code = 1
	}
	if err := os.RemoveAll(files.dir); err != nil {
		fmt.Println(err)
		code = 1
	}
	if left := leftBehind(); len(left) > 0 {
		fmt.Println("left behind:", left)
		code = 1
	}
	if err := goleak.Find(); err != nil {
		fmt.Println(err)
		code = 1
	}
	left, err := os.ReadDir(temporary)
	if err = errors.Join(err, os.RemoveAll(temporary)); err != nil || len(left) > 0 {
		fmt.Println("left in the temporary folder:", left, err)
		code = 1
	}
	os.Exit(code)
}

// leftBehind lists folders and processes of ours. It looks at command lines too: Chrome's children overwrite the
// environment that carries our tag.
func leftBehind() []string {
	left := child.Scratches(os.Getpid())
	for _, pid := range child.Tagged(os.Getpid()) {
		left = append(left, fmt.Sprintf("/proc/%d", pid))
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well formed
	for _, l := range lines {
		text, err := os.ReadFile(l)
		if err == nil && strings.Contains(string(text), fmt.Sprintf("llmparity-%d-chrome", os.Getpid())) {
			left = append(left, filepath.Dir(l))
		}
	}
	return left
}

func loaded(t *testing.T) *session {
	t.Helper()
	c, m := tinyModel(t)
	shared.once.Do(func() {
		var s engine.Session
		// Not the test's own context: the browser outlives it.
		if s, shared.err = New(c).Open(context.Background(), &shared.probe); shared.err == nil {
			shared.session = s.(*session)
			shared.err = s.Load(context.Background(), m)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.session
}

// sharedIdle is a browser that has no model loaded, for tests that load what they want.
var sharedIdle struct {
	once    sync.Once
	session *session
	probe   enginetest.Probe
	err     error
}

// idle is a session without a model, in a browser that others loaded theirs in before. Its engine packages the tiny
// model again.
func idle(t *testing.T) (*session, *enginetest.Probe) {
	t.Helper()
	c, _ := tinyModel(t)
	h := &sharedIdle
	h.once.Do(func() {
		var s engine.Session
		c.Adapter = SwiftShader
		if s, h.err = New(c).Open(context.Background(), &h.probe); h.err == nil { // the browser outlives the test
			h.session = s.(*session)
		}
	})
	if h.err != nil {
		t.Fatal(h.err)
	}
	s := h.session
	s.webllm.config.Package = c.Package
	clear(s.webllm.packages)
	if err := s.Unload(watched(t)); err != nil { // of what a test that failed has left, too
		t.Fatal(err)
	}
	return s, &h.probe
}

// fresh opens a browser of the test's own.
func fresh(t *testing.T, c Config) (*session, *enginetest.Probe) {
	t.Helper()
	probe := &enginetest.Probe{}
	s, err := New(c).Open(watched(t), probe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s.(*session), probe
}

// watched is a context with a watchdog.
func watched(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
