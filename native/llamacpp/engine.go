// Package llamacpp drives llama.cpp.
//
// Engine starts a llama-server of its own on the loopback interface for every launch and speaks HTTP to it. Its token times
// are those at which the client read the token's event, so they carry the server's JSON and the socket; the server's own timings are
// reported beside them. It computes on the CPU alone. Two things differ from other engines by llama-server's nature, and are
// in the record's policy: to go on behind the end of a text takes another completion, and it maps the model file, so that the
// resident weights are page cache that other processes may share.
package llamacpp

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"llmparity/internal/cache"
	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/record"
	"llmparity/native/machine"
)

// Name is the engine's name in plans and records.
const Name = "llamacpp"

// Config is what a user may choose of llama-server. The zero value is ready.
type Config struct {
	Path  string // of llama-server; empty: searched for
	Cache string // the cache folder, where a build of our own lies under llamacpp/; empty: not searched

	// Threads is 1 unless set. A second thread on a machine of two cores falls to a tenth of its speed whenever anything else
	// runs, and in a measurement the sampler always does: threads spin at every layer's barrier while the late one waits for
	// a core. One thread is also what another engine's software GPU can be held against without a core count in between.
	Threads int

	// KVType is the element type of both halves of the KV cache, f32 unless set: f16 goes with another engine's cache of f16.
	KVType string
}

func (c Config) threads() int { return max(1, c.Threads) }

func (c Config) kvType() string { return cmp.Or(c.KVType, "f32") }

// args are llama-server's arguments; there is no secret in them.
func (c Config) args(m engine.Model, port int) []string {
	n := strconv.Itoa(c.threads())
	args := []string{
		"-m", m.Path, "--host", "127.0.0.1", "--port", strconv.Itoa(port),
		// One slot, nothing kept from one prompt to the next: every prefill is whole.
		"-np", "1", "--no-cache-prompt", "-cram", "0",
		"-t", n, "-tb", n, "-ngl", "0", "-dev", "none",
		// A KV cache of f16, the server's default, and flash attention, which sums in another order, both turn close greedy choices.
		"-ctk", c.kvType(), "-ctv", c.kvType(), "-fa", "off",
		// No guessing, no warm-up of its own (the runner has a phase for it), no page, no network.
		"-fit", "off", "--no-warmup", "--no-webui", "--offline", "--log-colors", "off",
	}
	if m.Context > 0 {
		args = append(args, "-c", strconv.Itoa(m.Context))
	}
	return args
}

// policy is what of the configuration bears on figures or on ids.
func (c Config) policy(m engine.Model, context int) map[string]string {
	return map[string]string{
		"weights_dtype":   m.DType,
		"kv_dtype":        c.kvType(),
		"flash_attention": "off",
		"threads":         strconv.Itoa(c.threads()),
		"context":         strconv.Itoa(context),
		"prompt_cache":    "off",
		"mmap":            "on",
		"warmup":          "off",
		"ignore_eos":      "goes on behind the end of a text by another completion",
		"special_tokens":  "parsed in prompts; BOS as the model's own flag says",
	}
}

// Engine is llama.cpp through llama-server.
type Engine struct {
	config Config
	pick   func() (int, error) // a port

	mu    sync.Mutex
	known identity // hashing takes a while: once a file
}

// New makes the engine; nothing is looked for yet.
func New(c Config) *Engine { return &Engine{config: c, pick: freePort} }

// Name is Name.
func (*Engine) Name() string { return Name }

// Caps is what llama-server can do. No process exists before the model is loaded.
func (*Engine) Caps() engine.Caps {
	return engine.Caps{IgnoreEOS: true, TokenIDs: true, Exact: true, Requests: 1, Isolation: record.OfLaunch}
}

// Check looks for llama-server and reads the model's header.
func (l *Engine) Check(ctx context.Context, m engine.Model) error {
	if err := checkModel(m); err != nil {
		return err
	}
	_, err := l.binary(ctx)
	return err
}

// checkModel leaves the architecture to llama-server, which knows more of them than we do.
func checkModel(m engine.Model) error {
	if m.Format != "" && m.Format != "gguf" {
		return fault.New(fault.BadModel, "name its GGUF, which both engines run", "llama.cpp runs GGUF files; the model %s is a %s package", m.Name, m.Format)
	}
	f, err := gguf.Open(m.Path)
	if err != nil {
		return &engine.Failure{Class: record.SetUp, Err: err}
	}
	return f.Close()
}

// Open identifies the server and the machine, so that nothing of it falls into a timed phase. It starts nothing that stays.
func (l *Engine) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	b, err := l.binary(ctx)
	if err != nil {
		return nil, err
	}
	p.Event(record.Event{At: time.Now(), Device: &record.Device{Class: record.CPU, Name: machine.CPU(),
		Detail: map[string]string{"threads": strconv.Itoa(l.config.threads()), "gpu_layers": "0"}}})
	return &session{config: l.config, pick: l.pick, binary: b, probe: p}, nil
}

// identity is a llama-server that was identified.
type identity struct {
	path, version, sha256 string
	size                  int64
	modified              time.Time
}

func (l *Engine) binary(ctx context.Context) (identity, error) {
	path, err := Find(l.config)
	if err != nil {
		return identity{}, &engine.Failure{Class: record.SetUp, Err: err}
	}
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, fmt.Errorf("llama-server: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.known; k.path == path && k.size == info.Size() && k.modified.Equal(info.ModTime()) {
		return k, nil
	}
	b := identity{path: path, size: info.Size(), modified: info.ModTime()}
	if b.sha256, err = cache.HashFile(path); err != nil {
		return identity{}, err
	}
	if b.version, err = version(ctx, path); err != nil {
		return identity{}, err
	}
	l.known = b
	return b, nil
}

// version runs the server's --version, which also shows that it can run here at all.
func version(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.Command(path, "--version")
	cmd.Env = environment("")
	tail := &child.Tail{Max: 4096}
	cmd.Stdout, cmd.Stderr = tail, tail
	p, err := child.Start(ctx, cmd)
	if err != nil {
		return "", noServer("%s does not start: %v", path, err)
	}
	<-p.Done()
	if ctx.Err() != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, ctx.Err())
	}
	lines := tail.Lines(100)
	if p.Err() != nil {
		return "", noServer("%s --version fails (%v): %s", path, p.Err(), strings.Join(lastOf(lines, 1), ""))
	}
	for _, line := range lines {
		if v, ok := strings.CutPrefix(line, "version:"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", noServer("%s is not a llama-server: --version says %q", filepath.Base(path), strings.Join(lastOf(lines, 1), ""))
}

func lastOf(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }
