package ollama

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"llmparity/internal/cache"
	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// PathVariable names an ollama in the environment.
const PathVariable = "LLMPARITY_OLLAMA"

// Find looks for ollama where it was named, then on PATH, then in the cache, where the set-up's link names its build. One that was
// named is taken or is an error: another one in its place would be measured without anybody's knowing.
func Find(c Config) (string, error) {
	for _, named := range []struct{ path, by string }{{c.Path, "--ollama"}, {os.Getenv(PathVariable), PathVariable}} {
		if named.path == "" {
			continue
		}
		path, err := exec.LookPath(named.path)
		if err != nil {
			return "", missing("%s names %s, which can't be run (%v)", named.by, named.path, cause(err))
		}
		return filepath.Abs(path)
	}
	if path, err := exec.LookPath("ollama"); err == nil {
		return filepath.Abs(path)
	}
	if c.Cache != "" {
		// Resolved, so that a record names the build and not the link.
		if path, err := filepath.EvalSymlinks(filepath.Join(c.Cache, "ollama", "current", "ollama")); err == nil {
			return path, nil
		}
	}
	return "", missing("no ollama on PATH or in the cache")
}

func cause(err error) error {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	return err
}

func missing(format string, args ...any) *fault.Error {
	return fault.New(fault.NoOllama, "run `scripts/setup ollama` to build one, put one on PATH, give its path with --ollama, "+
		"or name a server that runs with --ollama-url", "%s", fmt.Sprintf(format, args...))
}

// unfit is for one that was found and is of no use.
func unfit(format string, args ...any) error {
	return &engine.Failure{Class: record.SetUp, Err: missing(format, args...)}
}

// identity is an ollama that was identified.
type identity struct {
	path, version, sha256 string
	size                  int64
	modified              time.Time
}

// binary identifies the program that would be started. Hashing takes a while: once a file.
func (o *Ollama) binary(ctx context.Context) (identity, error) {
	path, err := Find(o.config)
	if err != nil {
		return identity{}, &engine.Failure{Class: record.SetUp, Err: err}
	}
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, fmt.Errorf("ollama: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if k := o.known; k.path == path && k.size == info.Size() && k.modified.Equal(info.ModTime()) {
		return k, nil
	}
	b := identity{path: path, size: info.Size(), modified: info.ModTime()}
	if b.sha256, err = cache.HashFile(path); err != nil {
		return identity{}, err
	}
	if b.version, err = Version(ctx, path); err != nil {
		return identity{}, err
	}
	o.known = b
	return b, nil
}

// versionLine is how ollama tells its own version where no server answers it.
var versionLine = regexp.MustCompile(`(?m)^.*(?:client version is|ollama version is) (\S+)`)

// Version runs the program's --version, which also shows that it can run here at all. It is kept from asking a server.
func Version(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	home, err := child.Scratch("ollama-version") // it makes itself a key
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	cmd := exec.Command(path, "--version")
	cmd.Env = append(environment(false), "HOME="+home, "OLLAMA_HOST=127.0.0.1:9") // nobody answers on the port of discard
	tail := &child.Tail{Max: 4096}
	cmd.Stdout, cmd.Stderr = tail, tail
	p, err := child.Start(ctx, cmd)
	if err != nil {
		return "", unfit("%s does not start: %v", path, err)
	}
	<-p.Done()
	if ctx.Err() != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, ctx.Err())
	}
	said := strings.Join(tail.Lines(20), "\n")
	if p.Err() != nil {
		return "", unfit("%s --version fails (%v): %s", path, p.Err(), fault.OneLine(said))
	}
	m := versionLine.FindStringSubmatch(said)
	if m == nil {
		return "", unfit("%s is not an ollama: --version says %q", filepath.Base(path), fault.OneLine(said))
	}
	return m[1], nil
}
