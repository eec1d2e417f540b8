package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/wire"
)

// session is one launch on a running server.
type session struct {
	*found
	config Config
	probe  engine.Probe
	life   context.Context // until Close
	end    context.CancelFunc

	own     launch.Held[model]
	model   model
	context int // limit for a prompt and its continuation; 0: unknown

	refused sync.Map // optional fields that this server refuses

	pid     int // of the server's first process, if visible
	tree    *proc.Tree
	started *Started // nil: somebody else did

	mu     sync.Mutex // Close may be called during a Load
	detach []func()
	sizes  func() // detaches the sizes of the model; nil: there are none
}

// failed turns an error into its cause: the end of the session, a cancelled call, or the server.
func (s *session) failed(ctx context.Context, what string, err error) error {
	switch {
	case s.life.Err() != nil:
		return errClosed
	case ctx.Err() != nil:
		return fmt.Errorf("%s at %s: %w", what, s.client.at.host, ctx.Err())
	}
	return s.explain(err)
}

// explain adds what is known about the model to an error of the client.
func (s *session) explain(err error) error {
	if r := wire.RefusalOf(err); r != nil && r.Status == http.StatusNotFound &&
		strings.Contains(strings.ToLower(r.Kind+" "+r.Message), "model") {
		return noModel(s.client.at, s.model.ID, s.server.ids())
	}
	return s.client.explain(err)
}

// Load checks that the server has the model and generates with it; some servers load it only then. The duration says
// how long the server took to answer, not how long a load takes.
func (s *session) Load(ctx context.Context, m models.Model) error {
	inner, release := engine.Within(ctx, s.life)
	defer release()
	if _, err := s.own.Start(func() (*model, error) { return &s.model, nil }); err != nil {
		return err
	}
	begin := time.Now()
	err := m.Same()
	if err == nil {
		s.model, err = s.choose(s.config, m)
	}
	if err == nil {
		err = s.short(inner, "Hello")
	}
	if err != nil {
		s.own.Take()
		return s.failed(ctx, "waiting for the server", err)
	}
	s.context = m.Context
	if made := cmp.Or(s.server.context, s.model.Longest); made > 0 {
		s.context = engine.Window(s.probe, "the server", m.Context, made)
	}
	s.probe.Span(record.Span{Name: "answer", Begin: begin, End: time.Now(),
		How: "request for one token, to the answer; may include loading the model"})
	s.tell(inner, m)
	s.reserves(inner, m)
	s.tree.Look(inner) // sample processes that the load has started
	s.tellDevice(inner)
	return nil
}

// short generates one token, which may have no text.
func (s *session) short(ctx context.Context, prompt string) error {
	g := s.generation(engine.Request{Prompt: prompt, MaxTokens: 1}, func(record.Token) {})
	if err := g.run(ctx); !errors.Is(err, errNothing) {
		return err
	}
	return nil
}

// tell reports the server and what affects the figures.
func (s *session) tell(ctx context.Context, m models.Model) {
	parts := map[string]string{"server": string(s.server.kind), "url": s.client.at.api, "model": s.model.ID}
	if s.server.version != "" {
		parts["server_version"] = s.server.version
	}
	info := record.EngineInfo{Name: Name, Version: s.server.title(), Parts: parts, Policy: s.policy()}
	if s.started != nil {
		info = s.started.with(info)
	}
	s.probe.Event(record.Event{At: time.Now(), Engine: &info})
	if s.started != nil {
		return
	}
	baseline := "; the baseline includes its model if it was loaded"
	if s.tree == nil {
		baseline = ""
	}
	engine.Warn(s.probe, "already-running", "the server at %s was already running: nothing is unloaded, and other clients affect "+
		"the figures%s", s.client.at.host, baseline)
	if !s.verified(ctx, m) {
		as := ""
		if m.Format != record.Served {
			as = fmt.Sprintf(" as %q", m.Name)
		}
		engine.Warn(s.probe, "weights-unverified", "%s at %s serves the model as %q; whether it has the same weights%s is not verified",
			s.server.title(), s.client.at.host, s.model.ID, as)
	}
}

// verified reports whether the server has loaded the same file or folder, or one with the same hash. llama-server, vLLM
// and SGLang say which one they have; it must be on this machine.
func (s *session) verified(ctx context.Context, m models.Model) bool {
	file := s.folder()
	if m.Path == "" || file == "" {
		return false
	}
	ours, err := os.Stat(m.Path)
	if err != nil {
		return false
	}
	theirs, err := os.Stat(file)
	if err != nil || os.SameFile(ours, theirs) {
		return err == nil
	}
	sum, err := models.SHA256(ctx, file)
	return err == nil && sum == m.SHA256
}

// folder returns the file or folder that the server says it has loaded, if it is on this machine; empty: unknown.
func (s *session) folder() string {
	file := cmp.Or(s.server.file, s.model.Root)
	if file == "" || !s.client.at.local {
		return ""
	}
	if !filepath.IsAbs(file) { // it is relative to the server's own folder
		dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", s.pid))
		if err != nil {
			return ""
		}
		file = filepath.Join(dir, file)
	}
	return s.config.In.Outside(file)
}

