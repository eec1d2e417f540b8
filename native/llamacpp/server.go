package llamacpp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/logs"
	"llmparity/native/wire"
)

// server is one llama-server process.
type server struct {
	*launch.Program
	client  *client
	read    *logs.Loads
	listens chan struct{} // closed when the log says that the server listens, which is after all lines about the load
	args    []string

	reported atomic.Bool // a call has reported its end or was cancelled
}

// environment is ours without llama-server's variables, each of which would set an option. The key is passed here
// because arguments are visible to all users, and a process's environment only to its owner. A container's variables are
// its own.
func (c Config) environment(key string) (env []string) {
	if c.in == nil {
		env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LLAMA_") })
	}
	if key != "" {
		env = append(env, "LLAMA_API_KEY="+key)
	}
	return env
}

// startServer starts the process and has it sampled; it does not answer yet.
func startServer(c Config, b identity, m models.Model, port int, p engine.Probe) (*server, error) {
	var err error
	if m.Path, err = c.in.Path(context.Background(), m.Path); err != nil {
		return nil, err
	}
	flags, err := b.fitted(c.server(m, port))
	if err != nil {
		return nil, err
	}
	s := &server{args: arguments(flags), listens: make(chan struct{}), client: newClient(port, rand.Text())}
	s.client.HTTP = c.in.Client()
	var once sync.Once
	s.read = newLogReader(func(line string) {
		if strings.Contains(line, "listening on ") {
			once.Do(func() { close(s.listens) })
		}
	})
	cmd := exec.Command(b.path, s.args...)
	cmd.Env = c.environment(s.client.Key)
	// the process outlives the Load that starts it
	s.Program, err = launch.Start(context.Background(), cmd, launch.Options{Name: "llama-server",
		Log: p.Log("llama-server"), Keep: 16 << 10, Read: s.read, Role: "server", Attach: p.Attach, In: c.in})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// said returns what the log says about the load. A thread of its own writes the log, so said waits for the end of it,
// up to a second.
func (s *server) said(ctx context.Context) logs.Load {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	select {
	case <-s.listens:
	case <-s.Done():
	case <-ctx.Done():
	}
	return s.read.Said()
}

// ready waits until the model is loaded, and reports the stages.
func (s *server) ready(ctx context.Context, m models.Model, p engine.Probe) (properties, error) {
	first, last, err := s.Await(ctx, time.Minute, func(ctx context.Context) (answers, ready bool) {
		err := s.client.Call(ctx, http.MethodGet, "/health", nil, nil)
		return err == nil || wire.RefusalOf(err) != nil, err == nil
	})
	switch {
	case errors.Is(err, launch.ErrEnded):
		return properties{}, s.died(m)
	case err != nil:
		return properties{}, err
	}
	p.Span(record.Span{Name: "start", Begin: s.Begun, End: first,
		How: "process start to first answer of /health, polled every 1 to 20 ms"})
	p.Span(record.Span{Name: "model", Begin: first, End: last,
		How: "first answer of /health to first that reports ready, polled every 1 to 20 ms; loading may begin before"})
	alive, release := s.Alive(ctx)
	defer release()
	return s.ours(alive, m)
}

// ours checks, by its key, that the server that answers is the one that we started: two servers can listen on one port
// if both allow it.
func (s *server) ours(ctx context.Context, m models.Model) (properties, error) {
	props, err := s.client.props(ctx)
	refused := wire.RefusalOf(err)
	switch {
	case refused != nil && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusNotFound):
		return props, child.ErrPortTaken
	case err != nil && ctx.Err() == nil && s.Ended(time.Second), s.Ended(0):
		return props, s.died(m) // if it died because the port was taken, another server answered
	case err != nil:
		return props, fmt.Errorf("asking llama-server for its properties: %w", err)
	}
	return props, nil
}

// died returns why the process ended before its model was loaded.
func (s *server) died(m models.Model) error {
	words := said(s.Tail.Lines(200))
	how := s.Exit()
	switch {
	case s.Asked():
		return errClosed
	case contains(words, "couldn't bind"):
		return child.ErrPortTaken
	case s.Signalled() && s.Starved():
		return engine.Fail(record.OOM, "the kernel ended llama-server to free memory while it loaded %s (%s%s)", m.Path, how,
			s.Limit())
	}
	if err := notLoaded("llama-server", m, words, how); err != nil {
		return err
	}
	return s.NotStarted("llama-server ended while loading %s (%s): %s", m.Path, how, logs.LastWords(words))
}

// crashed returns how the process ended during a request.
func (s *server) crashed() error { return s.Crashed(said(s.Tail.Lines(200))...) }

// signalled reports whether a signal ended a process, by how it ended.
func signalled(how string) bool { return strings.HasPrefix(how, "signal: ") }

// prefix is what llama-server prints before a line: time since its start, and level.
var prefix = regexp.MustCompile(`^\d+(\.\d+)+ ([A-Z]) `)

// said returns lines without their prefixes.
func said(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, fault.OneLine(prefix.ReplaceAllString(l, "")))
	}
	return out
}

func contains(lines []string, what string) bool {
	return slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, what) })
}

// reason finds why a model cannot be loaded.
var reason = regexp.MustCompile(`(?:gguf_init_from_\w+: |error loading model: )(.+)|(GGML_ASSERT\(.+)`)

// notLoaded returns why a program could not load its model, if its words say so; nil if not.
func notLoaded(who string, m models.Model, words []string, how string) error {
	last := logs.LastWords(words)
	if logs.OutOfMemory(words...) {
		return engine.Fail(record.OOM, "%s ran out of memory loading %s (%s): %s", who, m.Path, how, last)
	}
	refused := contains(words, "failed to load model")
	for _, l := range words { // the lines after the first reason only pass it on, or are a debugger's
		if found := reason.FindStringSubmatch(l); found != nil {
			last, refused = found[1]+found[2], true
			break
		}
	}
	if !refused {
		return nil
	}
	return &engine.Failure{Class: record.BadModel, Err: fault.New(fault.BadModel,
		"check the file, or use a newer llama.cpp", "%s cannot load %s: %s", who, m.Path, last)}
}

// newLogReader reads the log of a llama.cpp program. on sees each line without its prefix.
func newLogReader(on func(line string)) *logs.Loads {
	return logs.NewLoads(4096, func(line string) string { // lines with sizes are short
		line = strings.TrimRight(prefix.ReplaceAllString(line, ""), "\r")
		on(line)
		return line
	})
}
