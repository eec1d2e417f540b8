package ollama

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/logs"
	"llmparity/native/wire"
)

// provide makes sure that the server has the model and returns the server's digest. For a model made from a file it
// returns the file's hash, since the digest changes each time.
func (s *session) provide(ctx context.Context, m models.Model, l *loaded) (digest string, err error) {
	l.dtype = m.DType
	if m.Format == record.Served {
		k, err := s.client.known(ctx, m.Name)
		l.dtype = strings.ToLower(k.Details.Quantization)
		return k.Digest, err
	}
	sum, err := sumOf(m)
	if err != nil {
		return "", err
	}
	l.name, l.blobs = own(sum), []string{sum}
	if s.own == nil {
		return sum, s.depot.put(ctx, m.Path, sum)
	}
	_, err = s.client.ensure(ctx, l.name, sum, func() error { return s.hand(ctx, m.Path, sum) })
	return sum, err
}

// hand links the file into the store of a server that we started, so that nothing is copied. Its hash is that of the
// model, and Ollama only reads it.
func (s *session) hand(ctx context.Context, path, sum string) error {
	blobs := filepath.Join(s.own.dir, "models", "blobs")
	if in := s.config.in; in != nil {
		const link = `mkdir -p "$1" && ln -s "$2" "$1/$3"`
		inside, err := in.Path(ctx, path)
		if err == nil {
			_, err = in.Says(ctx, "sh", "-c", link, "sh", blobs, inside, "sha256-"+sum)
		}
		if err != nil {
			err = s.client.upload(ctx, path, sum)
		}
		return err
	}
	whole, err := filepath.Abs(path)
	if err = errors.Join(err, os.MkdirAll(blobs, 0o755)); err == nil {
		err = os.Symlink(whole, filepath.Join(blobs, "sha256-"+sum))
	}
	if err != nil {
		err = s.client.upload(ctx, path, sum)
	}
	return err
}

// unloadable matches what Ollama says about a file that is not a model, or not one of its.
var unloadable = regexp.MustCompile(`(unable|failed) to load model|error loading model|unsupported|invalid file magic`)

// explainLoad returns why a model was not loaded.
func (s *session) explainLoad(ctx context.Context, m models.Model, err error) error {
	r := wire.RefusalOf(err)
	if r == nil || ctx.Err() != nil {
		return s.explain(ctx, err, "loading the model")
	}
	words := ""
	if s.own != nil {
		words = "; last output: " + s.own.lastWords(true)
	}
	text := fault.OneLine(r.Message)
	name := cmp.Or(m.Path, m.Name)
	switch {
	case logs.OutOfMemory(text, words):
		return engine.Fail(record.OOM, "Ollama ran out of memory loading %s: %s%s", name, text, words)
	case absent(r):
		models, _ := s.client.tags(ctx) // optional detail
		return engine.SetUp(unknownModel(m.Name, models))
	case strings.Contains(text, "signal:"):
		return engine.Fail(record.Crash, "Ollama's runner crashed loading %s: %s%s", name, text, words)
	case unloadable.MatchString(text):
		return &engine.Failure{Class: record.BadModel, Err: fault.New(fault.BadModel,
			"check the file, or use a newer Ollama", "Ollama cannot load %s: %s%s", name, text, words)}
	}
	return engine.Fail(record.Other, "Ollama did not load %s: %s%s", name, text, words)
}

// explain turns an error of the client into its cause: our own cancellation, the server's end or the runner's.
func (s *session) explain(ctx context.Context, err error, doing string) error {
	var failure *engine.Failure
	r := wire.RefusalOf(err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s in Ollama: %w", doing, ctx.Err())
	case s.life.Err() != nil:
		return errClosed
	case errors.As(err, &failure), fault.Of(err) != fault.Run:
		return err
	case r != nil && fault.NoSpace(err), r != nil && strings.Contains(r.Message, "no space left"):
		return engine.SetUp(fault.New(fault.DiskFull, "free space, or set TMPDIR to a folder on another disk",
			"Ollama's store: %s", fault.OneLine(r.Message)))
	case r.Denied():
		return engine.SetUp(fault.New(fault.ServerUnreachable, "ask its owner for access", "%s: %v", doing, r))
	case r != nil && r.Status == http.StatusBadRequest:
		return engine.Fail(record.SetUp, "%s: %w", doing, err)
	}
	if crash := s.crash(err); crash != nil {
		if s.life.Err() != nil {
			return errClosed
		}
		if l, err := s.model.Now(); err == nil {
			l.crashed.Store(crash)
		}
		return crash
	}
	return engine.Fail(record.Other, "%s: %w", doing, err)
}

// shown is what a server says about a model. Old versions and proxies may say less.
type shown struct {
	Modelfile  string                     `json:"modelfile"`
	Parameters string                     `json:"parameters"`
	Info       map[string]json.RawMessage `json:"model_info"`
}

var (
	fromLine   = regexp.MustCompile(`(?m)^(?:FROM|ADAPTER) .*sha256[-:]([0-9a-f]{64})`)
	windowLine = regexp.MustCompile(`(?m)^num_ctx\s+(\d+)\s*$`)
)

// blobs returns the hashes of the files that the model consists of.
func (k shown) blobs() (sums []string) {
	for _, m := range fromLine.FindAllStringSubmatch(k.Modelfile, -1) {
		sums = append(sums, m[1])
	}
	return sums
}

// longest returns the context that the model was trained for; 0: unknown.
func (k shown) longest() int {
	for name, raw := range k.Info {
		var n int
		if strings.HasSuffix(name, ".context_length") && json.Unmarshal(raw, &n) == nil {
			return max(0, n)
		}
	}
	return 0
}

// maxUnasked is the longest context if the user does not choose one, as for model files. Its memory is reserved at the
// load.
const maxUnasked = 4096

// window returns the context to use if the user does not choose one: the one set by the model's author, else the
// model's own. Ollama's default is not used because Ollama does not report it and silently truncates what does not
// fit.
func (k shown) window() int {
	if m := windowLine.FindStringSubmatch(k.Parameters); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n
		}
	}
	return min(k.longest(), maxUnasked)
}

// look finds out the model's files and context.
func (s *session) look(ctx context.Context, l *loaded) error {
	var k shown
	// A proxy may not support it; the load reports errors.
	_ = s.client.Call(ctx, http.MethodPost, "/api/show", map[string]string{"model": l.name}, &k)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.blobs = append(l.blobs, k.blobs()...)
	l.longest = k.longest()
	if l.context == 0 {
		l.context = k.window()
	}
	if l.context == 0 {
		return engine.SetUp(fault.New(fault.Usage, "set it with --context",
			"the Ollama server does not report the context length of %s, and silently truncates what does not fit",
			l.name))
	}
	l.options["num_ctx"] = l.context
	return nil
}
