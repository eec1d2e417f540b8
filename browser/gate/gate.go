// Package gate serves browsers that we did not start, on this machine or on others, and nobody else. A request must
// have the token, address the server by its own name, and not come from another site. Whoever has no token can neither
// fill the server's memory nor keep others out.
package gate

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"llmparity/browser/serve"
	"llmparity/internal/kit/fault"
)

// Bounds of what somebody without the token can take: connections at a time, and time for a request's header. Browsers
// open six connections and the line; those of whom the token is known count apart.
const (
	mostStrangers = 64
	mostKnown     = 256
	mostHeader    = 16 << 10
	headerTime    = 10 * time.Second
)

// Options are where a server listens.
type Options struct {
	Listen           string // HOST:PORT for other devices, by TLS; empty: a free port on loopback
	Certificate, Key string // files; empty: a certificate that we make
	Cache            string // folder for that
}

// Server is a running server.
type Server struct {
	Base        string // address, with the token
	Fingerprint string // of the certificate; empty: there is none

	token string
	hosts map[string]bool // by which it may be addressed
	line  *listener
	http  *http.Server
}

// listener accepts connections. Of too many whose first request did not have the token, it closes the oldest, so that
// whoever is slow keeps nobody out.
type listener struct {
	net.Listener
	mu        sync.Mutex
	strangers []*connection
	known     int
}

type connection struct {
	net.Conn
	line  *listener
	known bool
	once  sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	in := &connection{Conn: c, line: l}
	l.mu.Lock()
	l.strangers = append(l.strangers, in)
	var out *connection
	if len(l.strangers) > mostStrangers {
		out = l.strangers[0]
	}
	l.mu.Unlock()
	if out != nil {
		_ = out.Close()
	}
	return in, nil
}

// Close closes the connection and forgets it.
func (c *connection) Close() error {
	c.once.Do(func() {
		c.line.mu.Lock()
		defer c.line.mu.Unlock()
		if c.known {
			c.line.known--
		}
		c.line.strangers = slices.DeleteFunc(c.line.strangers, func(s *connection) bool { return s == c })
	})
	return c.Conn.Close()
}

// knows notes that a connection's request had the token; false: there are too many.
func (l *listener) knows(c *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.known {
		return true
	}
	if l.known >= mostKnown {
		return false
	}
	l.strangers = slices.DeleteFunc(l.strangers, func(s *connection) bool { return s == c })
	c.known = true
	l.known++
	return true
}

type key struct{}

// Ends are the ends of the connection by which a request came: ours and the browser's.
func Ends(ctx context.Context) (ours, theirs net.Addr) {
	c := ctx.Value(key{}).(net.Conn) // listen has set it
	return c.LocalAddr(), c.RemoteAddr()
}

// Listen starts serving a site.
func Listen(o Options, site http.Handler) (*Server, error) {
	l, err := net.Listen("tcp", cmp.Or(o.Listen, "127.0.0.1:0"))
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "name another address with --listen HOST:PORT", "cannot listen")
	}
	at := l.Addr().(*net.TCPAddr)
	names, scheme := reached(at.IP), "http"
	s := &Server{token: rand.Text(), hosts: map[string]bool{}, line: &listener{Listener: l}}
	var config *tls.Config
	if o.Listen != "" {
		scheme = "https"
		if config, names, err = s.secure(o, names); err != nil {
			_ = l.Close() // only the first error matters
			return nil, err
		}
	}
	port := strconv.Itoa(at.Port)
	for _, name := range names {
		s.hosts[net.JoinHostPort(strings.ToLower(name), port)] = true
	}
	s.Base = fmt.Sprintf("%s://%s/%s", scheme, net.JoinHostPort(names[0], port), s.token)
	s.http = &http.Server{Handler: s.guarded(scheme, site), ReadHeaderTimeout: headerTime, IdleTimeout: time.Minute,
		MaxHeaderBytes: mostHeader, TLSConfig: config, ErrorLog: log.New(io.Discard, "", 0), // strangers could fill it
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // HTTP/1 only
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if t, ok := c.(*tls.Conn); ok {
				c = t.NetConn()
			}
			return context.WithValue(ctx, key{}, c)
		}}
	go func() { // until close
		if config != nil {
			_ = s.http.ServeTLS(s.line, "", "")
		} else {
			_ = s.http.Serve(s.line)
		}
	}()
	return s, nil
}

// Origins are those of the server by all its names, separated by spaces, as policies have them.
func (s *Server) Origins() string {
	scheme, _, _ := strings.Cut(s.Base, "://")
	var out []string
	for _, host := range slices.Sorted(maps.Keys(s.hosts)) {
		out = append(out, scheme+"://"+host)
	}
	return strings.Join(out, " ")
}

// Close ends the server.
func (s *Server) Close() error { return s.http.Close() }

// reached are the names by which a browser reaches an address: of all addresses, those of this machine.
func reached(ip net.IP) (names []string) {
	switch {
	case ip.IsLoopback():
		return append([]string{ip.String()}, "localhost")
	case !ip.IsUnspecified():
		names = append(names, ip.String())
	default:
		all, _ := net.InterfaceAddrs() // without them only the host's name is left
		for _, a := range all {
			if of, ok := a.(*net.IPNet); ok && !of.IP.IsLinkLocalUnicast() {
				names = append(names, of.IP.String())
			}
		}
		// first one that others reach
		slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	return append(names, "localhost")
}

func rank(name string) int {
	ip := net.ParseIP(name)
	switch {
	case ip.IsLoopback():
		return 2
	case ip.To4() == nil:
		return 1
	}
	return 0
}

// guarded lets in who addresses this server by its own name, has the token, and does not come from another site. A
// name of somebody else's that leads here (DNS rebinding) is not ours.
func (s *Server) guarded(scheme string, site http.Handler) http.Handler {
	inside := serve.Isolated(http.StripPrefix("/"+s.token, site))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		origin := r.Header.Get("Origin")
		c, _ := r.Context().Value(key{}).(*connection)
		switch {
		case !s.hosts[r.Host]:
			refuse(w, http.StatusMisdirectedRequest, "this server has another name")
		case subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1:
			refuse(w, http.StatusNotFound, "not found")
		case origin != scheme+"://"+r.Host && (origin != "" || changes(r)):
			refuse(w, http.StatusForbidden, "another site asks")
		case c == nil || !s.line.knows(c):
			refuse(w, http.StatusServiceUnavailable, "too many connections")
		default:
			inside.ServeHTTP(w, r)
		}
	})
}

// changes reports whether a request does more than read: then a browser says where it is from.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Upgrade") != ""
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Connection", "close")
	http.Error(w, why, status)
}
