// Package byhand serves a page that a person opens in any browser, on this machine or on another device, to measure
// engines there: choose, press Start, watch, save. It reaches browsers that no command can start.
//
// What is measured is measured as in other runs: package visitor makes a driver of the person's browser.
package byhand

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"llmparity/browser/byhand/visitor"
	"llmparity/browser/driver"
	"llmparity/browser/gate"
	"llmparity/browser/serve"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
)

//go:embed page
var embedded embed.FS

// files are the page that a person sees.
var files, _ = fs.Sub(embedded, "page") // it exists

// Options are what a server offers.
type Options struct {
	Engines []Engine
	Models  []string // by names of package models; the first is the default
	Style   string   // style sheet of reports
	Out     string   // folder for saved runs
	Gate    gate.Options

	// Plan are arguments of a plan that every visitor runs; nil: visitors choose.
	Plan []string

	// Run runs what arguments of `llmparity run` say in a person's browser. It writes lines of JSON to events, as
	// run --json does, and remarks for people to notes.
	Run func(ctx context.Context, hand driver.Hand, args []string, events, notes io.Writer) error
	// Export writes a run's folder as csv or json.
	Export func(w io.Writer, dir, format string) error
	// Say prints a line.
	Say func(string)
}

// Server serves the page.
type Server struct {
	Options
	*gate.Server
	scratch string
	ctx     context.Context
	stop    context.CancelFunc
	ended   sync.WaitGroup // what visitors started

	mu      sync.Mutex
	last    int // number of a site or file
	open    map[*visit]bool
	sites   map[int]http.Handler
	uploads map[string]string // files by their titles
	runs    []*Run
	took    map[string]bool          // browsers that have run the plan
	turns   map[string]chan struct{} // by machine
	done    chan *Run                // runs of the plan
}

// Start starts the server.
func Start(o Options) (*Server, error) {
	scratch, err := child.Scratch("page")
	if err != nil {
		return nil, fault.WriteError(err, os.TempDir(), "set TMPDIR to another folder")
	}
	s := &Server{Options: o, scratch: scratch, open: map[*visit]bool{}, sites: map[int]http.Handler{},
		uploads: map[string]string{}, took: map[string]bool{}, turns: map[string]chan struct{}{},
		done: make(chan *Run, 64)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if s.Server, err = gate.Listen(o.Gate, s.pages()); err != nil {
		s.stop()
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	return s, nil
}

// Close ends all measurements and removes what was not saved.
func (s *Server) Close() error {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	err := s.Server.Close()
	s.ended.Wait()
	return errors.Join(err, os.RemoveAll(s.scratch))
}

// Welcome says where the page is.
func (s *Server) Welcome() string {
	text := fmt.Sprintf("The page is at %s/\nWhoever has this address can measure here. Ctrl-C ends it; runs that "+
		"are not saved go with it.", s.Base)
	if s.Fingerprint != "" {
		text += fmt.Sprintf("\nIts certificate has the SHA-256 fingerprint %s; accept it once in the browser.\n%s",
			s.Fingerprint, code(s.Base+"/"))
	}
	return text
}

// number returns a new number.
func (s *Server) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last
}

// pages are the parts of the site, behind the guard.
func (s *Server) pages() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", s.page(serve.Folder(files)))
	mux.Handle("GET /own/", http.StripPrefix("/own", serve.Files(nil)))
	mux.HandleFunc("GET /report.css", s.text("text/css", func() (string, error) { return s.Style, nil }))
	mux.HandleFunc("GET /line.js", s.text("text/javascript", func() (string, error) { return visitor.Script, nil }))
	mux.HandleFunc("GET /echarts.js", s.text("text/javascript", library))
	mux.HandleFunc("GET /line", s.connect)
	mux.HandleFunc("GET /site/{n}/", s.site)
	mux.HandleFunc("PUT /model/{name}", s.upload)
	mux.HandleFunc("GET /runs/{n}/{format}", s.export)
	mux.HandleFunc("POST /runs/{n}/save", s.save)
	return mux
}

// policy lets the page load what we serve, and have frames of it. Charts set styles by script, which it allows.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self' %s; frame-src %s; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page serves what the person sees, under a policy of its own.
func (s *Server) page(of http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := "ws://" + r.Host
		if r.TLS != nil {
			line = "wss://" + r.Host
		}
		w.Header().Set("Content-Security-Policy", fmt.Sprintf(policy, line, s.Origins()))
		of.ServeHTTP(w, r)
	})
}

func (s *Server) text(kind string, of func() (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		text, err := of()
		if err != nil {
			http.Error(w, fault.OneLine(err.Error()), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		_, _ = io.WriteString(w, text) // fails if the browser has gone
	}
}

// mount makes a site reachable, below the token, until the function that it returns is called.
func (s *Server) mount(site http.Handler) (path string, end func() error) {
	n := s.number()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sites[n] = site
	return fmt.Sprintf("/site/%d", n), func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sites, n)
		return nil
	}
}

func (s *Server) site(w http.ResponseWriter, r *http.Request) {
	n := r.PathValue("n")
	s.mu.Lock()
	site := s.sites[atoi(n)]
	s.mu.Unlock()
	if site == nil {
		http.NotFound(w, r)
		return
	}
	http.StripPrefix("/site/"+n, site).ServeHTTP(framed{w, s.Origins()}, r)
}

// framed is an answer that the person's page, and no other, may have in a frame, also under another name of ours.
type framed struct {
	http.ResponseWriter
	by string
}

func (f framed) WriteHeader(status int) {
	f.Header().Add("Content-Security-Policy", "frame-ancestors "+f.by)
	f.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	f.ResponseWriter.WriteHeader(status)
}

// Collect waits until so many browsers have run the plan, or the time is over. It returns the folders of their runs.
func (s *Server) Collect(ctx context.Context, count int, within time.Duration) (dirs []string) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for len(dirs) < count {
		select {
		case <-ctx.Done():
			return dirs
		case r := <-s.done:
			if dir, err := s.keep(r); err != nil {
				s.Say(fault.OneLine(err.Error()))
			} else {
				dirs = append(dirs, dir)
				s.Say(fmt.Sprintf("%d of %d: %s: %s", len(dirs), count, r.Who, dir))
			}
		}
	}
	return dirs
}

// keep copies a run's folder to where it stays.
func (s *Server) keep(r *Run) (dir string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Saved != "" {
		return r.Saved, nil
	}
	dir = filepath.Join(s.Out, filepath.Base(r.dir))
	if err := os.CopyFS(dir, os.DirFS(r.dir)); err != nil {
		return "", fault.WriteError(err, dir, "name another folder with --out")
	}
	r.Saved = dir
	return dir, nil
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // fails if the browser has gone
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0 // no number of ours
	}
	return n
}
