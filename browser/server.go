package browser

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"llmparity/assets/page"
)

// server serves the page and the model on loopback, to whoever knows the token in the path: nobody else on the machine.
type server struct {
	base string // http://127.0.0.1:port/token
	http *http.Server
	done chan error

	mu      sync.Mutex
	offers  int      // so far; part of the addresses
	model   *os.Root // the package's folder
	library string   // path of the .wasm
	missed  []string // files of the model that were asked for in vain
}

// serve starts a server on a free port: files, and bundle as WebLLM's module.
func serve(files fs.FS, bundle []byte) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening on loopback: %w", err)
	}
	var b [16]byte
	rand.Read(b[:]) // never fails
	token := "/" + hex.EncodeToString(b[:])
	s := &server{base: "http://" + l.Addr().String() + token, done: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.Handle("GET "+token+"/", http.StripPrefix(token, plainFiles(files)))
	mux.HandleFunc("GET "+token+"/"+page.Module, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, page.Module, time.Time{}, bytes.NewReader(bundle))
	})
	mux.HandleFunc("GET "+token+"/{offer}/model/resolve/main/{file...}", s.serveModel)
	mux.HandleFunc("GET "+token+"/{offer}/library.wasm", s.serveLibrary)
	s.http = &http.Server{Handler: isolated(mux), ReadHeaderTimeout: 10 * time.Second}
	go func() { s.done <- s.http.Serve(l) }()
	return s, nil
}

// offline is what the page may do: run what we serve, compile wasm, and talk to nobody else.
const offline = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self' data:; img-src data:; style-src 'self'"

// isolated sets the headers that make the page cross-origin isolated: its clock is then precise to microseconds.
func isolated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Embedder-Policy", "require-corp")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", offline)
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// plainFiles serves files, and index.html for the root; it lists nothing.
func plainFiles(files fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
		if name == "" {
			name = "index.html"
		}
		if i, err := fs.Stat(files, name); err != nil || !i.Mode().IsRegular() {
			http.NotFound(w, r)
			return
		}
		http.ServeFileFS(w, r, files, name)
	})
}

// offer serves p's files and gives the address below which they are. Every offer has another one, for WebLLM caches by
// address: what was loaded before must not come back in place of p.
func (s *server) offer(p Package) (string, error) {
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
	return fmt.Sprintf("%s/%d", s.base, s.offers), nil
}

// offered gives what is served at the request's address: nothing where the offer has been replaced.
func (s *server) offered(r *http.Request) (model *os.Root, library string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.PathValue("offer") != strconv.Itoa(s.offers) {
		return nil, ""
	}
	return s.model, s.library
}

func (s *server) serveModel(w http.ResponseWriter, r *http.Request) {
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
	http.StripPrefix(root, plainFiles(model.FS())).ServeHTTP(w, r)
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
func (s *server) lacks() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.missed) == 0 {
		return ""
	}
	return " (the package lacks " + strings.Join(s.missed, ", ") + ")"
}

func (s *server) serveLibrary(w http.ResponseWriter, r *http.Request) {
	_, library := s.offered(r)
	if library == "" {
		http.NotFound(w, r)
		return
	}
	http.ServeFile(w, r, library)
}

// close frees the port.
func (s *server) close() error {
	err := s.http.Close()
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	s.done <- http.ErrServerClosed // for a second close
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model != nil {
		err = errors.Join(err, s.model.Close())
		s.model = nil
	}
	return err
}
