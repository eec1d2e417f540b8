package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/sample/proc"
	"llmparity/native/launch"
)

// session is one launch's use of a server that goes on behind it.
type session struct {
	config Config
	client *client
	server server
	probe  engine.Probe
	life   context.Context // until Close
	end    context.CancelFunc

	turns   engine.Turns
	own     launch.Held[model]
	model   model
	context int // what a prompt and its continuation may come to; 0: nobody says

	mu      sync.Mutex
	refused map[string]bool // fields that this server does not take, of those that can be left out

	pid    int  // of the server's first process, where it can be seen
	asked  bool // for /metrics
	tree   *proc.Tree
	detach []func()
}

// failed tells what lies behind an error: the session's end, the caller's doing, or the server.
func (s *session) failed(ctx context.Context, what string, err error) error {
	switch {
	case s.life.Err() != nil:
		return errClosed
	case ctx.Err() != nil:
		return fmt.Errorf("%s at %s: %w", what, s.client.at.host, ctx.Err())
	}
	return s.explain(err)
}

// explain adds to what the client makes of an error what is known of the model.
func (s *session) explain(err error) error {
	var r *refusal
	if errors.As(err, &r) && r.status == http.StatusNotFound &&
		strings.Contains(strings.ToLower(r.kind+" "+r.message), "model") {
		return noModel(s.client.at, s.model.ID, s.server.ids())
	}
	return s.client.explain(err)
}

// refuse keeps that the server does not take a field, and says so once.
func (s *session) refuse(field, why string) {
	s.mu.Lock()
	known := s.refused[field]
	s.refused[field] = true
	s.mu.Unlock()
	if !known {
		engine.Warn(s.probe, "field-refused",
			"the server at %s does not take %s, which is left out: its own default holds (%s)", s.client.at.host, field,
			s.client.hide(why))
	}
}

// Load makes sure that the server has the model and answers with it. What it takes says how long the server needed, not
// how long a load.
func (s *session) Load(ctx context.Context, m engine.Model) error {
	inner, release := launch.Within(ctx, s.life)
	defer release()
	if _, err := s.own.Start(func() (*model, error) { return &s.model, nil }); err != nil {
		return err
	}
	begin := time.Now()
	err := m.Same()
	if err == nil {
		err = s.ready(inner, m)
	}
	if err == nil && s.server.onDemand() {
		err = s.firstAnswer(inner)
	}
	if err == nil && s.server.router {
		err = s.behind(inner)
	}
	if err == nil {
		s.room(m)
		s.watchMetrics(inner)
	}
	if err != nil {
		s.own.Take()
		return s.failed(ctx, "waiting for the server", err)
	}
	s.span(begin)
	s.tell(m)
	if s.tree != nil {
		s.tree.Look(inner) // whatever process the load has started is sampled from here on
	}
	return nil
}

// ready waits until the server has loaded what it is loading, and chooses the model.
func (s *session) ready(ctx context.Context, m engine.Model) error {
	found, err := settled(ctx, s.client)
	if err != nil {
		return err
	}
	s.server = found
	s.model, err = choose(s.client.at, s.server, s.config, m)
	return err
}

// behind asks a router for what it knows of the server that it has started for the model.
func (s *session) behind(ctx context.Context) error {
	var p properties
	if _, err := s.client.ask(ctx, http.MethodGet, s.client.at.root+"/props"+s.server.of(s.model), nil,
		&p); err != nil {
		return err
	}
	if p.Settings != nil {
		s.server.context = p.Settings.Context
	}
	s.server.file = p.Path
	return nil
}

// room is what a prompt and its continuation may come to.
func (s *session) room(m engine.Model) {
	s.context = s.server.window(s.model)
	if m.Context > 0 && s.context > 0 && m.Context != s.context {
		engine.Warn(s.probe, "context-differs", "a context of %d tokens was asked for, and the server has one of %d",
			m.Context, s.context)
	}
	if m.Context > 0 && (s.context == 0 || m.Context < s.context) {
		s.context = m.Context
	}
}

