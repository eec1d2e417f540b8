package llamacpp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/machine"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
	"llmparity/native/logs"
	"llmparity/native/wire"
)

// server is one llama-server.
type server struct {
	proc    *child.Process
	client  *client
	tail    *child.Tail
	read    *logReader
	listens chan struct{} // closed when the log says that the server listens: all about the load has been said
	log     io.WriteCloser
	path    string
	args    []string
	started time.Time
	kills   int           // of the kernel's, for want of memory, before it was started
	answer  time.Duration // how long its first answer may take

	tree     *proc.Tree // the process, and all that it starts where it is only a wrapper
	looks    sync.WaitGroup
	detach   []func()
	reported atomic.Bool // an error of a call has told of its end, or that call was cancelled
}

// environment is ours without llama-server's own variables, each of which sets an option behind our back. The key goes
// in here because arguments can be read by everybody on the machine, a process's environment by its owner alone.
func environment(key string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LLAMA_") })
	if key != "" {
		env = append(env, "LLAMA_API_KEY="+key)
	}
	return env
}

// startServer starts the process and has it sampled; nothing answers yet.
func startServer(c Config, b identity, m engine.Model, port int, p engine.Probe) (*server, error) {
	flags, err := b.options.fitted(serverProgram(), b.path, c.server(m, port))
	if err != nil {
		return nil, err
	}
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	s := &server{tail: &child.Tail{Max: 16 << 10}, path: b.path, args: arguments(flags), kills: machine.MemoryKills(),
		answer: cmp.Or(c.answer, time.Minute)}
	s.client = newClient(port, hex.EncodeToString(key))

	cmd := exec.Command(b.path, s.args...)
	cmd.Env = environment(s.client.Key)
	s.log = p.Log("llama-server")
	s.listens = make(chan struct{})
	s.read = newLogReader(onFirst("listening on ", func() { close(s.listens) }))
	out := logs.Tee{s.log, s.tail, s.read}
	cmd.Stdout, cmd.Stderr = out, out
	s.started = time.Now()
	if s.proc, err = child.StartGuarded(context.Background(), cmd); err != nil { // it outlives the Load that starts it
		s.release()
		return nil, err
	}
	s.tree, err = proc.NewTree(s.proc.PID(), roleOf("server"), p.Attach, proc.TreeOptions{Ours: true})
	if err != nil && !errors.Is(err, sample.ErrGone) { // one that died already is the wait's to explain
		s.stop(0)
		return nil, fmt.Errorf("sampling llama-server: %w", err)
	}
	return s, nil
}

// roleOf is one role for a program and all that it starts.
func roleOf(role string) func(int, string, []string) string {
	return func(int, string, []string) string { return role }
}

// look has what the program has started meanwhile sampled from now on. It goes through all processes, and is no part of
// the load.
func (s *server) look() {
	if s.tree != nil {
		s.looks.Go(func() { s.tree.Look(context.Background()) })
	}
}

// onFirst calls do for the first line that contains what.
func onFirst(what string, do func()) func(string) {
	done := false
	return func(line string) {
		if !done && strings.Contains(line, what) {
			done = true
			do()
		}
	}
}

// said is what the log told of the load, which the server writes in a thread of its own: what is missing after a second
// will not come.
func (s *server) said(ctx context.Context) load {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-s.listens:
	case <-s.proc.Done():
	case <-ctx.Done():
	case <-late.C:
	}
	return s.read.load()
}

