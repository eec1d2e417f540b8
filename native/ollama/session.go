package ollama

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/machine"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
	"llmparity/internal/tokenizer"
	"llmparity/native/launch"
	"llmparity/native/logs"
	"llmparity/native/wire"
)

// errClosed is a call whose session was closed under it, or long before it.
var errClosed = engine.Fail(record.Cancelled, "the Ollama session is closed")

// session is one launch: a server, and at most one model of it.
type session struct {
	config Config
	probe  engine.Probe
	client *client
	own    *server       // nil: it ran already
	depot  *depot        // what of ours lies in that one's store, of this session alone
	local  bool          // its processes are this machine's
	stuck  time.Duration // how long a token may take after a generation that was given up

	version, path, sha256 string

	life  context.Context // ends with Close
	end   context.CancelFunc
	turns engine.Turns
	book  sync.Mutex // guards what is noted of prompts, by generations that go on side by side

	family family // the server and its runners, as far as they are seen

	model launch.Held[loaded]
}

// loaded is a model in memory.
type loaded struct {
	name       string
	blobs      []string // the sums of its files
	context    int      // tokens that a prompt and its continuation may come to; 0: not known
	longest    int      // that it was made for; 0: not told
	options    map[string]any
	dtype      string            // of the weights
	before     bool              // it was in memory before it was asked for
	runner     atomic.Int64      // the runner's pid; 0: not seen
	prompts    map[string]*about // what is known of them
	tokens     func() (*tokenizer.Tokenizer, error)
	fresh      bool                           // nothing lies in its cache
	held       atomic.Int64                   // tokens in the cache; -1: not known
	slots      int                            // how many generations Ollama does at a time, as far as is known
	going      atomic.Int32                   // generations that are being streamed
	givenUp    atomic.Bool                    // a generation did not come to its end, as far as is known
	unsure     bool                           // it was said that a slot may be lost
	unreported bool                           // that nothing is told of the cache was said
	crashed    atomic.Pointer[engine.Failure] // nothing goes on after it but another load
	detach     []func()
}

// about is what is known of a prompt.
type about struct {
	tokens    int     // 0: not known
	slowest   float64 // how long Ollama took for it at most, in ns
	burst     bool    // it was said that its times contradict ours
	suspected bool    // it was said that it came from the cache
}

func (l *loaded) about(prompt string) *about {
	if l.prompts[prompt] == nil {
		l.prompts[prompt] = &about{}
	}
	return l.prompts[prompt]
}

// release ends the sources of what is known of the model.
func (l *loaded) release() {
	for _, detach := range l.detach {
		detach()
	}
}

