package llamacpp

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"llmparity/internal/cache"
	"llmparity/internal/child"
	"llmparity/internal/fault"
)

// identity is a program that was identified.
type identity struct {
	path, version, sha256 string
	size                  int64
	modified              time.Time
	options               options
}

// known keeps an identity: hashing takes a while, and is done once a file.
type known struct {
	mu sync.Mutex
	is identity
}

func (k *known) identify(ctx context.Context, p program, path string) (identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, fmt.Errorf("%s: %w", p.names[0], err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.is.path == path && k.is.size == info.Size() && k.is.modified.Equal(info.ModTime()) {
		return k.is, nil
	}
	b := identity{path: path, size: info.Size(), modified: info.ModTime()}
	if b.sha256, err = cache.HashFile(path); err != nil {
		return identity{}, err
	}
	if b.version, err = p.version(ctx, path); err != nil {
		return identity{}, err
	}
	help, err := p.ask(ctx, path, "--help")
	if err != nil {
		return identity{}, err
	}
	b.options = listed(help)
	k.is = b
	return b, nil
}

// version asks a program for its version, which also shows that it can run here at all.
func (p program) version(ctx context.Context, path string) (string, error) {
	lines, err := p.ask(ctx, path, "--version")
	if err != nil {
		return "", err
	}
	for _, line := range lines {
		if v, ok := strings.CutPrefix(line, "version:"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", p.useless("%s is not a %s: --version says %q", filepath.Base(path), p.names[0], strings.Join(lastOf(lines, 1), ""))
}

// ask runs a program that says something and ends, and gives its lines.
func (p program) ask(ctx context.Context, path, question string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.Command(path, question)
	cmd.Env = environment("")
	tail := &child.Tail{Max: 256 << 10}
	cmd.Stdout, cmd.Stderr = tail, tail
	asked, err := child.Start(ctx, cmd)
	if err != nil {
		return nil, p.useless("%s does not start: %v", path, err)
	}
	<-asked.Done()
	if ctx.Err() != nil {
		return nil, fault.Wrap(fault.NoLlamaServer, ctx.Err(), "", "%s %s", path, question)
	}
	lines := tail.Lines(1 << 16)
	if asked.Err() != nil {
		return nil, p.useless("%s %s fails (%v): %s", path, question, asked.Err(), strings.Join(lastOf(lines, 1), ""))
	}
	return lines, nil
}
