package llamacpp

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// program is one of llama.cpp's: what it is called on PATH, the first of its names in a build of our own, and how a user names another.
type program struct {
	names    []string
	flag     string
	variable string // in the environment
	build    string // how to get one
}

// Variables of the environment that name programs.
const (
	PathVariable = "LLMPARITY_LLAMA_SERVER"
	CLIVariable  = "LLMPARITY_LLAMA_CLI"
)

func serverProgram() program {
	return program{[]string{"llama-server"}, "--llama-server", PathVariable, "make setup"}
}

// completionProgram was llama-cli, and main before that; llama-cli is a chat client now, which is told when it is asked what it can do.
func completionProgram() program {
	return program{[]string{"llama-completion", "llama-cli"}, "--llamacpp-cli (llmparity llamacpp: --llama-cli-path)", CLIVariable, "scripts/setup llamacpp-tools"}
}

// Find looks for llama-server where it was named, then on PATH, then in the cache, where the set-up's link
// names its build. One that was named is taken or is an error: another one in its place would be measured without anybody's
// knowing.
func Find(c Config) (string, error) { return serverProgram().find(c.Path, c.Cache) }

// FindCLI looks for the one-shot program in the same places.
func FindCLI(c Config) (string, error) { return completionProgram().find(c.CLI, c.Cache) }

func (p program) find(given, cache string) (string, error) {
	for _, named := range []struct{ path, by string }{{given, p.flag}, {os.Getenv(p.variable), p.variable}} {
		if named.path == "" {
			continue
		}
		path, err := exec.LookPath(named.path)
		if err != nil {
			return "", p.missing("%s names %s, which can't be run (%v)", named.by, named.path, unwrap(err))
		}
		return filepath.Abs(path)
	}
	if path, err := exec.LookPath(p.names[0]); err == nil {
		return filepath.Abs(path)
	}
	if cache != "" {
		// Resolved, so that a record names the build and not the link.
		if path, err := filepath.EvalSymlinks(filepath.Join(cache, "llamacpp", "current", "bin", p.names[0])); err == nil {
			return path, nil
		}
	}
	for _, older := range p.names[1:] {
		if path, err := exec.LookPath(older); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", p.missing("no %s on PATH or in the cache", p.names[0])
}

func unwrap(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func (p program) missing(format string, args ...any) *fault.Error {
	return fault.New(fault.NoLlamaServer,
		fmt.Sprintf("run `%s` to build one, put one on PATH, or give its path with %s", p.build, p.flag), "%s", fmt.Sprintf(format, args...))
}

// useless is for one that was found and is of no use.
func (p program) useless(format string, args ...any) *engine.Failure {
	return &engine.Failure{Class: record.SetUp, Err: p.missing(format, args...)}
}
