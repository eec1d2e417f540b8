// Package openaitest starts real servers for tests.
package openaitest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/check"
	"llmparity/native/launch"
	"llmparity/native/llamacpp"
	"llmparity/native/wire"
)

// Server is a server that runs until the end of the test.
type Server struct {
	URL string // without a path
	PID int
}

// Llama starts a llama-server with a model. It computes as precisely as that of package llamacpp; args can override
// its flags.
func Llama(t testing.TB, path string, args ...string) Server {
	t.Helper()
	binary, err := llamacpp.Find(llamacpp.Config{Cache: cache.Dir(os.Getenv)})
	check.Err(t, err)
	port := FreePort(t)
	cmd := exec.Command(binary, append([]string{"-m", path, "--host", "127.0.0.1", "--port", fmt.Sprint(port),
		"-t", "1", "-tb", "1", "-ngl", "0", "-dev", "none", "-ctk", "f32", "-ctv", "f32", "-fa", "off", "-fit", "off",
		"--no-warmup", "--no-webui", "--offline"}, args...)...)
	return start(t, cmd, port, "/health")
}

// start starts a server and waits until it is healthy.
func start(t testing.TB, cmd *exec.Cmd, port int, health string) Server {
	t.Helper()
	p, err := launch.Start(context.Background(), cmd, launch.Options{Name: cmd.Path, Log: engine.Unmeasured{}.Log(""),
		Keep: 8 << 10})
	check.Err(t, err)
	t.Cleanup(func() { p.End(0) })
	client := wire.Client{Base: fmt.Sprintf("http://127.0.0.1:%d", port), HTTP: wire.NewClient(true)}
	_, _, err = p.Await(t.Context(), 5*time.Minute, func(ctx context.Context) (answers, ready bool) {
		err := client.Call(ctx, http.MethodGet, health, nil, nil)
		return err == nil || wire.RefusalOf(err) != nil, err == nil
	})
	if err != nil {
		t.Fatalf("%v:\n%s", err, strings.Join(p.Tail.Lines(30), "\n"))
	}
	return Server{URL: client.Base, PID: p.PID()}
}

// FreePort returns a port that was free a moment ago.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := child.FreePort()
	check.Err(t, err)
	return port
}
