package ollama

import (
	"context"
	"errors"
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
	"llmparity/internal/sample/proc"
	"llmparity/native/launch"
	"llmparity/native/logs"
)

// server is an Ollama that we started.
type server struct {
	*launch.Program
	client *client
	dir    string // its home and its store; goes with it
	port   int
	pid    int // of who answers, once it does: a child where the program is a script
	said   *logReader

	release sync.Once
}

// leader starts the server in its own place. Its runner would outlive it, and us: what waits beside them for the end of
// the standard input, which ends when we or the server do, then ends them all. It is nobody's child, so that it is not
// sampled with them.
const leader = `exec 3<&0 </dev/null
( { cat <&3; kill -KILL 0; } >/dev/null 2>&1 & )
exec "$0" serve 3<&-`

// environment is ours without Ollama's own variables, each of which sets an option behind our back, and without a GPU
// unless asked.
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

// places are the server's own, of which its environment tells.
func places(dir string, port int) []string {
	return []string{"HOME=" + filepath.Join(dir, "home"), "OLLAMA_MODELS=" + filepath.Join(dir, "models"),
		"OLLAMA_HOST=" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
}

// variables are the server's settings, of which its environment tells too.
func (c Config) variables() []string {
	s := []string{
		// A context for each slot, of the length that is asked for, of one model, until it is to go.
		"OLLAMA_NUM_PARALLEL=" + strconv.Itoa(c.slots()), "OLLAMA_MAX_LOADED_MODELS=1", "OLLAMA_KEEP_ALIVE=-1",
		"OLLAMA_NOPRUNE=1",
		// Its log tells what came from the cache, and how large the buffers are: some lines a request, none a token.
		"OLLAMA_DEBUG=1",
	}
	if kv := c.kvType(); kv != "f16" {
		s = append(s, "OLLAMA_FLASH_ATTENTION=1", "OLLAMA_KV_CACHE_TYPE="+kv) // the one needs the other
	}
	return s
}

// startServer starts the process; nothing answers yet.
func startServer(c Config, b identity, p engine.Probe, port int) (*server, error) {
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
	s := &server{dir: dir, port: port, said: newLogReader()}
	s.client = newClient("http://"+s.address(), true)
	cmd := exec.Command("sh", "-c", leader, b.path)
	cmd.Env = slices.Concat(environment(c.GPU), places(dir, port), c.variables())
	cmd.Dir = dir
	// it outlives the Open that starts it
	s.Program, err = launch.Start(context.Background(), cmd, launch.Options{Name: "Ollama", Log: p.Log(Name),
		Keep: 32 << 10, Read: s.said, Leader: true})
	if err != nil {
		removeAll(dir)
		return nil, err
	}
	return s, nil
}

func (s *server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// ready waits until the server answers, and gives its version.
func (s *server) ready(ctx context.Context) (version string, err error) {
	_, _, err = s.Await(ctx, time.Minute, func(ctx context.Context) (answers, ready bool) {
		version, err = s.client.version(ctx)
		return err == nil, err == nil
	})
	switch {
	case errors.Is(err, launch.ErrEnded):
		return "", s.died()
	case err != nil:
		return "", err
	}
	s.pid = s.PID()
	if pid, err := proc.PIDOfListener(ctx, s.address()); err == nil {
		if !descends(pid, s.pid) {
			return "", child.ErrPortTaken
		}
		s.pid = pid
	}
	return version, nil
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
		return child.ErrPortTaken
	}
	return s.NotStarted("ollama serve ended before it answered (%s): %s", s.Exit(), summary(words))
}

// lastWords are those that tell why something has just failed. An answer may be there before the runner's last lines,
// which come by way of the server: they are waited for until nothing more is said.
func (s *server) lastWords() string {
	const quiet, atMost = 100 * time.Millisecond, time.Second
	words := s.words()
	for begin := time.Now(); time.Since(begin) < atMost; {
		time.Sleep(quiet)
		before := words
		if words = s.words(); slices.Equal(words, before) {
			break
		}
	}
	return summary(words)
}

// words are the last lines that the server and its runner said, without their times and without the log of requests.
func (s *server) words() []string {
	var out []string
	dump := false // of a crash: where every thread was, which tells nobody what went wrong
	for _, l := range s.Tail.Lines(1000) {
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

// stop ends the server, its runner and all that belongs to them.
func (s *server) stop() {
	s.release.Do(func() {
		s.End(0) // it has nothing to save
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

// summary is the last three lines that tell of something that went wrong, on one; the last three of all where none
// does.
func summary(lines []string) string {
	tell := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !telling.MatchString(l) })
	if len(tell) > 0 {
		lines = tell
	}
	return logs.LastWords(lines)
}
