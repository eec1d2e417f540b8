package catalogue_test

import (
	"bytes"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"llmparity/assets/bundle"
	"llmparity/internal/kit/check"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/tiny"
)

// id is a model of the catalogue; the mirrors here have its package.
const id = "SmolLM2-135M-Instruct-q0f32-MLC"

const (
	packagePath = "/mlc-ai/" + id + "/resolve/main/"
	libraryPath = "/mlc-ai/binary-mlc-llm-libs/main/web-llm-models/v0_2_86/base/SmolLM2-135M-Instruct-q0f32_cs1k-webgpu.wasm"
)

func entry(t *testing.T) catalogue.Entry {
	t.Helper()
	e, err := builtIn(t).Find(id)
	check.Err(t, err)
	return e
}

func builtIn(t *testing.T) catalogue.Catalogue {
	t.Helper()
	text, err := bundle.Catalogue()
	check.Err(t, err)
	c, err := catalogue.Parse(text)
	check.Err(t, err)
	return c
}

// module is an empty WebAssembly module with a custom section.
var module = append([]byte("\x00asm\x01\x00\x00\x00\x00\x80\x80\x01\x04note"), make([]byte, 16379)...)

// tinyMirror is a folder with the tiny model's package in the catalogue's layout.
func tinyMirror(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	gguf := filepath.Join(t.TempDir(), "tiny.gguf")
	check.Err(t, tiny.WriteFile(gguf))
	place := filepath.Join(dir, filepath.FromSlash(packagePath))
	_, err := mlc.Write(t.Context(), gguf, place, mlc.Options{})
	check.Err(t, err)
	put(t, filepath.Join(dir, filepath.FromSlash(libraryPath)), module)
	return dir
}

const (
	shards    = 5
	shardSize = 3 << 19
)

// randomMirror is a folder with a package of several shards of random bytes.
func randomMirror(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	place := filepath.Join(dir, filepath.FromSlash(packagePath))
	random := rand.NewChaCha8([32]byte{1})
	var list listed
	for i := range shards {
		data := make([]byte, shardSize)
		random.Read(data) // never fails
		s := mlc.Shard{File: fmt.Sprintf("params_shard_%d.bin", i), Format: "raw-shard", Bytes: shardSize,
			MD5: fmt.Sprintf("%x", md5.Sum(data))}
		s.Tensors = []mlc.Tensor{
			{Name: fmt.Sprintf("a%d", i), Shape: []int64{shardSize / 8}, DType: "uint32", Format: "f32-to-bf16",
				Bytes: shardSize / 2},
			{Name: fmt.Sprintf("b%d", i), Shape: []int64{4, shardSize / 16}, DType: "float32", Format: "f32-to-bf16",
				Bytes:  shardSize / 2,
				Offset: shardSize / 2},
		}
		put(t, filepath.Join(place, s.File), data)
		list.Records = append(list.Records, s)
	}
	putJSON(t, filepath.Join(place, "tensor-cache.json"), list)
	putJSON(t, filepath.Join(place, "mlc-chat-config.json"),
		map[string]any{"model_type": "llama", "quantization": "q0f32",
			"tokenizer_files": []string{"tokenizer.json", "vocab.json"}})
	putJSON(t, filepath.Join(place, "tokenizer.json"), map[string]any{"version": "1.0"})
	put(t, filepath.Join(dir, filepath.FromSlash(libraryPath)), module)
	return dir
}

func put(t *testing.T, file string, data []byte) {
	t.Helper()
	check.Err(t, os.MkdirAll(filepath.Dir(file), 0o755))
	check.Err(t, os.WriteFile(file, data, 0o644))
}

func putJSON(t *testing.T, file string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	check.Err(t, err)
	put(t, file, text)
}

// listed is a package's list of weights.
type listed struct {
	Records []mlc.Shard `json:"records"`
}

// changeList changes a mirror's list of weights.
func changeList(t *testing.T, dir string, change func([]mlc.Shard)) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(packagePath), "tensor-cache.json")
	text := check.Read(t, file)
	shards, err := mlc.ParseShards(text)
	check.Err(t, err)
	change(shards)
	putJSON(t, file, listed{shards})
}

// server is a mirror's server that may misbehave. It counts requests and bytes.
type server struct {
	*httptest.Server
	dir       string
	answering sync.WaitGroup

	mu sync.Mutex
	// trouble answers a request and returns true, or leaves it to the server. n counts requests for the file, from 1.
	trouble func(w http.ResponseWriter, r *http.Request, file string, n int) bool
	asked   map[string]int
	sent    map[string]int64
}

func serve(t *testing.T, dir string) *server {
	t.Helper()
	s := &server{dir: dir, asked: map[string]int{}, sent: map[string]int64{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.answering.Add(1)
	defer s.answering.Done()
	file := path.Base(r.URL.Path)
	s.mu.Lock()
	s.asked[file]++
	n, trouble := s.asked[file], s.trouble
	s.mu.Unlock()
	counted := &counting{ResponseWriter: w, count: func(n int) {
		s.mu.Lock()
		s.sent[file] += int64(n)
		s.mu.Unlock()
	}}
	if trouble != nil && trouble(counted, r, file, n) {
		return
	}
	s.send(counted, r)
}

// send sends the file, or the requested range of it.
func (s *server) send(w http.ResponseWriter, r *http.Request) {
	data, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(r.URL.Path)))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, path.Base(r.URL.Path), time.Time{}, bytes.NewReader(data))
}

// shardsSent returns the bytes of shards that were sent.
func (s *server) shardsSent() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for file, sent := range s.sent {
		if strings.HasPrefix(file, "params_shard") {
			n += sent
		}
	}
	return n
}

// misbehave sets the function that answers instead of the server; nil: none.
func (s *server) misbehave(trouble func(w http.ResponseWriter, r *http.Request, file string, n int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = trouble
}

// times returns the number of requests for a file.
func (s *server) times(file string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[file]
}

func (s *server) requests() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asked := range s.asked {
		n += asked
	}
	return n
}

// reset waits for running answers and sets the counts to zero.
func (s *server) reset() {
	s.answering.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.sent = map[string]int{}, map[string]int64{}
}

type counting struct {
	http.ResponseWriter
	count func(int)
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.count(n)
	return n, err
}

func (c *counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// cutAfter sends the head of an answer and n bytes of its body, and closes the connection.
func (s *server) cutAfter(w http.ResponseWriter, r *http.Request, n int) {
	s.send(&stopping{w, n, func() { panic(http.ErrAbortHandler) }}, r)
}

// stopping calls stop when so much was written.
type stopping struct {
	http.ResponseWriter
	left int
	stop func()
}

func (s *stopping) Write(b []byte) (int, error) {
	n, err := s.ResponseWriter.Write(b[:min(len(b), s.left)])
	if s.left -= n; s.left <= 0 {
		_ = http.NewResponseController(s.ResponseWriter).Flush()
		s.stop()
	}
	return n, err
}
