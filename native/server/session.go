package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/openai"
	"llmparity/native/server/startup"
	"llmparity/native/wire"
)

// errClosed is returned if the server was ended during a call or before it.
var errClosed = engine.Fail(record.Cancelled, "the session with the server is closed")

// grace is how long a server may take to end. vLLM ends its processes one after the other.
const grace = 10 * time.Second

// starting is how long a server may take until it answers. The plan's timeout is shorter.
const starting = 24 * time.Hour

// session is one launch.
type session struct {
	engine *Engine
	probe  engine.Probe
	path   string
	sha256 string
	onCPU  bool

	weights record.Sameness // of a folder that was made of a GGUF

	own launch.Held[process]
}

// process is a running server with the session on it.
type process struct {
	*launch.Program
	read    *startup.Log
	args    []string
	scratch string
	name    string // of the program

	mu    sync.Mutex     // Close may be called during a Load
	inner openai.Session // nil until it is ready
}

// Load starts the server and waits until it has the model.
func (s *session) Load(ctx context.Context, m models.Model) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("loading %s: %w", m.Name, err)
	}
	m, weights, release, err := s.engine.folder(ctx, m)
	if err != nil {
		return err
	}
	defer release() // the server has read the weights by then
	s.weights = weights
	return engine.Repeat(ctx, s.probe, s.engine.Name(), func() error {
		return child.OnFreePort(func(port int) error { return s.start(ctx, m, port) })
	})
}

// start starts a server on a port and loads the model.
func (s *session) start(ctx context.Context, m models.Model, port int) error {
	p, err := s.own.Start(func() (*process, error) { return s.begin(m, port) })
	if err != nil {
		return err
	}
	if err = s.ready(ctx, p, m, port); err == nil {
		err = m.Same()
	}
	if err != nil {
		s.drop(p, 0)
	}
	return err
}

// begin starts the process and has it sampled.
func (s *session) begin(m models.Model, port int) (*process, error) {
	path, err := s.engine.in.Path(context.Background(), m.Path)
	if err != nil {
		return nil, err
	}
	scratch, err := child.Scratch("server")
	if err != nil {
		return nil, err
	}
	v := s.engine.values(m, port, s.onCPU)
	v["model"] = cmp.Or(path, m.Name)
	env, argv := split(s.engine.argvOf(v))
	cmd := exec.Command(s.path, argv[1:]...)
	cmd.Env = s.engine.in.Environ()
	if t := s.engine.template(); t != nil {
		cmd.Env = t.environment(cmd.Env, v)
	}
	if s.engine.in == nil { // a container makes its own
		cmd.Env = append(cmd.Env, "TMPDIR="+scratch) // vLLM leaves files there
	}
	cmd.Env = append(cmd.Env, env...)
	p := &process{read: startup.New(), args: append(slices.Clone(env), argv...), scratch: scratch,
		name: s.engine.Name()}
	// the process outlives the Load that starts it
	p.Program, err = launch.Start(context.Background(), cmd, launch.Options{Name: p.name, Log: s.probe.Log(p.name),
		Keep: 256 << 10, Read: p.read, Roles: openai.Role, Attach: s.probe.Attach, In: s.engine.in})
	if err != nil {
		_ = os.RemoveAll(scratch)
		return nil, err
	}
	return p, nil
}

// ready waits until the server answers, and opens a session on it.
func (s *session) ready(ctx context.Context, p *process, m models.Model, port int) error {
	at := "http://" + host + ":" + strconv.Itoa(port)
	client := &wire.Client{Base: at, HTTP: s.engine.in.Client()}
	first, last, err := p.Await(ctx, starting, func(ctx context.Context) (answers, ready bool) {
		ctx, cancel := context.WithTimeout(ctx, wire.Patience)
		defer cancel()
		return healthy(ctx, client)
	})
	switch {
	case errors.Is(err, launch.ErrEnded):
		return p.died(m)
	case err != nil:
		return err
	}
	s.probe.Span(record.Span{Name: "start", Begin: p.Begun, End: first,
		How: "process start to the first answer of the server, polled every 1 to 20 ms; most servers load the model before"})
	s.probe.Span(record.Span{Name: "model", Begin: first, End: last,
		How: "first answer of the server to the first that reports ready, polled every 1 to 20 ms"})
	p.Tree.Look(ctx)
	if pid, _, err := launch.Listener(ctx, fmt.Sprintf("%s:%d", host, port), s.engine.in == nil); err == nil &&
		len(p.Tree.PIDs()) > 0 && !slices.Contains(p.Tree.PIDs(), pid) {
		return child.ErrPortTaken // another program answers there
	}
	alive, release := p.Alive(ctx)
	defer release()
	answers := openai.New(openai.Config{URL: at, API: s.engine.api(), In: s.engine.in})
	inner, err := answers.Join(alive, s.probe, openai.Started{
		PID: p.PID(), Tree: p.Tree, Info: s.info(m, p.args), Sizes: p.read.Said().Values()})
	if err != nil {
		return s.explain(ctx, p, m, err)
	}
	if !p.join(inner) {
		_ = inner.Close() // it never fails
		return errClosed
	}
	if err := inner.Load(alive, m); err != nil {
		return s.explain(ctx, p, m, err)
	}
	return nil
}

// healthy asks whether a server is ready. One without /health is once it lists its models.
func healthy(ctx context.Context, c *wire.Client) (answers, ready bool) {
	err := c.Call(ctx, http.MethodGet, "/health", nil, nil)
	r := wire.RefusalOf(err)
	if r != nil && (r.Status == http.StatusNotFound || r.Status == http.StatusMethodNotAllowed) {
		err = c.Call(ctx, http.MethodGet, "/v1/models", nil, nil)
		r = wire.RefusalOf(err)
	}
	return err == nil || r != nil, err == nil
}

// join keeps the session on a server, unless it was ended meanwhile.
func (p *process) join(inner openai.Session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Asked() {
		return false
	}
	p.inner = inner
	return true
}

// on is the session on the server; nil: it is not ready.
func (p *process) on() openai.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inner
}

// end ends the processes and removes what they left.
func (p *process) end(grace time.Duration) {
	p.End(grace)
	if inner := p.on(); inner != nil {
		_ = inner.Close() // it never fails
	}
	_ = os.RemoveAll(p.scratch) // if it stays, the next start removes it
}

// drop ends a server that the session still owns.
func (s *session) drop(p *process, grace time.Duration) {
	p.end(grace)
	s.own.Drop(p)
}

// Unload ends the server, which releases its memory.
func (s *session) Unload(ctx context.Context) error {
	p, err := s.own.Now()
	if err != nil {
		return nil // nothing is loaded
	}
	patience := grace
	if ctx.Err() != nil {
		patience = 0
	}
	s.drop(p, patience)
	return nil
}

// Close ends the server at once, even during a load or a request.
func (s *session) Close() error {
	if p := s.own.Close(); p != nil {
		p.end(0)
	}
	return nil
}

// Generate streams a continuation.
func (s *session) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	p, done, err := s.own.Use()
	if err != nil {
		return record.Usage{}, err
	}
	defer done()
	u, err := p.on().Generate(ctx, r, token)
	if err != nil {
		err = s.explain(ctx, p, models.Model{}, err)
	}
	return u, err
}

// Score scores a text, if the server can.
func (s *session) Score(ctx context.Context, f engine.Forced, each func(record.Score)) error {
	p, done, err := s.own.Use()
	if err != nil {
		return err
	}
	defer done()
	if err := p.on().Score(ctx, f, each); err != nil {
		return s.explain(ctx, p, models.Model{}, err)
	}
	return nil
}
