package ollama

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"llmparity/internal/child"
	"llmparity/internal/fault"
	"llmparity/native/logs"
	"llmparity/native/program"
)

// PathVariable names an ollama in the environment.
const PathVariable = "LLMPARITY_OLLAMA"

func ollamaProgram() program.Program {
	return program.Program{Names: []string{"ollama"}, Build: "ollama/current", Flag: "--ollama", Variable: PathVariable,
		Kind: fault.NoOllama,
		Do:   "run `scripts/setup ollama` to build one, put one on PATH, give its path with --ollama, or name a server that runs with --ollama-url"}
}

// Find looks for ollama where it was named, then on PATH, then in the cache.
func Find(c Config) (string, error) { return ollamaProgram().Find(c.Path, c.Cache) }

// identity is an ollama that was identified.
type identity struct{ path, version, sha256 string }

// binary identifies the program that would be started.
func (o *Ollama) binary(ctx context.Context) (identity, error) {
	path, err := Find(o.config)
	if err != nil {
		return identity{}, err
	}
	return o.known.Of(path, func(sha256 string) (identity, error) {
		v, err := version(ctx, path)
		return identity{path, v, sha256}, err
	})
}

// versionLine is how ollama tells its own version where no server answers it.
var versionLine = regexp.MustCompile(`^.*(?:client version is|ollama version is) (\S+)`)

// version is what the program itself says. It is kept from asking a server.
func version(ctx context.Context, path string) (string, error) {
	home, err := child.Scratch("ollama-version") // it makes itself a key
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	env := append(environment(false), "HOME="+home, "OLLAMA_HOST=127.0.0.1:9") // nobody answers on the port of discard
	lines, err := ollamaProgram().Ask(ctx, path, "--version", env)
	if err != nil {
		return "", err
	}
	m := versionLine.FindStringSubmatch(strings.Join(lines, " "))
	if m == nil {
		return "", ollamaProgram().Unfit("%s is not an ollama: --version says %q", filepath.Base(path),
			logs.LastWords(lines))
	}
	return m[1], nil
}
