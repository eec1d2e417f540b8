package ollama

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/host/machine"
	"llmparity/internal/models"
	"llmparity/internal/models/tokenizer"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/logs"
	"llmparity/native/wire"
)

// errClosed is returned if the session was closed during a call or before it.
var errClosed = engine.Fail(record.Cancelled, "the Ollama session is closed")

// session is one launch: a server and at most one of its models.
type session struct {
	config Config
	probe  engine.Probe
	client *client
	own    *server       // nil: it was already running
	depot  *depot        // models that this session created on a running server
	stuck  time.Duration // how long a token may take after a cancelled generation

	version, path, sha256 string

	life context.Context // ends with Close
	end  context.CancelFunc
	book sync.Mutex // guards what is known about prompts

	family family // visible processes of the server and its runners

	model launch.Held[loaded]
}

// loaded is a model in memory.
type loaded struct {
	name       string
	blobs      []string // hashes of its files
	context    int      // limit for a prompt and its continuation; 0: unknown
	longest    int      // context that the model was trained for; 0: unknown
	options    map[string]any
	dtype      string            // of the weights
	before     bool              // was in memory before the load
	runner     atomic.Int64      // the runner's pid; 0: not visible
	prompts    map[string]*about // by prompt
	tokens     func() (*tokenizer.Tokenizer, error)
	held       atomic.Int64                   // tokens in the cache; -1: unknown
	slots      int                            // requests that Ollama runs at a time, as far as known
	going      atomic.Int32                   // generations that are being streamed
	givenUp    atomic.Bool                    // a generation may still be running
	unsure     bool                           // warned that a slot may be lost
	unreported bool                           // warned that cached tokens are unknown
	crashed    atomic.Pointer[engine.Failure] // only another load can follow
	detach     []func()
}

// about is what is known about a prompt.
type about struct {
	tokens    int     // 0: unknown
	slowest   float64 // longest time that Ollama took for it, in ns
	burst     bool    // warned that its times contradict ours
	suspected bool    // warned that it came from the cache
}

func (l *loaded) about(prompt string) *about {
	if l.prompts[prompt] == nil {
		l.prompts[prompt] = &about{}
	}
	return l.prompts[prompt]
}

// release detaches the sources of the model.
func (l *loaded) release() {
	for _, detach := range l.detach {
		detach()
	}
}

// Open starts a server or connects to a running one. The baseline that follows does not include our model.
func (o *Ollama) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	if err := o.config.Check(); err != nil {
		return nil, engine.SetUp(err)
	}
	s := &session{config: o.config, probe: p, stuck: stuck, model: launch.Held[loaded]{
		Name: "Ollama", Closed: errClosed, Turns: engine.Turns{Most: o.config.slots()}}}
	s.life, s.end = context.WithCancel(context.Background())
	open := o.start
	if o.config.URL != "" {
		open = o.join
	}
	if err := open(ctx, s); err != nil {
		_ = s.Close() // report the first error
		return nil, err
	}
	return s, nil
}

// start starts a server.
func (o *Ollama) start(ctx context.Context, s *session) error {
	b, err := o.binary(ctx)
	if err != nil {
		return err
	}
	s.path, s.sha256 = b.path, b.sha256
	start := func(port int) error {
		srv, err := startServer(s.config, b, s.probe, port)
		if err != nil {
			return err
		}
		version, err := srv.ready(ctx)
		if err != nil {
			srv.stop()
			return err
		}
		s.own, s.client, s.version = srv, srv.client, version
		return nil
	}
	err = engine.Repeat(ctx, s.probe, Name, func() error { return child.OnFreePort(start) })
	if err != nil {
		return err
	}
	if err := s.family.follow(s.own.pid, true, s.probe); err != nil {
		return fmt.Errorf("sampling Ollama: %w", err)
	}
	if !s.config.GPU {
		s.probe.Event(record.Event{At: time.Now(),
			Device: &record.Device{Class: record.CPU, Name: machine.CPU(), Detail: map[string]string{"num_gpu": "0"}}})
	}
	return nil
}

