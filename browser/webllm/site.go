package webllm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"llmparity/assets/page"
	"llmparity/browser"
)

// site is the page, WebLLM's module and one model at a time.
type site struct {
	http.Handler
	bundle Bundle
	sha256 string // of the bundle

	mu      sync.Mutex
	offers  int      // so far; part of the addresses
	model   *os.Root // the package's folder
	library string   // path of the .wasm
	missed  []string // files of the model that were asked for in vain
}

func newSite(b Bundle) (*site, error) {
	code, err := b.read()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(code)
	s := &site{bundle: b, sha256: hex.EncodeToString(sum[:])}
	mux := http.NewServeMux()
	mux.Handle("GET /", browser.Files(page.Files()))
	mux.HandleFunc("GET /"+page.Module, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, page.Module, time.Time{}, bytes.NewReader(code))
	})
	mux.HandleFunc("GET /{offer}/model/resolve/main/{file...}", s.serveModel)
	mux.HandleFunc("GET /{offer}/library.wasm", s.serveLibrary)
	s.Handler = mux
	return s, nil
}

// page is what a browser shows of the site.
func (s *site) page() browser.Site {
	return browser.Site{Handler: s, Title: Memory.Title, Imports: s.bundle.String(),
		Do: "run make setup and build again, or choose another --webllm-version or --webllm-bundle"}
}

// offer serves p's files and gives the path below which they are. Every offer has another one, for WebLLM caches by
// address: what was loaded before must not come back in place of p.
func (s *site) offer(p Package) (string, error) {
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return "", fmt.Errorf("opening the model package: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model != nil {
		_ = s.model.Close() // was only read
	}
	s.model, s.library, s.missed = root, p.Library.Path, nil
	s.offers++
	return fmt.Sprintf("/%d", s.offers), nil
}

// offered gives what is served at the request's address: nothing where the offer has been replaced.
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
	if other := otherName(file); err != nil && other != "" {
		if _, err = model.Stat(other); err == nil {
			r.URL.Path = root + other
		}
	}
	if err != nil {
		s.mu.Lock()
		s.missed = append(s.missed, file)
		s.mu.Unlock()
	}
	http.StripPrefix(root, browser.Files(model.FS())).ServeHTTP(w, r)
}

// otherName is what a file of a package was called at another time: the list of the weights, up to WebLLM 0.2.79.
func otherName(file string) string {
	switch file {
	case "ndarray-cache.json":
		return "tensor-cache.json"
	case "tensor-cache.json":
		return "ndarray-cache.json"
	}
	return ""
}

// lacks says which files of the offered model were asked for in vain: WebLLM's own errors don't name them.
func (s *site) lacks() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.missed) == 0 {
		return ""
	}
	return " (the package lacks " + strings.Join(s.missed, ", ") + ")"
}

func (s *site) serveLibrary(w http.ResponseWriter, r *http.Request) {
	if _, library := s.offered(r); library != "" {
		http.ServeFile(w, r, library)
		return
	}
	http.NotFound(w, r)
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
