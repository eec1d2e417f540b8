package webllm

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"llmparity/browser/serve"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// site serves the page, WebLLM's module and one model at a time.
type site struct {
	http.Handler
	bundle Bundle
	sha256 string // of the bundle

	mu      sync.Mutex
	offers  int      // number so far, part of URLs
	same    bool     // all have the URL of the first, which the browser's store has
	model   *os.Root // the package's folder
	library string   // path of the .wasm
	missed  []string // requested files of the model that do not exist
}

func newSite(b Bundle) (*site, error) {
	code, err := b.read()
	if err != nil {
		return nil, err
	}
	s := &site{bundle: b, sha256: fmt.Sprintf("%x", sha256.Sum256(code))}
	mux := http.NewServeMux()
	mux.Handle("GET /", serve.Files(scripts))
	mux.HandleFunc("GET /engine/web-llm.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "web-llm.js", time.Time{}, bytes.NewReader(code))
	})
	mux.HandleFunc("GET /{offer}/model/resolve/main/{file...}", s.serveModel)
	mux.HandleFunc("GET /{offer}/library.wasm", func(w http.ResponseWriter, r *http.Request) {
		if _, library := s.offered(r); library != "" {
			http.ServeFile(w, r, library)
			return
		}
		http.NotFound(w, r)
	})
	s.Handler = mux
	return s, nil
}

// offer serves a package's files, and returns their path. Each offer has a new one, because WebLLM caches by
// URL.
func (s *site) offer(p Package) (string, error) {
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return "", fmt.Errorf("opening the model package: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model != nil {
		_ = s.model.Close() // it was only read
	}
	s.model, s.library, s.missed = root, p.Library.Path, nil
	if s.offers == 0 || !s.same {
		s.offers++
	}
	return strconv.Itoa(s.offers), nil
}

// offered returns what is served at the request's URL; nothing if that offer has been replaced.
func (s *site) offered(r *http.Request) (model *os.Root, library string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.PathValue("offer") != strconv.Itoa(s.offers) {
		return nil, ""
	}
	return s.model, s.library
}

func (s *site) serveModel(w http.ResponseWriter, r *http.Request) {
	model, _ := s.offered(r)
	if model == nil {
		http.NotFound(w, r)
		return
	}
	file := r.PathValue("file")
	root := strings.TrimSuffix(r.URL.Path, file)
	_, err := model.Stat(file)
	// the list of weights was renamed in WebLLM 0.2.80
	other := map[string]string{"ndarray-cache.json": "tensor-cache.json",
		"tensor-cache.json": "ndarray-cache.json"}[file]
	if err != nil && other != "" {
		if _, err = model.Stat(other); err == nil {
			r.URL.Path = root + other
		}
	}
	if err != nil {
		s.mu.Lock()
		s.missed = append(s.missed, file)
		s.mu.Unlock()
	}
	http.StripPrefix(root, serve.Folder(model.FS())).ServeHTTP(w, r)
}

// lacks lists missing files of the model, which WebLLM's errors do not name.
func (s *site) lacks() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.missed) == 0 {
		return ""
	}
	return " (the package lacks " + strings.Join(s.missed, ", ") + ")"
}

func (s *site) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil {
		return nil
	}
	err := s.model.Close()
	s.model = nil
	return err
}