// policy returns known settings that affect figures or texts.
func (s *session) policy() map[string]string {
	p := map[string]string{
		"api":          s.config.api(),
		"prompt":       "raw",
		"prompt_cache": "the server's; cached tokens as it reports them",
		"ignore_eos":   "off: may stop at end of text",
		"counting":     "pieces of text; tokens by the server's usage",
		"sampling":     "temperature as requested, seed 0 (random above temperature 0), top_p 1; otherwise the server's defaults",
		"connection":   "new for each generation; connecting is not timed",
	}
	s.config.In.Describe(p)
	switch {
	case s.config.api() == Chat:
		p["prompt"] = "user message in the server's chat template"
	case s.server.kind == ollama:
		p["prompt"] = "in the model's template, which Ollama applies; a plain GGUF has none"
	}
	switch s.server.kind {
	case llamaServer:
		p["prompt_cache"] = "off"
		p["counting"] = "tokens by the server's timings, with each chunk of text"
		p["ignore_eos"] = "never chooses the end-of-text token"
		p["sampling"] = "most probable token; above temperature 0 the whole distribution with a random seed; the server's samplers are off"
	case vllm, sglang:
		if s.tellsIDs() {
			p["scores"] = "of a given text, always computed as a prompt"
		}
		p["ignore_eos"] = "continues after the end-of-text token"
		p["sampling"] = "temperature as requested, seed 0 (random above temperature 0); top-k, top-p, min-p and penalties are off"
		p["counting"] = "tokens by the server's usage, with each chunk of text"
	case ollama:
		p["prompt_cache"] = "on; one token of another text is generated before each prompt, untimed"
		p["sampling"] = "temperature as requested, seed 0 (random above temperature 0), top_p 1; the model's repeat_penalty cannot be switched off here"
	case tgi:
		p["sampling"] = "temperature as requested, seed 0 (random above temperature 0); otherwise the server's defaults"
	}
	if s.server.salts() {
		p["prompt_cache"] = "on; each request has its own cache_salt, so nothing is found in it"
	}
	return p
}

// Unload forgets the model; the server keeps it, as a warning says.
func (s *session) Unload(context.Context) error {
	s.own.Take()
	s.unsized()
	return nil
}

// Close ends generations and sampling. The server keeps running.
func (s *session) Close() error {
	s.own.Close()
	s.end()
	if s.started == nil {
		s.tree.Close()
	}
	s.unsized()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.detach {
		d()
	}
	return nil
}

// attach starts sampling a source, unless the session is closed.
func (s *session) attach(src sample.Source) (detach func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return func() {}
	}
	detach = s.probe.Attach(src)
	s.detach = append(s.detach, detach)
	return detach
}

// unsized stops offering the sizes of the model.
func (s *session) unsized() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sizes != nil {
		s.sizes()
	}
	s.sizes = nil
}

// Generate streams a continuation.
func (s *session) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	_, done, err := s.own.Use()
	if err != nil {
		return record.Usage{}, err
	}
	defer done()
	inner, release := engine.Within(ctx, s.life)
	defer release()
	ids, err := s.fits(inner, r)
	if err != nil {
		return record.Usage{PromptIDs: ids}, s.failed(ctx, "tokenising the prompt", err)
	}
	if err := s.elsewhere(inner, r); err != nil {
		return record.Usage{PromptIDs: ids}, s.failed(ctx, "clearing the prompt from the cache", err)
	}
	g := s.generation(r, token)
	g.usage.PromptIDs = ids
	err = g.run(inner)
	g.warn(s.probe)
	if err == nil {
		return g.usage, nil
	}
	if inner.Err() != nil {
		g.usage.Finish = "cancelled"
		return g.usage, s.failed(ctx, fmt.Sprintf("waiting for text after %d pieces", g.pieces), inner.Err())
	}
	return g.usage, s.broken(inner, g, err)
}

// elsewhere generates one token of another text on a server that caches the last text and cannot be asked not to. At
// most the common begin of all prompts is then cached.
func (s *session) elsewhere(ctx context.Context, r engine.Request) error {
	if s.server.kind != ollama {
		return nil
	}
	other := "."
	if strings.HasPrefix(r.Prompt, other) {
		other = "0"
	}
	return s.short(ctx, other)
}

// larger is the advice for a prompt that does not fit.
const larger = "shorten the prompt, request fewer tokens, or give the server a larger context"

// fits returns the prompt's ids if the server reports them, and refuses what does not fit, if that can be known
// beforehand.
func (s *session) fits(ctx context.Context, r engine.Request) ([]int, error) {
	var answer struct {
		Tokens []int `json:"tokens"`
	}
	if s.server.kind == llamaServer && s.config.api() == Completions {
		question := map[string]any{"content": r.Prompt, "add_special": true, "parse_special": true}
		err := s.client.ask(ctx, http.MethodPost, s.client.at.root+"/tokenize", question, &answer)
		if err != nil {
			return nil, err
		}
	}
	if n := max(1, len(answer.Tokens)); s.context > 0 && n+r.MaxTokens > s.context {
		return answer.Tokens, engine.SetUp(fault.New(fault.PromptTooLong, larger,
			"the prompt of %d tokens or more and %d tokens to generate do not fit in a context of %d", n, r.MaxTokens,
			s.context))
	}
	return answer.Tokens, nil
}

// broken distinguishes a server that has ended from one that gave a wrong answer.
func (s *session) broken(ctx context.Context, g *generation, err error) error {
	_, failed := errors.AsType[*engine.Failure](err)
	if failed || wire.RefusalOf(err) != nil {
		return s.explain(err)
	}
	if s.ended(ctx) {
		return engine.Fail(record.Crash, "the server at %s ended after %d pieces of text (%w)", s.client.at.host,
			g.pieces, err)
	}
	return engine.Fail(record.Other, "the server at %s ended the stream after %d pieces of text, without a finish reason (%w)", s.client.at.host, g.pieces, err)
}

// ended allows the server a second to end, because its connections break before its process has gone.
func (s *session) ended(ctx context.Context) bool {
	for range 20 {
		if s.pid != 0 && !child.Alive(s.pid) || !s.client.listens(ctx) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
	return false
}
