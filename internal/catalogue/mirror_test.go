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

	"llmparity/assets/page"
	"llmparity/internal/catalogue"
	"llmparity/internal/mlc"
	"llmparity/internal/tiny"
)

// id is one of the catalogue, whose package the mirrors here have.
const id = "SmolLM2-135M-Instruct-q0f32-MLC"

const (
	packagePath = "/mlc-ai/" + id + "/resolve/main/"
	libraryPath = "/mlc-ai/binary-mlc-llm-libs/main/web-llm-models/v0_2_86/base/SmolLM2-135M-Instruct-q0f32_cs1k-webgpu.wasm"
)

func entry(t *testing.T) catalogue.Entry {
	t.Helper()
	e, err := builtIn(t).Find(id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func builtIn(t *testing.T) catalogue.Catalogue {
	t.Helper()
	text, err := page.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalogue.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// module is the least that is a WebAssembly module, and a section without meaning to make it longer.
var module = append([]byte("\x00asm\x01\x00\x00\x00\x00\x80\x80\x01\x04note"), make([]byte, 16379)...)

// tinyMirror is a folder with the tiny model's package in the catalogue's layout.
func tinyMirror(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	gguf := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tiny.WriteFile(gguf); err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(dir, filepath.FromSlash(packagePath))
	if _, err := mlc.Write(t.Context(), gguf, place, mlc.Options{}); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, filepath.FromSlash(libraryPath)), module)
	return dir
}

const (
	shards    = 5
	shardSize = 3 << 19
)

// randomMirror is a folder with a package of several shards, which nothing could run.
func randomMirror(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	place := filepath.Join(dir, filepath.FromSlash(packagePath))
	random := rand.NewChaCha8([32]byte{1})
	var w catalogue.Weights
	for i := range shards {
		data := make([]byte, shardSize)
		random.Read(data) // never fails
		s := catalogue.Shard{File: fmt.Sprintf("params_shard_%d.bin", i), Format: "raw-shard", Bytes: shardSize,
			MD5: fmt.Sprintf("%x", md5.Sum(data))}
		s.Tensors = []catalogue.Tensor{
			{Name: fmt.Sprintf("a%d", i), Shape: []int64{shardSize / 8}, DType: "uint32", Format: "f32-to-bf16",
				Bytes: shardSize / 2},
			{Name: fmt.Sprintf("b%d", i), Shape: []int64{4, shardSize / 16}, DType: "float32", Format: "f32-to-bf16",
				Bytes:  shardSize / 2,
				Offset: shardSize / 2},
		}
		put(t, filepath.Join(place, s.File), data)
		w.Shards = append(w.Shards, s)
	}
	putJSON(t, filepath.Join(place, "tensor-cache.json"), w)
	putJSON(t, filepath.Join(place, "mlc-chat-config.json"),
		map[string]any{"model_type": "llama", "tokenizer_files": []string{"tokenizer.json", "vocab.json"}})
	putJSON(t, filepath.Join(place, "tokenizer.json"), map[string]any{"version": "1.0"})
	put(t, filepath.Join(dir, filepath.FromSlash(libraryPath)), module)
	return dir
}

func put(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func putJSON(t *testing.T, file string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, text)
}

// changeList changes a mirror's list of weights.
func changeList(t *testing.T, dir string, change func(*catalogue.Weights)) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(packagePath), "tensor-cache.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := catalogue.ParseWeights(text)
	if err != nil {
		t.Fatal(err)
	}
	change(&w)
	putJSON(t, file, w)
}

// server is a mirror's server, which may misbehave, and knows what it was asked for and what it sent.
type server struct {
	*httptest.Server
	dir string
	// unversioned: no ETag and no date tells which version of a file it is.
	unversioned bool
	answering   sync.WaitGroup

	mu sync.Mutex
	// trouble answers a request, or doesn't and leaves it to the server. n counts those for the same file, from 1.
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

// send sends the file, or the part of it that is asked for.
func (s *server) send(w http.ResponseWriter, r *http.Request) {
	data, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(r.URL.Path)))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	name := path.Base(r.URL.Path)
	if s.unversioned {
		// What ServeFile would say of a version.
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
		return
	}
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, md5.Sum(data)))
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}

// shardsSent is how many bytes of shards went out.
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

// misbehave sets what answers instead of the server; nil: nothing does.
func (s *server) misbehave(trouble func(w http.ResponseWriter, r *http.Request, file string, n int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = trouble
}

// times is how often a file was asked for.
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

// reset begins to count anew. What is being sent to somebody who is gone counts no more.
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

// cutAfter sends an answer's head and n bytes of its body, and closes the connection. A part that was asked for
// is sent as one.
func (s *server) cutAfter(w http.ResponseWriter, r *http.Request, n int) {
	s.send(&cutting{ResponseWriter: w, left: n}, r)
}

type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(b []byte) (int, error) {
	if len(b) < c.left {
		c.left -= len(b)
		return c.ResponseWriter.Write(b)
	}
	_, _ = c.ResponseWriter.Write(b[:c.left]) // the connection is closed anyway
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}