// ready waits until the model is loaded and reports the stages.
func (s *server) ready(ctx context.Context, m engine.Model, p engine.Probe) (properties, error) {
	alive, release := s.whileAlive(ctx)
	defer release()
	soon, stop := context.WithTimeout(alive, s.answer)
	defer stop()
	waits := soon       // for the first answer
	var first time.Time // when anybody answered
	for {
		// Often enough for a twentieth of what the load takes, seldom enough not to slow it down.
		pause := min(max(time.Since(s.started)/20, time.Millisecond), 20*time.Millisecond)
		answers, ready := s.client.health(waits)
		now := time.Now()
		if answers && first.IsZero() {
			first, waits = now, alive
		}
		if waits.Err() != nil && alive.Err() == nil {
			return properties{}, s.notStarted("llama-server did not answer within %g s", s.answer.Seconds())
		}
		if ready {
			p.Span(record.Span{Name: "start", Begin: s.started, End: first,
				How: "process started, to the first answer of /health, asked every 1 to 20 ms"})
			p.Span(record.Span{Name: "model", Begin: first, End: now,
				How: "first answer of /health to the first that says ready, asked every 1 to 20 ms; part of it may lie before"})
			return s.ours(alive, m)
		}
		select {
		case <-ctx.Done():
			return properties{}, fmt.Errorf("waiting for llama-server: %w", ctx.Err())
		case <-s.proc.Done():
			return properties{}, s.died(m)
		case <-time.After(pause):
		}
	}
}

// ours makes sure that the server that answers is the one that we started: another one may listen on the same port when
// both allow it. Only ours knows the key.
func (s *server) ours(ctx context.Context, m engine.Model) (properties, error) {
	props, err := s.client.props(ctx)
	refused := wire.RefusalOf(err)
	switch {
	case refused != nil && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusNotFound):
		return props, child.ErrPortTaken
	case err != nil && ctx.Err() == nil && s.proc.Ended(time.Second), s.proc.Ended(0):
		return props, s.died(m) // if it died for want of the port, somebody else answered
	case err != nil:
		return props, fmt.Errorf("asking llama-server for its properties: %w", err)
	}
	return props, nil
}

// whileAlive gives a context that also ends with the process: on a port that was taken, a stranger may accept and never
// answer.
func (s *server) whileAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	alive, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-s.proc.Done():
		case <-alive.Done():
		}
	}()
	return alive, cancel
}

// stop ends the process, by force once grace is over, and lets go of all that belongs to it.
func (s *server) stop(grace time.Duration) {
	s.proc.Stop(grace)
	s.release()
}

func (s *server) release() {
	s.looks.Wait()
	if s.tree != nil {
		s.tree.Close()
	}
	for _, d := range s.detach {
		d()
	}
	_ = s.log.Close() // nothing hangs on its last bytes
}

// died says why the process ended before its model was loaded.
func (s *server) died(m engine.Model) error {
	words := said(s.tail.Lines(200))
	how := s.proc.Exit()
	switch {
	case s.proc.Asked():
		return errClosed
	case contains(words, "couldn't bind"):
		return child.ErrPortTaken
	case missingFlag(words, s.args) != "":
		return tooOld(serverProgram(), s.path, missingFlag(words, s.args))
	case logs.OutOfMemory(words...), signalled(s.proc.Err()) && machine.MemoryKills() > s.kills:
		return engine.Fail(record.OOM, "llama-server ran out of memory loading %s (%s): %s", m.Path, how,
			logs.LastWords(words))
	case signalled(s.proc.Err()):
		return s.notStarted("llama-server crashed loading %s (%s): %s", m.Path, how, logs.LastWords(words))
	case contains(words, "failed to load model"):
		return &engine.Failure{Class: record.BadModel, Err: fault.New(fault.BadModel,
			"check the file, or take a newer llama-server", "llama-server can't load %s: %s", m.Path, loadError(words))}
	}
	return s.notStarted("llama-server ended while loading %s (%s): %s", m.Path, how, logs.LastWords(words))
}

// notStarted is for a server that is worth another start, with what is seen of it now.
func (s *server) notStarted(format string, args ...any) error {
	report := child.Describe(child.Group(s.proc.PID())) + "\nOutput\n" + strings.Join(s.tail.Lines(1000), "\n")
	return &engine.NotStarted{What: fmt.Sprintf(format, args...), Report: report, Kind: fault.Run}
}

// crashed says how the process ended in the middle of its work.
func (s *server) crashed() error {
	words := said(s.tail.Lines(200))
	return engine.Fail(logs.ClassOf(words...), "llama-server crashed (%s); its last words: %s", s.proc.Exit(),
		logs.LastWords(words))
}
