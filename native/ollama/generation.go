package ollama

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/record"
	"llmparity/native/logs"
	"llmparity/native/wire"
)

// Generate clears the prompt from the cache, untimed, and streams its continuation.
func (s *session) Generate(outer context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	l, done, err := s.model.Use()
	if err != nil {
		return record.Usage{}, err
	}
	defer done()
	if crashed := l.crashed.Load(); crashed != nil {
		return record.Usage{}, fmt.Errorf("the model must be loaded again: %w", crashed)
	}
	ctx, release := engine.Within(outer, s.life)
	defer release()
	if err := s.prepare(ctx, l, r); err != nil {
		return record.Usage{}, s.explain(outer, err, "preparing a generation")
	}
	defer l.going.Add(-1)
	g := &generation{client: s.client, Text: engine.Text{Token: token}, max: r.MaxTokens, body: s.body(l, r)}
	l.held.Store(-1) // until the end is known
	if s.config.slots() == 1 {
		if s.own != nil {
			s.own.said.forget() // what the log said of earlier ones
		}
		l.givenUp.Store(true) // until it has ended
	}
	err = g.run(ctx)
	if err == nil {
		err = s.ended(ctx, l, r, g)
	} else {
		l.givenUp.Store(true)
	}
	if err == nil {
		return g.usage, nil
	}
	if outer.Err() != nil {
		g.usage.Finish = "cancelled"
	}
	return g.usage, s.explain(outer, err, "generating")
}

// ended checks a generation that has ended.
func (s *session) ended(ctx context.Context, l *loaded, r engine.Request, g *generation) error {
	s.book.Lock()
	defer s.book.Unlock()
	one := s.config.slots() == 1
	if one {
		l.givenUp.Store(false)
	}
	if err := s.check(ctx, l, r, g); err != nil {
		return err
	}
	if one { // with several slots, the contents of the others are unknown
		held := g.usage.PromptTokens + g.usage.Generated
		if g.usage.Finish == "length" {
			held-- // the last requested token never gets into the cache
		}
		l.held.Store(int64(held))
	}
	return nil
}

func (s *session) keep() string {
	keep, _ := s.config.keepAlive() // validated by Check
	return keep
}

// body returns a request for text.
func (s *session) body(l *loaded, r engine.Request) generate {
	return generate{Model: l.name, Prompt: r.Prompt, Raw: true, KeepAlive: s.keep(), Options: sampling(l.options, r)}
}

// sampling uses the largest logit at temperature 0, otherwise the whole distribution at that temperature. It overrides
// Ollama's defaults, such as a repetition penalty, and the model's own parameters, which other engines do not have.
func sampling(options map[string]any, r engine.Request) map[string]any {
	o := maps.Clone(options)
	maps.Copy(o, map[string]any{
		"num_predict": r.MaxTokens, "temperature": r.Temperature, "seed": 0, "top_k": 1, "top_p": 1.0, "min_p": 0.0,
		"typical_p":      1.0,
		"repeat_penalty": 1.0, "repeat_last_n": 0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "mirostat": 0,
		"stop": []string{},
	})
	if r.Temperature > 0 {
		o["top_k"], o["seed"] = 0, r.NewSeed()
	}
	return o
}

// prepare refuses a request that does not fit, and clears the prompt from the cache, if that is wanted.
func (s *session) prepare(ctx context.Context, l *loaded, r engine.Request) error {
	if r.Prompt == "" {
		return engine.Fail(record.SetUp, "the prompt is empty, which Ollama takes as a request to load the model")
	}
	s.book.Lock()
	defer s.book.Unlock()
	err := s.unstick(ctx, l)
	if err == nil {
		err = s.room(ctx, l, r)
	}
	if err == nil && s.config.flushes() {
		err = s.flush(ctx, l, r.Prompt)
	}
	if err == nil {
		l.going.Add(1) // until Generate returns
	}
	return err
}

