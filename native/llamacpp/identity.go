package llamacpp

import (
	"context"
	"path/filepath"
	"strings"

	"llmparity/internal/record"
	"llmparity/native/logs"
	"llmparity/native/program"
)

// identity describes a program.
type identity struct {
	path, version, sha256 string
	options               options
	libraries             string // hash of its shared libraries; empty: it has none
}

// info describes the program as it was started.
func (i identity) info(name string, args []string, policy map[string]string) record.EngineInfo {
	parts := map[string]string{}
	if i.libraries != "" {
		parts["libraries_sha256"] = i.libraries
	}
	return record.EngineInfo{Name: name, Version: i.version, Path: i.path, SHA256: i.sha256, Args: args, Parts: parts,
		Policy: policy}
}

// known caches the identity of one program.
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

// version asks a program for its version, which also shows that it runs here.
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
	return "", p.Unfit("%s is not %s: --version prints %q", filepath.Base(path), p.Names[0], logs.LastWords(lines))
}
