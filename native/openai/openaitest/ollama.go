package openaitest

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
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
	client := wire.Client{Base: s.URL, HTTP: wire.NewClient(true)}
	sum, err := cache.HashFile(path)
	check.Err(t, err)
	file, err := os.Open(path)
	check.Err(t, err)
	defer file.Close()
	check.Err(t, client.Call(t.Context(), http.MethodPost, "/api/blobs/sha256:"+sum, file, nil))
	check.Err(t, client.Call(t.Context(), http.MethodPost, "/api/create", map[string]any{"model": name,
		"files": map[string]string{"m.gguf": "sha256:" + sum}, "template": template, "stream": false}, nil))
	return s
}