// flush clears the prompt from the cache: it generates one token after a text that begins differently. At most a BOS,
// which all prompts share, then remains in the cache.
func (s *session) flush(ctx context.Context, l *loaded, prompt string) error {
	other := "."
	if strings.HasPrefix(prompt, other) {
		other = "0"
	}
	_, err := s.one(ctx, l, other) // complete, with its line in the log, before timing starts
	if refused := wire.RefusalOf(err); refused != nil && strings.Contains(refused.Message, "no input") {
		return nil // the vocabulary lacks the text; the log says what came from the cache
	}
	return err
}

// one generates one token and returns Ollama's counts once the log has them, too.
func (s *session) one(ctx context.Context, l *loaded, prompt string) (answer, error) {
	l.held.Store(-1)
	if s.own != nil {
		s.own.said.forget()
	}
	a, err := s.client.whole(ctx, s.body(l, engine.Request{Prompt: prompt, MaxTokens: 1}))
	if err != nil {
		return a, err
	}
	if s.own != nil && !l.unreported {
		_, _ = s.own.said.await(a.count(prompted)) // else it could be mistaken for the next request's
	}
	s.took(l, prompt, a.figures[prefill])
	return a, nil
}

// suspect is by which factor a repeated prompt must be faster to suspect that Ollama's cache was used.
const suspect = 4

// took compares the time for a prompt with the longest so far for the same prompt. That is for servers that do not
// report their cache: with OLLAMA_MULTIUSER_CACHE=1 or several slots they keep a prompt despite another text after it.
func (s *session) took(l *loaded, prompt string, ns float64) {
	if s.own != nil || ns <= 0 {
		return
	}
	known := l.about(prompt)
	most := known.slowest
	if most > suspect*ns && most > 10e6 && !known.suspected { // below 10 ms, chance dominates
		known.suspected = true
		s.warn("cache-suspected", "Ollama took %.4g ms for a prompt that took %.4g ms before, so most of it probably came from its cache "+
			"(OLLAMA_MULTIUSER_CACHE=1, several slots, or another user); prefill and time to first token do not cover the whole prompt", ns/1e6, most/1e6)
	}
	known.slowest = max(most, ns)
}

// room refuses a prompt that would be truncated, at once or during its continuation. If its bytes do not show that it
// fits, Ollama first counts its tokens.
func (s *session) room(ctx context.Context, l *loaded, r engine.Request) error {
	// Each token has at least one byte of the prompt, except for a BOS and a leading space.
	if l.context == 0 || len(r.Prompt)+2+r.MaxTokens <= l.context {
		return nil
	}
	known := l.about(r.Prompt)
	if known.tokens == 0 && !s.config.flushes() { // if Ollama counted them, they would be in its cache
		if t, err := l.tokens(); err == nil {
			known.tokens = len(t.Prompt(r.Prompt))
		}
	} else if known.tokens == 0 {
		a, err := s.one(ctx, l, r.Prompt)
		if err != nil {
			return err
		}
		known.tokens = a.count(prompted)
	}
	switch n := known.tokens; {
	case n == 0: // noticed at the end
	case n >= l.context:
		return engine.TooLong("the prompt has more tokens than fit in a context of %d", l.context)
	case n+r.MaxTokens > l.context:
		return engine.TooLong("the prompt of %d tokens and %d tokens to generate do not fit in a context of %d", n,
			r.MaxTokens, l.context)
	}
	return nil
}

