package openaitest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"llmparity/internal/cache"
	"llmparity/internal/child"
	"llmparity/native/ollama"
)

// Ollama starts an Ollama whose store has nothing in it but the GGUF, under a name, with a template.
func Ollama(t testing.TB, path, name, template string) Server {
	t.Helper()
	binary, err := ollama.Find(ollama.Config{Cache: cache.Dir(os.Getenv)})
	if err != nil {
		t.Fatal(err)
	}
	dir, port := t.TempDir(), FreePort(t)
	cmd := exec.Command(binary, "serve")
	cmd.Env = append(os.Environ(), "HOME="+dir, "OLLAMA_MODELS="+filepath.Join(dir, "models"),
		fmt.Sprintf("OLLAMA_HOST=127.0.0.1:%d", port),
		"OLLAMA_NUM_PARALLEL=2", "OLLAMA_CONTEXT_LENGTH=1024", "CUDA_VISIBLE_DEVICES=-1")
	tail := &child.Tail{Max: 8 << 10}
	cmd.Stdout, cmd.Stderr = tail, tail
	ctx, cancel := context.WithCancel(context.Background())
	p, err := child.Start(ctx, cmd)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop(5 * time.Second) // with its runner
		cancel()
	})
	s := Server{URL: fmt.Sprintf("http://127.0.0.1:%d", port), Port: port, PID: p.PID()}
	Await(t, s.URL+"/api/version", p, tail)

	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(file))
	post(t, s.URL+"/api/blobs/"+digest, file)
	body, err := json.Marshal(map[string]any{"model": name, "files": map[string]string{"m.gguf": digest},
		"template": template, "stream": false})
	if err != nil {
		t.Fatal(err)
	}
	post(t, s.URL+"/api/create", body)
	return s
}

func post(t testing.TB, url string, body []byte) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s: %s %v\n%s", url, resp.Status, err, text)
	}
}