// Open starts the server, or looks who is there. The baseline that comes next is that of a server without our model.
func (o *Ollama) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	if err := o.config.Check(); err != nil {
		return nil, engine.SetUp(err)
	}
	s := &session{config: o.config, probe: p, stuck: stuck, turns: engine.Turns{Most: o.config.slots()},
		model: launch.Held[loaded]{Name: "Ollama", Closed: errClosed}}
	s.life, s.end = context.WithCancel(context.Background())
	open := o.start
	if o.config.URL != "" {
		open = o.join
	}
	if err := open(ctx, s); err != nil {
		_ = s.Close() // the first error is the one to tell
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
	s.path, s.sha256, s.local = b.path, b.sha256, true
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
	err = engine.Repeat(ctx, s.probe, Name, func() error { return child.OnFreePort(child.FreePort, start) })
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

// join makes use of a server that runs already.
func (o *Ollama) join(ctx context.Context, s *session) error {
	a, c, err := o.server()
	if err != nil {
		return err
	}
	s.client, s.depot = c, s.config.depot(c)
	if s.version, err = reach(ctx, a, c); err != nil {
		return err
	}
	before, err := c.loaded(ctx)
	if err != nil {
		return engine.SetUp(fmt.Errorf("asking Ollama what it holds: %w", err))
	}
	holds := "it holds no model"
	if len(before) > 0 {
		holds = fmt.Sprintf("it holds %d model(s), %s among them", len(before), before[0].Name)
	}
	s.warn("already-running", "the Ollama server at %s ran already: %s; runners of other models are not sampled, and what others ask of it meanwhile "+
		"is in the server's memory and in all times", a.URL, holds)
	s.path, s.sha256, s.local = s.see(a)
	return nil
}

func (s *session) warn(code, format string, args ...any) { engine.Warn(s.probe, code, format, args...) }

// Load has the server make the model, if it has not got it, and waits for its runner.
func (s *session) Load(outer context.Context, m engine.Model) error {
	if err := outer.Err(); err != nil {
		return fmt.Errorf("loading %s: %w", m.Name, err)
	}
	if err := s.model.Free(); err != nil {
		return err
	}
	if err := m.Same(); err != nil {
		return err
	}
	ctx, done := launch.Within(outer, s.life)
	defer done()
	l := &loaded{name: m.Name, context: m.Context, options: s.options(), prompts: map[string]*about{},
		fresh:  s.own != nil,
		tokens: sync.OnceValues(func() (*tokenizer.Tokenizer, error) { return tokenizer.Open(m.Path) })}
	begin := time.Now()
	digest, err := s.provide(ctx, m, l)
	if err != nil {
		return s.explain(outer, err, "making the model of "+m.Path)
	}
	made := time.Now()
	if err := s.look(ctx, l); err != nil {
		return s.explain(outer, err, "asking for the model")
	}
	s.family.claim(l.blobs)
	begun := time.Now()
	l.before = s.already(ctx, l.name)
	if _, err := s.client.whole(ctx, generate{Model: l.name, KeepAlive: s.keep(), Options: l.options}); err != nil {
		return s.explainLoad(outer, m, err)
	}
	end := time.Now()
	if err := m.Same(); err != nil { // it has been read from the path by now
		return err
	}
	if m.Format != record.Served && s.own != nil {
		s.probe.Span(record.Span{Name: "create", Begin: begin, End: made,
			How: "the file handed to Ollama, to its answer that the model is made"})
	}
	s.probe.Span(record.Span{Name: "runner", Begin: begun, End: end,
		How: "Ollama asked for the model, to its answer that it is there; it looks whether its runner is ready every 250 ms"})
	return s.loaded(ctx, l, digest)
}

// already tells whether the model was in memory before we came.
func (s *session) already(ctx context.Context, name string) bool {
	models, _ := s.client.loaded(ctx) // the load that follows says what is wrong
	_, held := find(models, name)
	if held {
		s.warn("already-loaded", "Ollama held %s in memory before it was asked for: the time of the load is none; its runner is not in the baseline, but from here on", name)
	}
	return held
}

// options are what the model is loaded with and computes with; they must be the same in every request, else Ollama
// loads it anew.
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

// loaded tells what now runs, and has it sampled.
func (s *session) loaded(ctx context.Context, l *loaded, digest string) error {
	s.family.look(ctx)
	r := s.family.runner(l.blobs)
	l.runner.Store(int64(r.pid))
	if s.local && r.pid == 0 {
		s.warn("runner-unseen", "no runner that names %s was found among Ollama's processes: runners that name other models are not sampled, so what holds it may not be; "+
			"how it computes is not told", l.name)
	}
	room := l.context
	switch {
	case r.context > 0:
		room = r.context / max(1, r.parallel)
	case l.longest > 0 && l.longest < l.context:
		room = l.longest // newer versions make no more
	}
	if room != l.context {
		s.warn("context-differs", "Ollama was asked for a context of %d tokens and made one of %d", l.context, room)
		l.context = room
	}
	if l.slots = s.config.slots(); r.parallel > 0 && r.parallel < l.slots {
		s.warn("slots-differ", "%d generations were to go on at a time, and Ollama does %d: the others wait in its own queue", l.slots, r.parallel)
		l.slots = r.parallel
	}
	s.device(ctx, l)
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

// current gives the model, if one is loaded and its runner has not crashed.
func (s *session) current() (*loaded, error) {
	l, err := s.model.Now()
	if err != nil {
		return nil, err
	}
	if crashed := l.crashed.Load(); crashed != nil {
		return nil, fmt.Errorf("the model must be loaded again: %w", crashed)
	}
	return l, nil
}

// unloading is how long Ollama may take to let go of a model.
const unloading = time.Minute

// Unload returns when Ollama says that it holds the model no more, and its runner is gone where it can be seen.
func (s *session) Unload(ctx context.Context) error {
	l := s.model.Take()
	if l == nil {
		return nil
	}
	l.release()
	var crash error
	if l.crashed.Load() == nil && ctx.Err() == nil {
		crash = s.crashedIdle(l)
	}
	if s.own != nil && s.own.Ended(0) {
		return crash // what it held is gone with it
	}
	ctx, done := launch.Within(ctx, s.life)
	defer done()
	err := s.expire(ctx, l)
	s.family.look(ctx)
	if crash == nil && err != nil {
		return s.explain(ctx, err, "unloading the model")
	}
	return crash
}

// crashedIdle tells of a server of ours, or its runner, that has ended while nothing was asked of it.
func (s *session) crashedIdle(l *loaded) error {
	if s.own == nil || s.own.Asked() {
		return nil
	}
	who := ""
	if s.own.Ended(0) {
		who = fmt.Sprintf("Ollama crashed (%s)", s.own.Exit())
	} else if _, err := proc.Look(int(l.runner.Load())); l.runner.Load() != 0 && errors.Is(err, sample.ErrGone) {
		who = "Ollama's runner crashed"
	}
	if who == "" {
		return nil
	}
	words := s.own.lastWords()
	return engine.Fail(logs.ClassOf(words), "%s while nothing was asked of it; its last words: %s", who, words)
}

// expire has Ollama let go of a model, and waits for it.
func (s *session) expire(ctx context.Context, l *loaded) error {
	if _, err := s.client.whole(ctx, generate{Model: l.name, KeepAlive: 0}); err != nil {
		return err
	}
	deadline := time.Now().Add(unloading)
	for {
		held, err := s.client.loaded(ctx)
		r := wire.RefusalOf(err)
		// it stumbles over a model that is just going
		if err != nil && (r == nil || r.Status != http.StatusInternalServerError) {
			return err
		}
		_, there := find(held, l.name)
		if err == nil && !there && (l.runner.Load() == 0 || !child.Alive(int(l.runner.Load()))) {
			return nil
		}
		if time.Now().After(deadline) {
			return engine.Fail(record.Other, "Ollama still holds %s a minute after it was told to let go of it", l.name)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Close ends a server of ours at once. From another's it takes the models that we had it make.
func (s *session) Close() error {
	l := s.model.Close()
	s.end()
	if l != nil {
		l.release()
	}
	s.family.close()
	if s.own != nil {
		s.own.stop()
		return nil
	}
	s.leave(l)
	return nil
}

// leave leaves another's server as it was found. What can't be taken back is said: the server may have gone.
func (s *session) leave(l *loaded) {
	ctx, cancel := context.WithTimeout(context.Background(), patience+s.stuck)
	defer cancel()
	switch {
	case l == nil:
	case !l.before:
		if err := s.expire(ctx, l); err != nil {
			s.warn("left-behind", "%s may still be in the Ollama server's memory: %v", l.name, err)
		}
	default:
		if err := s.free(ctx, l); err != nil {
			s.warn("left-behind", "%s may not answer to others: %v", l.name, err)
		}
	}
	if s.depot == nil {
		return
	}
	if err := s.depot.clear(ctx); err != nil {
		s.warn("left-behind", "%v", err)
	}
}
