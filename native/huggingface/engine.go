// Package huggingface drives Hugging Face's transformers: a Python program of ours, runner.py, that does what a user's
// script does. It speaks the protocol of external engines, so package protocol has the conversation.
//
// The model is a Hugging Face folder, or a GGUF of which one is made, once. Token times are those at which generate()
// hands a token to its streamer, by the clock that this process shares with it. Figures of parts of memory are the
// sizes of torch's tensors, as the runner reads them, and on a GPU those of torch's allocator.
//
// Readers of figures must know: the baseline is a process that has imported torch and transformers, some 400 MiB; the
// KV cache grows with the text, and is freed when the next request begins.
package huggingface

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"crypto/sha256"
	"encoding/hex"

	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/record"
	"llmparity/native/program"
	"llmparity/native/protocol"
)

// Name is the engine's name in plans and records.
const Name = "huggingface"

//go:embed deep.py
var deep []byte

//go:embed runner.py
var generating []byte

// runner is the whole program: what profiles comes before what calls it.
var runner = slices.Concat(deep, generating)

// runnerSHA256 identifies the runner in records.
var runnerSHA256 = func() string {
	sum := sha256.Sum256(runner)
	return hex.EncodeToString(sum[:])
}()

// Engine is transformers.
type Engine struct {
	config Config

	mu    sync.Mutex
	found environment
	inner *protocol.Engine // once the environment is found
}

// New makes the engine without searching for anything.
func New(c Config) *Engine { return &Engine{config: c} }

// Name returns Name.
func (*Engine) Name() string { return Name }

// Caps returns what the runner can do.
func (e *Engine) Caps() engine.Caps {
	return engine.Caps{IgnoreEOS: true, Resident: true, TokenIDs: true, TakesIDs: true, Exact: true, Scores: true,
		Requests: e.config.batch(), Isolation: record.OfLaunch, Rounds: e.config.coarse()}
}

// Check finds the environment, and reads the model's description.
func (e *Engine) Check(ctx context.Context, m models.Model) error {
	if m.Format != models.HuggingFace {
		if err := program.CheckGGUF("transformers", m); err != nil {
			return err
		}
		if m.Unsupported != nil {
			return engine.SetUp(fault.Wrap(fault.UnknownArch, m.Unsupported, "name the model's Hugging Face folder",
				"the GGUF cannot become a Hugging Face folder"))
		}
		if m.Architecture != "" && !slices.Contains(gguf.Supported(), m.Architecture) {
			return engine.SetUp(fault.New(fault.UnknownArch, "name the model's Hugging Face folder",
				"a %s GGUF cannot become a Hugging Face folder", m.Architecture))
		}
	} else if _, err := os.Stat(filepath.Join(m.Path, "config.json")); err != nil {
		return engine.SetUp(fault.Wrap(fault.BadModel, err, "", "model %s cannot be read", m.Name))
	}
	_, err := e.program(ctx)
	return err
}

// program returns the runner as an engine of the protocol, in the environment that is found.
func (e *Engine) program(ctx context.Context) (*protocol.Engine, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inner != nil {
		return e.inner, nil
	}
	found, err := e.config.find(ctx)
	if err != nil {
		return nil, err
	}
	of := protocol.Config{Called: Name, Silence: e.config.Watchdog, DType: e.config.dtype(), Threads: e.config.Threads,
		Batch: e.config.batch(), Parts: map[string]string{"runner": runnerSHA256}, In: e.config.in}
	argv := []string{found.python, "-X", "faulthandler"}
	if e.config.in != nil { // the program travels with the command, so that nothing is written there
		argv, of.Env = append(argv, "-c", unpack), []string{"LLMPARITY_RUNNER=" + string(runner)}
	} else if path, err := e.runner(); err != nil {
		return nil, err
	} else {
		argv = append(argv, path)
	}
	of.Command = protocol.Command{Name: Name, Argv: append(argv, e.config.arguments()...)}
	e.found, e.inner = found, protocol.New(of)
	return e.inner, nil
}

// unpack is a Python program that runs the one in a variable.
const unpack = `import os; exec(compile(os.environ.pop("LLMPARITY_RUNNER"), "runner.py", "exec"))`

// runner writes the runner into the cache, once, and returns its path.
func (e *Engine) runner() (string, error) {
	path := filepath.Join(e.config.cache(), "runners", fmt.Sprintf("huggingface-%.12s.py", runnerSHA256))
	if _, err := os.Stat(path); err != nil {
		if err = cache.MkdirAll(filepath.Dir(path)); err == nil {
			err = whole.Write(path, func(w io.Writer) error { _, err := w.Write(runner); return err })
		}
		if err != nil {
			return "", fault.WriteError(err, path, "set another cache folder with "+cache.Variable)
		}
	}
	return path, nil
}

// Room returns how much memory its container leaves.
func (e *Engine) Room(ctx context.Context) (free int64, how string, ok bool) {
	return e.config.in.Room(ctx)
}

// Prepare writes the folder of a GGUF into the cache, once.
func (e *Engine) Prepare(ctx context.Context, m models.Model, say func(string)) error {
	if m.Format == models.HuggingFace {
		return nil
	}
	_, lock, err := models.Folder(ctx, m, say)
	if lock != nil {
		_ = lock.Close() // a session takes its own
	}
	return err
}

// Open starts the runner, which imports torch and transformers.
func (e *Engine) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	inner, err := e.program(ctx)
	if err != nil {
		return nil, err
	}
	s, err := inner.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	return &session{Session: s, Scorer: s.(engine.Scorer), DeepProfiler: s.(engine.DeepProfiler)}, nil
}

// session is a session of the protocol that loads the folder of a GGUF.
type session struct {
	engine.Session
	engine.Scorer
	engine.DeepProfiler

	mu   sync.Mutex
	lock *os.File // of the folder in the cache
}

// Load loads the folder, or the one that was made of the GGUF.
func (s *session) Load(ctx context.Context, m models.Model) error {
	if m.Format == models.HuggingFace {
		return s.Session.Load(ctx, m)
	}
	if err := m.Same(); err != nil {
		return err
	}
	dir, lock, err := models.Folder(ctx, m, func(string) {})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.release()
	s.lock = lock
	s.mu.Unlock()
	m.Path, m.Parts, m.Was, m.Format = dir, nil, nil, models.HuggingFace
	return s.Session.Load(ctx, m)
}

// release lets the folder be removed from the cache.
func (s *session) release() {
	if s.lock != nil {
		_ = s.lock.Close() // it is a lock only
		s.lock = nil
	}
}

// Close ends the runner.
func (s *session) Close() error {
	err := s.Session.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
	return err
}

// Loaded describes the model as torch holds it.
func (e *Engine) Loaded(m models.Model) engine.Loaded {
	return engine.Loaded{As: Memory, Path: m.Path, OnGPU: e.config.device() != "cpu", DType: e.config.dtype()}
}

// Settings returns what is requested.
func (e *Engine) Settings(m models.Model) map[string]string { return e.config.policy(m) }
