package openaitest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"llmparity/internal/cache"
	"llmparity/internal/check"
	"llmparity/native/ollama"
	"llmparity/native/wire"
)

// Ollama starts an Ollama with a single model, made from a GGUF file and a template.
func Ollama(t testing.TB, path, name, template string) Server {
	t.Helper()
	binary, err := ollama.Find(ollama.Config{Cache: cache.Dir(os.Getenv)})
	check.Err(t, err)
	dir, port := t.TempDir(), FreePort(t)
	cmd := exec.Command(binary, "serve")
	cmd.Env = append(os.Environ(), "HOME="+dir, "OLLAMA_MODELS="+filepath.Join(dir, "models"),
		fmt.Sprintf("OLLAMA_HOST=127.0.0.1:%d", port),
		"OLLAMA_NUM_PARALLEL=2", "OLLAMA_CONTEXT_LENGTH=1024", "CUDA_VISIBLE_DEVICES=-1")
	s := start(t, cmd, port, "/api/version")
	client := wire.Client{Base: s.URL, HTTP: wire.NewClient(nil)}
	file := check.Read(t, path)
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(file))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/blobs/"+digest,
		bytes.NewReader(file))
	check.Err(t, err)
	resp, err := client.Do(req)
	check.Err(t, err)
	resp.Body.Close()
	check.Err(t, client.Call(t.Context(), http.MethodPost, "/api/create", map[string]any{"model": name,
		"files": map[string]string{"m.gguf": digest}, "template": template, "stream": false}, nil))
	return s
}