// join connects to a running server.
func (o *Ollama) join(ctx context.Context, s *session) (err error) {
	s.client, s.depot = o.client, s.config.depot(o.client)
	if s.version, err = s.client.reach(ctx); err != nil {
		return err
	}
	before, err := s.client.loaded(ctx)
	if err != nil {
		return engine.SetUp(fmt.Errorf("asking Ollama for its loaded models: %w", err))
	}
	holds := "it has no model loaded"
	if len(before) > 0 {
		holds = fmt.Sprintf("it has %d model(s) loaded, including %s", len(before), before[0].Name)
	}
	s.warn("already-running", "the Ollama server at %s was already running (%s): runners of other models are not sampled, but other clients "+
		"affect the server's memory and all times", s.client.Base, holds)
	s.path, s.sha256 = s.see()
	return nil
}

func (s *session) warn(code, format string, args ...any) { engine.Warn(s.probe, code, format, args...) }

// Load creates the model on the server if necessary, and waits for its runner.
func (s *session) Load(outer context.Context, m models.Model) error {
	if err := outer.Err(); err != nil {
		return fmt.Errorf("loading %s: %w", m.Name, err)
	}
	if err := s.model.Free(); err != nil {
		return err
	}
	if err := m.Same(); err != nil {
		return err
	}
	ctx, done := engine.Within(outer, s.life)
	defer done()
	l := &loaded{name: m.Name, context: m.Context, options: s.options(), prompts: map[string]*about{},
		tokens: sync.OnceValues(func() (*tokenizer.Tokenizer, error) { return tokenizer.Open(m.Path) })}
	begin := time.Now()
	digest, err := s.provide(ctx, m, l)
	if err != nil {
		return s.explain(outer, err, "creating the model of "+m.Path)
	}
	made := time.Now()
	if err := s.look(ctx, l); err != nil {
		return s.explain(outer, err, "looking up the model")
	}
	s.family.ours.Store(&l.blobs)
	begun := time.Now()
	inMemory, _ := s.client.loaded(ctx) // the load reports errors
	if _, l.before = find(inMemory, l.name); l.before {
		s.warn("already-loaded", "Ollama had already loaded %s: the load time means nothing, and the baseline does not include the runner", l.name)
	}
	if _, err := s.client.whole(ctx, generate{Model: l.name, KeepAlive: s.keep(), Options: l.options}); err != nil {
		return s.explainLoad(outer, m, err)
	}
	end := time.Now()
	if err := m.Same(); err != nil { // the server has read the file by now
		return err
	}
	if m.Format != record.Served && s.own != nil {
		s.probe.Span(record.Span{Name: "create", Begin: begin, End: made,
			How: "file given to Ollama, to its answer that the model is created"})
	}
	s.probe.Span(record.Span{Name: "runner", Begin: begun, End: end,
		How: "load request to Ollama's answer; Ollama polls its runner every 250 ms"})
	return s.loaded(ctx, l, digest)
}

// options returns the model's options. If they change between requests, Ollama reloads the model.
func (s *session) options() map[string]any {
	o := map[string]any{}
	if s.config.Threads > 0 {
		o["num_thread"] = s.config.Threads
	}
	if s.own != nil && !s.config.GPU {
		o["num_gpu"] = 0
	}
	return o
}