// firstAnswer has the server load the model where it does so when it is asked first.
func (s *session) firstAnswer(ctx context.Context) error {
	g := s.generation(engine.Request{Prompt: "Hello", MaxTokens: 1}, func(record.Token) {})
	err := g.run(ctx)
	if errors.Is(err, errNothing) {
		return nil // it answered
	}
	return err
}

// span tells of the load.
func (s *session) span(begin time.Time) {
	how := "asked what it is and for its list of models, to the answer: it had the model before"
	if s.server.onDemand() {
		how = "asked what it is, for its list of models and for one token, to the answer: it may have loaded the model meanwhile"
	}
	s.probe.Span(record.Span{Name: "answer", Begin: begin, End: time.Now(), How: how})
}

// tell says what now answers, and what a reader of the figures must know of it.
func (s *session) tell(m engine.Model) {
	parts := map[string]string{"server": string(s.server.kind), "url": s.client.at.api, "model": s.model.ID}
	if s.server.version != "" {
		parts["server_version"] = s.server.version
	}
	s.probe.Event(record.Event{At: time.Now(), Engine: &record.EngineInfo{
		Name: Name, Version: s.server.title(), Parts: parts, Policy: s.policy(),
	}})
	baseline := "the baseline holds its model where it was loaded, "
	if s.tree == nil {
		baseline = ""
	}
	engine.Warn(s.probe, "already-running", "the server at %s ran already and goes on: %snothing is unloaded, "+
		"and what others ask of it meanwhile is in the figures", s.client.at.host, baseline)
	if !s.verified(m) {
		engine.Warn(s.probe, "weights-unverified", "the model is served by %s at %s as %q: its weights are not verified%s",
			s.server.title(), s.client.at.host, s.model.ID, to(m))
	}
}

// to says what weights would have to be verified against.
func to(m engine.Model) string {
	if m.Format == record.Served {
		return ""
	}
	return fmt.Sprintf(" to be those of %q", m.Name)
}

// verified tells whether the server has read the very file. Only a llama-server on this machine says which it has read.
func (s *session) verified(m engine.Model) bool {
	if m.Path == "" || s.server.file == "" || !s.client.at.local {
		return false
	}
	ours, err := os.Stat(m.Path)
	if err != nil {
		return false
	}
	theirs, err := os.Stat(s.server.file)
	return err == nil && os.SameFile(ours, theirs)
}

// policy is what bears on figures or on words, as far as it is known.
func (s *session) policy() map[string]string {
	p := map[string]string{
		"api":          s.config.api(),
		"prompt":       "as it is",
		"prompt_cache": "the server's own; cached tokens are those it tells",
		"ignore_eos":   "not asked for: the text may end before its length",
		"counting":     "pieces of text as they came; tokens by the server's usage",
		"sampling":     "temperature as asked, seed 0 (a fresh one above temperature 0), top_p 1; all else is the server's default",
		"connection":   "a new one for every generation, whose making is not in its time",
	}
	switch {
	case s.config.api() == Chat:
		p["prompt"] = "a user's message, in the server's chat template"
	case s.server.kind == ollama:
		p["prompt"] = "in the model's template, which Ollama applies; one of a plain GGUF has none"
	}
	switch s.server.kind {
	case llamaServer:
		p["prompt_cache"] = "off"
		p["counting"] = "tokens by the server's timings, with every chunk of text"
		p["ignore_eos"] = "the token that ends the text is never chosen"
		p["sampling"] = "the most probable token; above temperature 0 the whole distribution, with a fresh seed: the server's own samplers are off"
	case vllm, sglang:
		p["ignore_eos"] = "goes on behind the token that ends the text"
		p["sampling"] = "temperature as asked, seed 0 (a fresh one above temperature 0); top-k, top-p, min-p and penalties are put out of action"
		p["counting"] = "tokens by the server's usage, with every chunk of text"
	case ollama:
		p["prompt_cache"] = "on; one token of another text is generated before each prompt, untimed"
		p["sampling"] = "temperature as asked, seed 0 (a fresh one above temperature 0), top_p 1; a repeat_penalty that the model has cannot be put out of action here"
	case tgi:
		p["sampling"] = "temperature as asked, seed 0 (a fresh one above temperature 0); nothing else, which is the server's default"
	}
	if s.server.kind == vllm && atLeast(s.server.version, 0, 9) {
		p["prompt_cache"] = "on; every request has a cache_salt of its own, so that nothing is found in it"
	}
	return p
}

