// Package serve serves an engine's page and its files to the browser, and to nobody else.
package serve

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	"llmparity/assets/page"
)

// Server serves a site on loopback, only to those who know the token in the path.
type Server struct {
	Base string // http://127.0.0.1:port/token
	end  func() error
}

// At is a site that another server serves at an address, until end.
func At(base string, end func() error) *Server { return &Server{base, end} }

// Loopback starts a server on a free port.
func Loopback(site http.Handler) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening on loopback: %w", err)
	}
	token := "/" + rand.Text()
	mux := http.NewServeMux()
	mux.Handle("GET "+token+"/", http.StripPrefix(token, site))
	server := &http.Server{Handler: Isolated(mux), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }() // until close
	return &Server{"http://" + l.Addr().String() + token, server.Close}, nil
}

// offline restricts the page to running what we serve, compiling wasm, and talking to us.
const offline = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self' data:; img-src data:; style-src 'self'"

// Isolated makes the page cross-origin isolated, which gives its clock microsecond precision.
func Isolated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Embedder-Policy", "require-corp")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		policy := offline
		if path.Base(r.URL.Path) == "worker.js" && r.URL.Query().Has("relay") &&
			r.URL.Query().Get("relay") == "" { // it evaluates the host's expressions
			policy = strings.Replace(offline, "script-src", "script-src 'unsafe-eval'", 1)
		}
		h.Set("Content-Security-Policy", policy)
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// Files serves the page's files, and an engine's scripts below /engine/.
func Files(scripts fs.FS) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", Folder(page.Files()))
	if scripts != nil {
		mux.Handle("GET /engine/", http.StripPrefix("/engine", Folder(scripts)))
	}
	return mux
}

// Folder serves files, with index.html for the root, and no listings.
func Folder(files fs.FS) http.Handler {
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

// Close frees the port.
func (s *Server) Close() error { return s.end() }
