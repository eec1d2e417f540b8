// Package openaitest starts real servers for tests: a llama-server, as a user would have it running.
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

	"llmparity/internal/cache"
	"llmparity/internal/child"
	"llmparity/native/llamacpp"
)

// Server is one that runs until the test's end.
type Server struct {
	URL  string // without a path
	Port int
	PID  int
}

// Llama starts a llama-server with a model, computing as exactly as the project's own, with further arguments; flags in
// them override.
func Llama(t testing.TB, path string, args ...string) Server {
	t.Helper()
	return run(t, append([]string{"-m", path}, args...))
}

// Router starts a llama-server that starts others, one for each model of a folder that is asked for.
func Router(t testing.TB, dir string, args ...string) Server {
	t.Helper()
	return run(t, append([]string{"--models-dir", dir}, args...))
}

func run(t testing.TB, args []string) Server {
	t.Helper()
	binary, err := llamacpp.Find(llamacpp.Config{Cache: cache.Dir(os.Getenv)})
	if err != nil {
		t.Fatal(err)
	}
	port := FreePort(t)
	cmd := exec.Command(binary, append([]string{"--host", "127.0.0.1", "--port", fmt.Sprint(port), "-t", "1", "-tb",
		"1",
		"-ngl", "0", "-dev", "none", "-ctk", "f32", "-ctv", "f32", "-fa", "off", "-fit", "off", "--no-warmup",
		"--no-webui", "--offline"}, args...)...)
	tail := &child.Tail{Max: 8 << 10}
	cmd.Stdout, cmd.Stderr = tail, tail
	ctx, cancel := context.WithCancel(context.Background())
	p, err := child.Start(ctx, cmd)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop(0)
		cancel()
	})
	s := Server{URL: fmt.Sprintf("http://127.0.0.1:%d", port), Port: port, PID: p.PID()}
	Await(t, s.URL+"/health", p, tail)
	return s
}

// Await waits until a server answers with 200.
func Await(t testing.TB, url string, p *child.Process, tail *child.Tail) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if resp, err := client.Get(url); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-p.Done():
			t.Fatalf("the server ended (%v):\n%s", p.Err(), strings.Join(tail.Lines(30), "\n"))
		default:
		}
	}
	t.Fatalf("no answer of %s:\n%s", url, strings.Join(tail.Lines(30), "\n"))
}

// FreePort gives a port that was free a moment ago.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := child.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}
