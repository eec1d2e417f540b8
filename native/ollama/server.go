package ollama

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/sample/proc"
)

// errPortTaken is a free port that was somebody else's before the server could have it.
var errPortTaken = errors.New("the port was taken by another process")

// server is an Ollama that we started.
type server struct {
	proc   *child.Process
	end    context.CancelFunc // of the process's context
	client *client
	dir    string // its home and its store; goes with it
	port   int
	pid    int // of who answers, once it does: a child where the program is a script
	tail   *child.Tail
	log    io.WriteCloser
	said   *logReader

	stopping sync.Once
	stopped  chan struct{} // closed as soon as we ask it to end: what follows is no crash
	release  sync.Once
}

// leader starts the server in its own place. Its runner would outlive it, and us: what waits beside them for the end of the standard
// input, which ends when we or the server do, then ends them all. It is nobody's child, so that it is not sampled with them.
const leader = `exec 3<&0 </dev/null
( { cat <&3; kill -KILL 0; } >/dev/null 2>&1 & )
exec "$0" serve 3<&-`

// freePort gives a port that was free a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// environment is ours without Ollama's own variables, each of which sets an option behind our back, and without a GPU unless asked.
func environment(gpu bool) []string {
	hidden := []string{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "OLLAMA_") || name == "HOME" || !gpu && slices.Contains(hidden, name)
	})
	if !gpu {
		for _, name := range hidden {
			env = append(env, name+"=-1")
		}
	}
	return env
}

// settings are what the server is told of by its environment.
func (c Config) settings(dir string, port int) []string {
	s := []string{
		"HOME=" + filepath.Join(dir, "home"), "OLLAMA_MODELS=" + filepath.Join(dir, "models"),
		"OLLAMA_HOST=" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		// One context, of the length that is asked for, of one model, until it is to go.
		"OLLAMA_NUM_PARALLEL=1", "OLLAMA_MAX_LOADED_MODELS=1", "OLLAMA_KEEP_ALIVE=-1", "OLLAMA_NOPRUNE=1",
		// Its log tells what came from the cache, and how large the buffers are: some lines a request, none a token.
		"OLLAMA_DEBUG=1",
	}
	if kv := c.kvType(); kv != "f16" {
		s = append(s, "OLLAMA_FLASH_ATTENTION=1", "OLLAMA_KV_CACHE_TYPE="+kv) // the one needs the other
	}
	return s
}

// startServer starts the process; nothing answers yet.
func startServer(c Config, b identity, p engine.Probe) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	return startOn(c, b, p, port)
}

func startOn(c Config, b identity, p engine.Probe, port int) (*server, error) {
	dir, err := child.Scratch(Name)
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{"home", "models"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			_ = os.RemoveAll(dir) // the first error is the one to tell
			return nil, err
		}
	}
	s := &server{dir: dir, port: port, tail: &child.Tail{Max: 32 << 10}, said: newLogReader(), stopped: make(chan struct{}),
		client: newClient("http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), true)}
	cmd := exec.Command("sh", "-c", leader, b.path)
	cmd.Env = append(environment(c.GPU), c.settings(dir, port)...)
	cmd.Dir = dir
	s.log = p.Log(Name)
	out := tee{s.log, s.tail, s.said}
	cmd.Stdout, cmd.Stderr = out, out
	ctx, end := context.WithCancel(context.Background()) // it outlives the Open that starts it
	s.end = end
	if s.proc, err = child.StartLeader(ctx, cmd); err != nil {
		s.free()
		return nil, err
	}
	return s, nil
}

// tee writes to all of them; a full disk must not end the server by a closed pipe.
type tee []io.Writer

func (t tee) Write(p []byte) (int, error) {
	for _, w := range t {
		_, _ = w.Write(p) // the tail keeps what matters
	}
	return len(p), nil
}

// ready waits until the server answers, and gives its version.
func (s *server) ready(ctx context.Context) (string, error) {
	for {
		version, err := s.client.version(ctx)
		if err == nil {
			s.pid = s.proc.PID()
			if pid, err := proc.PIDOfListener(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))); err == nil {
				if !descends(pid, s.pid) {
					return "", errPortTaken
				}
				s.pid = pid
			}
			return version, nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for Ollama: %w", ctx.Err())
		case <-s.proc.Done():
			return "", s.died()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// descends tells whether a process is another, or comes from it: a script may have started the program.
func descends(pid, from int) bool {
	for seen := map[int]bool{}; pid > 1 && !seen[pid]; {
		if pid == from {
			return true
		}
		seen[pid] = true
		p, err := proc.Look(pid)
		if err != nil {
			return false
		}
		pid = p.Parent
	}
	return false
}

func (s *server) died() error {
	words := s.words()
	if slices.ContainsFunc(words, func(l string) bool { return strings.Contains(l, "address already in use") }) {
		return errPortTaken
	}
	return engine.Fail(record.Other, "ollama serve ended before it answered (%s): %s", exit(s.proc.Err()), summary(words))
}

// words are the last lines that the server and its runner said, without their times and without the log of requests.
func (s *server) words() []string {
	var out []string
	dump := false // of a crash: where every thread was, which tells nobody what went wrong
	for _, l := range s.tail.Lines(1000) {
		if dump = dumpLine.MatchString(l) || dump && !timed.MatchString(l) && !request.MatchString(l); dump {
			continue
		}
		if l = plain(l); l != "" {
			out = append(out, fault.OneLine(l))
		}
	}
	return out
}

var (
	dumpLine = regexp.MustCompile(`^goroutine \d+.*\[`)
	telling  = regexp.MustCompile(`(?i)error|fail|fatal|panic|assert|unable|can't|cannot|could not|invalid|unknown|unsupported|missing|out of|signal|sig[a-z]{3,4}:|denied|exception|what\(\)`)
)

// ended waits for the process's end, at most so long.
func (s *server) ended(atMost time.Duration) bool {
	select {
	case <-s.proc.Done():
		return true
	default: // of two that are ready the next select takes either
	}
	select {
	case <-s.proc.Done():
		return true
	case <-time.After(atMost):
		return false
	}
}

func (s *server) asked() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

// stop ends the server, its runner and all that belongs to them.
func (s *server) stop() {
	s.stopping.Do(func() { close(s.stopped) })
	s.proc.Kill() // it has nothing to save
	s.free()
}

func (s *server) free() {
	s.release.Do(func() {
		s.end()
		_ = s.log.Close() // nothing hangs on its last bytes
		removeAll(s.dir)
	})
}

// removeAll tries again for a while: a runner that is being killed may still write.
func removeAll(dir string) {
	for range 20 {
		if os.RemoveAll(dir) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func exit(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// summary is the last three lines that tell of something that went wrong, on one; the last three of all where none does.
func summary(lines []string) string {
	if len(lines) == 0 {
		return "it said nothing"
	}
	tell := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !telling.MatchString(l) })
	if len(tell) > 0 {
		lines = tell
	}
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

func outOfMemory(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{"out of memory", "failed to allocate", "unable to allocate", "cannot allocate memory", "bad_alloc",
		"more system memory", "cudamalloc failed", "requires more memory"}, func(s string) bool { return strings.Contains(text, s) })
}