// check examines the figures of a generation that has ended.
func (s *session) check(ctx context.Context, l *loaded, r engine.Request, g *generation) error {
	u := &g.usage
	if s.own != nil {
		if s.own.said.wasCut() {
			return engine.TooLong("Ollama truncated the prompt or the text to fit a context of %d tokens",
				l.context)
		}
		s.cached(l, u)
	} else if u.CachedTokens = record.CacheUnknown; !l.unreported {
		l.unreported = true
		s.warn("cache-untold", "a running Ollama server does not report how many prompt tokens came from its cache; "+
			"another text is generated before each prompt, after which only a BOS remains there by default; "+
			"with OLLAMA_MULTIUSER_CACHE=1 or other users, prompts may come from the cache")
	}
	s.took(l, r.Prompt, u.Reported[prefill])
	if l.context > 0 && u.PromptTokens+u.Generated > l.context {
		return engine.TooLong("Ollama counts %d prompt tokens and %d generated ones, more than its context of %d; it dropped some",
			u.PromptTokens, u.Generated, l.context)
	}
	known := l.about(r.Prompt)
	known.tokens = u.PromptTokens
	if g.odd != "" {
		s.warn("counts-differ", "%s", g.odd)
	}
	if odd := g.burst(); odd != "" && !known.burst { // report a prompt once
		known.burst = true
		s.warn("times-differ", "%s", odd)
	}
	s.restarted(ctx, l, time.Duration(u.Reported["load_duration"]))
	return nil
}

// reload is the longest load time that Ollama reports if the model is already in memory.
const reload = 50 * time.Millisecond

// restarted warns if Ollama restarted its runner for a generation: its pid changed, or, if that is unknown, Ollama
// reports a load time.
func (s *session) restarted(ctx context.Context, l *loaded, load time.Duration) {
	if load > reload {
		s.family.tree.Look(ctx)
	}
	now, was := s.family.runner(l.blobs).pid, int(l.runner.Load())
	const why = "the times of this generation include a load; another client requested other options or another model, " +
		"or keep-alive was too short"
	switch {
	case was != 0 && now != 0 && now != was:
		s.warn("runner-restarted", "Ollama restarted its runner (process %d, before %d): "+why, now, was)
		l.runner.Store(int64(now))
	case (was == 0 || now == 0) && load > reload:
		s.warn("runner-restarted", "Ollama reports %.4g ms for loading the model: "+why,
			load.Seconds()*1e3)
	}
}

// cached reads from the log how many prompt tokens came from the cache; the answer's counts include them.
func (s *session) cached(l *loaded, u *record.Usage) {
	u.CachedTokens = record.CacheUnknown
	if l.unreported {
		return
	}
	if counts, ok := s.own.said.await(u.PromptTokens); ok {
		u.CachedTokens = counts.used // unknown if the log has several prompts of this length
	} else {
		l.unreported = true
		s.warn("cache-untold", "Ollama's log does not report, in a known format, how many prompt tokens came from its cache")
	}
}

// crashWords match what Ollama says if its runner has ended.
var crashWords = regexp.MustCompile(`error was encountered while running the model|process has terminated|` +
	`no longer running|unexpected EOF|connection (refused|reset)|POST predict`)

// crash returns an error if the server or its runner has ended; nil otherwise.
func (s *session) crash(err error) *engine.Failure {
	refused := wire.RefusalOf(err) != nil
	who := s.gone(!refused)
	if who == "" && (!refused || !crashWords.MatchString(err.Error())) {
		return nil
	}
	if s.own == nil {
		return engine.Fail(logs.ClassOf(err.Error()), "Ollama or its runner crashed: %v", err)
	}
	words := s.own.lastWords(false)
	return engine.Fail(logs.ClassOf(err.Error(), words), "%s crashed: %v; last output: %s",
		cmp.Or(who, "Ollama's runner"), err, words)
}

// gone returns which program has ended, the server or the model's runner; empty: neither. With wait it allows a
// second, because a connection breaks just before the process ends.
func (s *session) gone(wait bool) string {
	ended := func(pid int) bool {
		_, err := proc.Look(pid)
		return pid != 0 && errors.Is(err, sample.ErrGone)
	}
	for deadline := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		l, _ := s.model.Now() // nil: none is loaded
		switch {
		case s.own != nil && s.own.Ended(0), ended(s.family.root):
			return "Ollama"
		case l != nil && ended(int(l.runner.Load())):
			return "Ollama's runner"
		case !wait || s.family.root == 0 || time.Now().After(deadline):
			return ""
		}
	}
}

// Names of Ollama's own figures.
const (
	prompted = "prompt_eval_count"
	prefill  = "prompt_eval_duration"
	counted  = "eval_count"
)

