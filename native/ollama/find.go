package ollama

import (
	"context"
	"os"
	"regexp"

	"llmparity/internal/child"
	"llmparity/internal/fault"
	"llmparity/native/program"
)

// PathVariable is the environment variable for the path of ollama.
const PathVariable = "LLMPARITY_OLLAMA"

func ollamaProgram() program.Program {
	return program.Program{Names: []string{"ollama"}, Build: "ollama/current", Flag: "--ollama", Variable: PathVariable,
		Kind: fault.NoOllama,
		Do:   "run `scripts/setup ollama`, put it on PATH, set --ollama, or name a running server with --ollama-url"}
}

// Find searches for ollama at the given path, then on PATH, then in the cache.
func Find(c Config) (string, error) { return ollamaProgram().Find(c.Path, c.Cache) }

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
		home, err := child.Scratch("ollama-version") // it creates a key
		if err != nil {
			return identity{}, err
		}
		defer os.RemoveAll(home)
		// no server listens on the discard port
		env := append(environment(false), "HOME="+home, "OLLAMA_HOST=127.0.0.1:9")
		v, err := ollamaProgram().Version(ctx, path, env, versionLine)
		return identity{path, v, sha256}, err
	})
}

// versionLine matches the version of the program itself, which comes last, if no server answers.
var versionLine = regexp.MustCompile(`(?s)^.*(?:client version is|ollama version is) (\S+)`)