// Unload lets go of the model here; the server keeps it, which the warning at the load says.
func (s *session) Unload(context.Context) error {
	s.own.Take()
	return nil
}

// Close ends what goes on, the sampling and the connections. The server goes on.
func (s *session) Close() error {
	s.own.Close()
	s.end()
	if s.tree != nil {
		s.tree.Close()
	}
	for _, d := range s.detach {
		d()
	}
	s.client.close()
	return nil
}

// Generate streams a continuation.
func (s *session) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	free, err := s.turns.Take()
	if err != nil {
		return record.Usage{}, err
	}
	defer free()
	if _, err := s.own.Now(); err != nil {
		return record.Usage{}, err
	}
	inner, release := launch.Within(ctx, s.life)
	defer release()
	ids, err := s.fits(inner, r)
	if err != nil {
		return record.Usage{PromptIDs: ids}, s.failed(ctx, "tokenising the prompt", err)
	}
	if err := s.elsewhere(inner, r); err != nil {
		return record.Usage{PromptIDs: ids}, s.failed(ctx, "taking the prompt out of the cache", err)
	}
	g := s.generation(r, token)
	g.usage.PromptIDs = ids
	err = g.run(inner)
	for _, w := range g.warnings() {
		s.probe.Warn(w)
	}
	if err == nil {
		return g.usage, nil
	}
	if inner.Err() != nil {
		g.usage.Finish = "cancelled"
		return g.usage, s.failed(ctx, "waiting for "+g.awaited(), inner.Err())
	}
	return g.usage, s.broken(inner, g, err)
}

// elsewhere has a server that keeps the last text in its one slot, and can't be asked not to, generate one token of
// another text: of the prompt no more than what every prompt begins with can then come from the cache.
func (s *session) elsewhere(ctx context.Context, r engine.Request) error {
	if s.server.kind != ollama {
		return nil
	}
	other := "."
	if strings.HasPrefix(r.Prompt, other) {
		other = "0"
	}
	g := s.generation(engine.Request{Prompt: other, MaxTokens: 1}, func(record.Token) {})
	if err := g.run(ctx); err != nil && !errors.Is(err, errNothing) {
		return err
	}
	return nil
}

// larger is what helps where a prompt does not fit.
const larger = "shorten the prompt, ask for fewer tokens or give the server a larger context"

// fits gives the prompt's ids where the server tells them, and refuses what its context has no room for, as far as that
// can be told before.
func (s *session) fits(ctx context.Context, r engine.Request) ([]int, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	var answer struct {
		Tokens []int `json:"tokens"`
	}
	if s.server.tokenizer() && s.config.api() == Completions {
		question := map[string]any{"content": r.Prompt, "add_special": true, "parse_special": true}
		if s.server.router {
			question["model"] = s.model.ID
		}
		_, err := s.client.ask(ctx, http.MethodPost, s.client.at.root+"/tokenize", question, &answer)
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

// broken tells a server that ended from one that is there and does not answer as it should.
func (s *session) broken(ctx context.Context, g *generation, err error) error {
	var r *refusal
	var odd *malformed
	var failure *engine.Failure
	switch {
	case errors.As(err, &odd):
		return engine.Fail(record.BadOutput, "after %d pieces of text from the server at %s: %w", g.pieces,
			s.client.at.host, err)
	case errors.As(err, &r), errors.As(err, &failure):
		return s.explain(err)
	}
	if s.ended(ctx) {
		return engine.Fail(record.Crash, "the server at %s ended after %d pieces of text (%w)", s.client.at.host,
			g.pieces, err)
	}
	return engine.Fail(record.Other, "the server at %s broke off after %d pieces of text, and did not say why it ends (%w)", s.client.at.host, g.pieces, err)
}

// ended waits a moment for the server's end: its connections break before its process has gone.
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
