package llamacpp

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// PathVariable names a llama-server in the environment.
const PathVariable = "LLMPARITY_LLAMA_SERVER"

// Find looks for llama-server where it was named, then on PATH, then in the cache, where the set-up's link
// names its build. One that was named is taken or is an error: another one in its place would be measured without anybody's
// knowing.
func Find(c Config) (string, error) {
	for _, named := range []struct{ path, by string }{{c.Path, "--llama-server"}, {os.Getenv(PathVariable), PathVariable}} {
		if named.path == "" {
			continue
		}
		path, err := exec.LookPath(named.path)
		if err != nil {
			return "", missing("%s names %s, which can't be run (%v)", named.by, named.path, unwrap(err))
		}
		return filepath.Abs(path)
	}
	if path, err := exec.LookPath("llama-server"); err == nil {
		return filepath.Abs(path)
	}
	if c.Cache != "" {
		// Resolved, so that a record names the build and not the link.
		if path, err := filepath.EvalSymlinks(filepath.Join(c.Cache, "llamacpp", "current", "bin", "llama-server")); err == nil {
			return path, nil
		}
	}
	return "", missing("no llama-server on PATH or in the cache")
}

func unwrap(err error) error {
	if e, ok := err.(*exec.Error); ok {
		return e.Err
	}
	return err
}

func missing(format string, args ...any) *fault.Error {
	return fault.New(fault.NoLlamaServer,
		"run `make setup` to build one, put one on PATH, or give its path with --llama-server", "%s", fmt.Sprintf(format, args...))
}

// noServer is for one that was found and is of no use.
func noServer(format string, args ...any) *engine.Failure {
	return &engine.Failure{Class: record.SetUp, Err: missing(format, args...)}
}