// loaded reports what is running, and has it sampled.
func (s *session) loaded(ctx context.Context, l *loaded, digest string) error {
	s.family.tree.Look(ctx)
	r := s.family.runner(l.blobs)
	l.runner.Store(int64(r.pid))
	if s.family.tree != nil && r.pid == 0 {
		s.warn("runner-unseen", "found no Ollama runner for %s; runners of other models are not sampled, so the model's memory may be missing, "+
			"and its settings are unknown", l.name)
	}
	room := l.context
	switch {
	case r.context > 0:
		room = r.context / max(1, r.parallel)
	case l.longest > 0 && l.longest < l.context:
		room = l.longest // newer versions limit it to this
	}
	l.context = engine.Window(s.probe, "Ollama", l.context, room)
	if l.slots = s.config.slots(); r.parallel > 0 && r.parallel < l.slots {
		s.warn("slots-differ", "Ollama runs %d requests at a time instead of %d; it queues the others", r.parallel, l.slots)
		l.slots = r.parallel
	}
	s.device(ctx, l)
	s.ran(r)
	s.probe.Event(record.Event{At: time.Now(), Engine: s.describe(l, r, digest)})
	_, err := s.model.Start(func() (*loaded, error) {
		l.detach = append(l.detach, s.probe.Attach(s.client.apiPS(l.name)))
		if s.own == nil {
			return l, nil
		}
		if said := s.own.said.Said(); len(said.Buffers) > 0 {
			said.Cells = cmp.Or(said.Cells, l.context)
			l.detach = append(l.detach, s.probe.Attach(engineLog(said, &l.held)))
		}
		return l, nil
	})
	return err
}

// unloading is how long Ollama may take to unload a model.
const unloading = time.Minute

// Unload returns when Ollama no longer lists the model and its runner, if visible, has ended.
func (s *session) Unload(ctx context.Context) error {
	crash := s.crashedIdle(ctx)
	l := s.model.Take()
	if l == nil {
		return nil
	}
	l.release()
	if s.own != nil && s.own.Ended(0) {
		return crash // the memory went with it
	}
	ctx, done := engine.Within(ctx, s.life)
	defer done()
	err := s.expire(ctx, l)
	s.family.tree.Look(ctx)
	if crash == nil && err != nil {
		return s.explain(ctx, err, "unloading the model")
	}
	return crash
}

// crashedIdle returns an error if our server or its runner has ended since the last request.
func (s *session) crashedIdle(ctx context.Context) error {
	l, err := s.model.Now()
	if err != nil || s.own == nil || s.own.Asked() || l.crashed.Load() != nil || ctx.Err() != nil {
		return nil
	}
	who := s.gone(false)
	if who == "" {
		return nil
	}
	words := s.own.lastWords(false)
	return engine.Fail(logs.ClassOf(words), "%s crashed between requests; last output: %s", who, words)
}

// expire makes Ollama unload a model, and waits for it.
func (s *session) expire(ctx context.Context, l *loaded) error {
	if _, err := s.client.whole(ctx, generate{Model: l.name, KeepAlive: 0}); err != nil {
		return err
	}
	deadline := time.Now().Add(unloading)
	for {
		held, err := s.client.loaded(ctx)
		r := wire.RefusalOf(err)
		// Ollama returns an internal error about a model that is being unloaded
		if err != nil && (r == nil || r.Status != http.StatusInternalServerError) {
			return err
		}
		_, there := find(held, l.name)
		if err == nil && !there && (l.runner.Load() == 0 || !child.Alive(int(l.runner.Load()))) {
			return nil
		}
		if time.Now().After(deadline) {
			return engine.Fail(record.Other, "Ollama still holds %s a minute after the request to unload it", l.name)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Close ends our server at once. On a running server it removes the models that we created.
func (s *session) Close() error {
	l := s.model.Close()
	s.end()
	if l != nil {
		l.release()
	}
	s.family.tree.Close()
	if s.own != nil {
		s.own.stop()
		return nil
	}
	s.leave(l)
	return nil
}

// leave restores a running server as far as possible, and warns about what remains.
func (s *session) leave(l *loaded) {
	ctx, cancel := context.WithTimeout(context.Background(), patience+s.stuck)
	defer cancel()
	switch {
	case l == nil:
	case !l.before:
		if err := s.expire(ctx, l); err != nil {
			s.warn("left-behind", "%s may still be loaded in the Ollama server: %v", l.name, err)
		}
	default:
		if err := s.free(ctx, l); err != nil {
			s.warn("left-behind", "%s may not respond to other clients: %v", l.name, err)
		}
	}
	if s.depot == nil {
		return
	}
	if err := s.depot.clear(ctx); err != nil {
		s.warn("left-behind", "%v", err)
	}
}
