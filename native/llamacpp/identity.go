package llamacpp

import (
	"context"
	"path/filepath"
	"strings"

	"llmparity/native/logs"
	"llmparity/native/program"
)

// identity is a program that was identified.
type identity struct {
	path, version, sha256 string
	options               options
	libraries             string // their sum; empty: the program has all within it
}

// known keeps an identity, of one program as a rule.
type known struct{ program.Known[identity] }

func (k *known) identify(ctx context.Context, p program.Program, path string) (identity, error) {
	return k.Of(path, func(sha256 string) (identity, error) {
		v, err := version(ctx, p, path)
		if err != nil {
			return identity{}, err
		}
		help, err := p.Ask(ctx, path, "--help", environment(""))
		return identity{path: path, version: v, sha256: sha256, options: listed(help),
			libraries: LibrariesSHA256(path)}, err
	})
}

// version asks a program for its version, which also shows that it can run here at all.
func version(ctx context.Context, p program.Program, path string) (string, error) {
	lines, err := p.Ask(ctx, path, "--version", environment(""))
	if err != nil {
		return "", err
	}
	for _, line := range lines {
		if v, ok := strings.CutPrefix(line, "version:"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", p.Unfit("%s is not a %s: --version says %q", filepath.Base(path), p.Names[0], logs.LastWords(lines))
}