// generation is a text that is being streamed.
type generation struct {
	client *client
	body   generate
	max    int
	usage  record.Usage
	odd    string // a contradiction in the counts

	engine.Text
	same int    // how many times in a row the last piece was repeated
	last string // without spaces
}

func (g *generation) run(ctx context.Context) error {
	g.usage.Sent = time.Now()
	defer g.measured()
	g.body.Stream = true
	resp, err := g.client.Send(ctx, http.MethodPost, "/api/generate", g.body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	err = wire.Each(ctx, wire.NewLines(resp.Body).Next, g.take)
	switch {
	case !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case g.same >= tolerated:
		return engine.Fail(record.BadOutput,
			"Ollama stopped after %d pieces because the last %d were the same", g.N, g.same+1)
	}
	return fmt.Errorf("the stream of Ollama ended after %d pieces, before its last line: %w", g.N, err)
}

// take reads a line, which may be empty.
func (g *generation) take(line wire.Event) (last bool, err error) {
	if len(bytes.TrimSpace(line.Data)) == 0 {
		return false, nil
	}
	a, err := parse(line.Data)
	if err != nil {
		return false, err
	}
	if a.Response != "" {
		if t := strings.TrimSpace(a.Response); g.N > 0 && t == g.last {
			g.same++
		} else {
			g.last, g.same = t, 0
		}
		g.Piece(a.Response, line.At)
	}
	if a.Done {
		err = g.finish(a)
	}
	return a.Done, err
}

// tolerated is how often Ollama lets a piece repeat. Then it ends the text, and its stream without a last line.
const tolerated = 30

// finish reads the last line, which has the server's own figures.
func (g *generation) finish(a answer) error {
	u := &g.usage
	u.Reported = a.figures
	if seed, ok := g.body.Options["seed"].(uint32); ok {
		u.Reported["seed"] = float64(seed)
	}
	u.Finish = a.Reason
	if a.Reason == "" {
		u.Finish = "stop"
	}
	u.PromptTokens, u.Generated = a.count(prompted), a.count(counted)
	if g.N == 0 {
		u.Generated = 0
		return engine.Fail(record.BadOutput, "Ollama generated no token (%s)", u.Finish)
	}
	// The end-of-text token is counted, but is not a piece.
	if u.Finish == "stop" && u.Generated > g.N {
		u.Generated--
	}
	switch {
	case u.Generated < g.N || u.Generated > g.max:
		g.odd = fmt.Sprintf("Ollama counts %d tokens, but sent %d pieces of text for a request of %d tokens; "+
			"the pieces are counted instead", a.count(counted), g.N, g.max)
		u.Generated = min(g.N, g.max)
	case u.PromptTokens == 0:
		g.odd = "Ollama does not report the number of prompt tokens"
	}
	return nil
}

// burst compares the time of the pieces with Ollama's own. Pieces pass through two processes, so several may arrive at
// once.
func (g *generation) burst() string {
	its, ours := time.Duration(g.usage.Reported["eval_duration"]), g.Last.Sub(g.First)
	if g.usage.Generated < 8 || its <= 0 || (ours-its).Abs() < its/5 {
		return ""
	}
	// No figures in the text, so that all launches have the same warning; the record has them.
	return "the time in which Ollama's pieces of text arrived differs from its own (eval_duration): " +
		"they were delayed, so token times and decode speed are unknown"
}

// measured records what the client saw, also of a generation that failed.
func (g *generation) measured() {
	g.usage.Text = g.String()
	if g.N > 0 && g.usage.Generated == 0 {
		g.usage.Generated = g.N // failed: there were at least that many
	}
	timed := g.usage.Generated
	if g.burst() != "" {
		timed = 0
	}
	g.usage.Spans = g.Spans(g.usage.Sent, timed,
		"client: request sent to first piece read; includes Ollama's scheduling and tokenising",
		"client: first piece read to last one; a piece may be several tokens")
}
