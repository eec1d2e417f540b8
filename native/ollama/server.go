package ollama

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/fault"
	"llmparity/native/launch"
	"llmparity/native/logs"
	"llmparity/native/program"
)

// server is an Ollama server that we started.
type server struct {
	*launch.Program
	client  *client
	dir     string // its home and model store
	remove  func() // removes them
	address string // with its port
	pid     int    // of the process that answers: a child, if the program is a script
	said    *logReader
}

// environment is ours without Ollama's variables, each of which would set an option, and without GPUs unless
// requested.
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

// variables returns the server's settings.
func (c Config) variables() []string {
	s := []string{
		// one model with a context for each slot, loaded until we unload it
		"OLLAMA_NUM_PARALLEL=" + strconv.Itoa(c.slots()), "OLLAMA_MAX_LOADED_MODELS=1", "OLLAMA_KEEP_ALIVE=-1",
		"OLLAMA_NOPRUNE=1",
		// log cached tokens and buffer sizes: a few lines per request, none per token
		"OLLAMA_DEBUG=1",
	}
	if kv := c.kvType(); kv != "f16" {
		s = append(s, "OLLAMA_FLASH_ATTENTION=1", "OLLAMA_KV_CACHE_TYPE="+kv) // quantised caches need flash attention
	}
	return s
}

// startServer starts the process; it does not answer yet.
func startServer(c Config, b identity, p engine.Probe, port int) (*server, error) {
	dir, remove, err := c.scratch()
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, remove: remove, said: newLogReader(),
		address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	s.client = newClient(&url.URL{Scheme: "http", Host: s.address})
	cmd := exec.Command(b.path, "serve")
	cmd.Env = append(c.variables(), "HOME="+path.Join(dir, "home"), "OLLAMA_MODELS="+path.Join(dir, "models"),
		"OLLAMA_HOST="+s.address)
	if c.in == nil { // a container's variables are its own
		cmd.Env, cmd.Dir = slices.Concat(environment(c.GPU), cmd.Env), dir
	}
	s.client.HTTP = c.in.Client()
	// the process outlives the Open that starts it
	s.Program, err = launch.Start(context.Background(), cmd, launch.Options{Name: "Ollama", Log: p.Log(Name),
		Keep: 32 << 10, Read: s.said, In: c.in})
	if err != nil {
		remove()
		return nil, err
	}
	return s, nil
}

// scratch makes a folder where the server runs, with one for its home and one for models.
func (c Config) scratch() (dir string, remove func(), err error) {
	if c.in != nil {
		const make = `d=$(mktemp -d) && mkdir "$d/home" "$d/models" && echo "$d"`
		said, err := c.in.Says(context.Background(), "sh", "-c", make)
		dir = child.LastLine(said)
		return dir, func() {
			_, _ = c.in.Says(context.Background(), "sh", "-c", `rm -rf "$1"`, "sh", dir) // the container may have ended
		}, err
	}
	if dir, err = child.Scratch(Name); err != nil {
		return "", nil, err
	}
	for _, sub := range []string{"home", "models"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			_ = os.RemoveAll(dir) // report the first error
			return "", nil, err
		}
	}
	return dir, func() { removeAll(dir) }, nil
}

// ready waits until the server answers, and returns its version.
func (s *server) ready(ctx context.Context) (version string, err error) {
	_, _, err = s.Await(ctx, time.Minute, func(ctx context.Context) (answers, ready bool) {
		version, err = s.client.version(ctx)
		return err == nil, err == nil
	})
	switch {
	case errors.Is(err, launch.ErrEnded):
		words := s.words()
		if slices.ContainsFunc(words, func(l string) bool { return strings.Contains(l, "address already in use") }) {
			return "", child.ErrPortTaken
		}
		return "", s.NotStarted("ollama serve ended before it answered (%s): %s", s.Exit(), summary(words))
	case err != nil:
		return "", err
	}
	s.pid = s.PID() // of a script, perhaps, that started the server
	if s.In() {
		return version, nil
	}
	if pid, err := proc.PIDOfListener(ctx, s.address); err == nil {
		if ours := child.Descendants(s.pid); ours != nil && !slices.Contains(ours, pid) {
			return "", child.ErrPortTaken
		}
		s.pid = pid
	}
	return version, nil
}

