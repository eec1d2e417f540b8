package browser

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"time"
)

// server serves the page and the model on loopback, to whoever knows the token in the path: nobody else on the machine.
type server struct {
	base string // http://127.0.0.1:port/token
	http *http.Server
	done chan error

	mu      sync.Mutex
	model   *os.Root // the package's folder
	library string   // path of the .wasm
}

// serve starts a server on a free port.
func serve(files fs.FS) (*server, error) {
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
	mux.HandleFunc("GET "+token+"/model/resolve/main/{file...}", s.serveModel)
	mux.HandleFunc("GET "+token+"/library.wasm", s.serveLibrary)
	s.http = &http.Server{Handler: isolated(mux), ReadHeaderTimeout: 10 * time.Second}
	go func() { s.done <- s.http.Serve(l) }()
	return s, nil
}

// isolated sets the headers that make the page cross-origin isolated: its clock is then precise to microseconds.
func isolated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Embedder-Policy", "require-corp")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
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

// offer makes the model at the URL returned by modelURL be p's.
func (s *server) offer(p Package) error {
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return fmt.Errorf("opening the model package: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model != nil {
		_ = s.model.Close() // was only read
	}
	s.model, s.library = root, p.Library
	return nil
}

func (s *server) modelURL() string   { return s.base + "/model/" }
func (s *server) libraryURL() string { return s.base + "/library.wasm" }

func (s *server) serveModel(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	root := s.model
	s.mu.Unlock()
	if root == nil {
		http.NotFound(w, r)
		return
	}
	http.StripPrefix(strings.TrimSuffix(r.URL.Path, r.PathValue("file")), plainFiles(root.FS())).ServeHTTP(w, r)
}

func (s *server) serveLibrary(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	library := s.library
	s.mu.Unlock()
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