// failed matches the request log's line about a request that failed.
var failed = regexp.MustCompile(`^\[GIN\].*\| [45]\d\d \|`)

// lastWords returns why something has just failed. The runner's last lines come through the server, possibly after the
// answer, so it waits until there are no new ones; of a refused request also for the request log's, which the server
// writes after all others.
func (s *server) lastWords(refused bool) string {
	const quiet, atMost = 100 * time.Millisecond, 2 * time.Second
	words := s.words()
	for begin := time.Now(); time.Since(begin) < atMost; {
		time.Sleep(quiet)
		before := words
		words = s.words()
		if slices.Equal(words, before) && (!refused || slices.ContainsFunc(s.Tail.Lines(1000), failed.MatchString)) {
			break
		}
	}
	return summary(words)
}

// words returns the last output of server and runner, without times and without the request log.
func (s *server) words() []string {
	var out []string
	for _, l := range s.Tail.Lines(1000) {
		if l = plain(l); l != "" {
			out = append(out, fault.OneLine(l))
		}
	}
	return out
}

// telling matches lines that mention a failure.
var telling = regexp.MustCompile(`(?i)error|fail|fatal|panic|assert|unable|can't|cannot|could not|invalid|unknown|` +
	`unsupported|missing|out of|signal|sig[a-z]{3,4}:|denied|exception|what\(\)`)

// stop ends the server, its runner and all other descendants.
func (s *server) stop() {
	s.End(0) // it has nothing to save
	s.remove()
}

// removeAll retries for a second, because a runner that is being killed may still write.
func removeAll(dir string) {
	for range 20 {
		if os.RemoveAll(dir) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// summary joins the last three lines that mention a failure, or the last three of all if none does.
func summary(lines []string) string {
	tell := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !telling.MatchString(l) })
	if len(tell) > 0 {
		lines = tell
	}
	return logs.LastWords(lines)
}

// PathVariable is the environment variable for the path of ollama.
const PathVariable = "LLMPARITY_OLLAMA"

func (c Config) program() program.Program {
	return program.Program{Names: []string{"ollama"}, Build: "ollama/current", Flag: "--ollama", Variable: PathVariable,
		In: c.in, Kind: fault.NoOllama,
		Do: "run `scripts/setup ollama`, put it on PATH, set --ollama, or name a running server with --ollama-url"}
}

// Find searches for ollama at the given path, then on PATH, then in the cache.
func Find(c Config) (string, error) { return c.program().Find(c.Path, c.Cache) }

// identity describes a program.
type identity struct{ path, version, sha256 string }

// binary identifies the program that would be started. The version is that of the program itself, not of a running
// server.
func (o *Ollama) binary(ctx context.Context) (identity, error) {
	path, err := Find(o.config)
	if err != nil {
		return identity{}, err
	}
	return o.known.Of(path, func(sha256 string) (identity, error) {
		home, remove, err := o.config.scratch() // it creates a key
		if err != nil {
			return identity{}, err
		}
		defer remove()
		own := []string{"HOME=" + home, "OLLAMA_HOST=127.0.0.1:9"} // no server listens on the discard port
		if o.config.in == nil {                                    // a container's variables are its own
			own = append(environment(false), own...)
		}
		v, err := o.config.program().Version(ctx, path, own, versionLine)
		return identity{path, v, sha256}, err
	})
}

// versionLine matches the version of the program itself, which comes last, if no server answers.
var versionLine = regexp.MustCompile(`(?s)^.*(?:client version is|ollama version is) (\S+)`)
