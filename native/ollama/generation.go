package ollama

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
	"llmparity/native/launch"
	"llmparity/native/logs"
	"llmparity/native/wire"
)

// Generate makes room in the cache, which is not timed, and streams the prompt's continuation.
func (s *session) Generate(outer context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	free, err := s.turns.Take()
	if err != nil {
		return record.Usage{}, err
	}
	defer free()
	l, err := s.current()
	if err != nil {
		return record.Usage{}, err
	}
	ctx, done := launch.Within(outer, s.life)
	defer done()
	if err := s.prepare(ctx, l, r); err != nil {
		return record.Usage{}, s.explain(outer, err, "preparing a generation")
	}
	defer l.going.Add(-1)
	g := &generation{client: s.client, Text: launch.Text{Token: token}, max: r.MaxTokens, body: s.body(l, r)}
	s.begin(l)
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

// begin is the last before a generation. What the log said of others before it is forgotten, where it is alone.
func (s *session) begin(l *loaded) {
	l.held.Store(-1) // until the end is told
	if s.config.slots() > 1 {
		return
	}
	l.fresh = false
	if s.own != nil {
		s.own.said.forget()
	}
	l.givenUp.Store(true) // until it has come to its end
}

// ended looks at a generation that came to its end.
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
	if one { // what others left in their slots is not known
		l.held.Store(int64(g.held()))
	}
	return nil
}

func (s *session) keep() string {
	keep, _ := s.config.keepAlive() // Check refused what is wrong
	return keep
}

// body is what Ollama is asked for a text.
func (s *session) body(l *loaded, r engine.Request) generate {
	return generate{Model: l.name, Prompt: r.Prompt, Raw: true, KeepAlive: s.keep(), Options: sampling(l.options, r)}
}

// sampling leaves the largest logit at temperature 0, else the whole distribution at the temperature: Ollama's own
// defaults, a penalty of repetition among them, and those that it found in the model are no other engine's.
func sampling(options map[string]any, r engine.Request) map[string]any {
	o := maps.Clone(options)
	for name, v := range map[string]any{
		"num_predict": r.MaxTokens, "temperature": r.Temperature, "seed": 0, "top_k": 1, "top_p": 1.0, "min_p": 0.0,
		"typical_p":      1.0,
		"repeat_penalty": 1.0, "repeat_last_n": 0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "mirostat": 0,
		"stop": []string{},
	} {
		o[name] = v
	}
	if r.Temperature > 0 {
		o["top_k"], o["seed"] = 0, r.NewSeed()
	}
	return o
}

// prepare refuses what has no room, and takes the prompt out of the cache.
func (s *session) prepare(ctx context.Context, l *loaded, r engine.Request) error {
	if err := r.Check(); err != nil {
		return err
	}
	if r.Prompt == "" {
		return engine.Fail(record.SetUp, "the prompt is empty: Ollama takes that for a load")
	}
	s.book.Lock()
	defer s.book.Unlock()
	if err := s.unstick(ctx, l); err != nil {
		return err
	}
	if err := s.room(ctx, l, r); err != nil {
		return err
	}
	if err := s.flush(ctx, l, r); err != nil {
		return err
	}
	l.going.Add(1) // until Generate returns
	return nil
}

// flush takes the prompt out of the cache, where that is wanted.
func (s *session) flush(ctx context.Context, l *loaded, r engine.Request) error {
	if l.fresh || !s.config.flushes() {
		return nil
	}
	// One token of a text that begins in another way. What it leaves of the prompt in the cache is at most what every
	// prompt begins with: a BOS.
	other := "."
	if strings.HasPrefix(r.Prompt, other) {
		other = "0"
	}
	_, err := s.one(ctx, l, other) // done before its time is taken, its line of the log too
	if refused := wire.RefusalOf(err); refused != nil && strings.Contains(refused.Message, "no input") {
		return nil // the vocabulary can't express it: the log tells what came from the cache
	}
	return err
}

// one generates one token and gives Ollama's counts, once the log has told of it too.
func (s *session) one(ctx context.Context, l *loaded, prompt string) (answer, error) {
	l.fresh = false
	l.held.Store(-1)
	if s.own != nil {
		s.own.said.forget()
	}
	a, err := s.client.whole(ctx, s.body(l, engine.Request{Prompt: prompt, MaxTokens: 1}))
	if err != nil {
		return a, err
	}
	if s.own != nil && !l.unreported {
		_, _ = s.own.said.await(count(a.Prompted)) // else it might be taken for that of the request that follows
	}
	s.took(l, prompt, a.Prefill)
	return a, nil
}

// suspect is by which factor Ollama must be faster the next time with the same prompt for its cache to have been at
// work.
const suspect = 4

// took compares how long Ollama took for a prompt with the most that it ever took for the same one. It is for servers
// that don't tell of their cache, which with OLLAMA_MULTIUSER_CACHE=1 or several slots keeps a prompt in spite of
// another text behind it.
func (s *session) took(l *loaded, prompt string, ns *float64) {
	if s.own != nil || ns == nil || !(*ns > 0) {
		return
	}
	known := l.about(prompt)
	most := known.slowest
	if most > suspect*(*ns) && most > 10e6 && !known.suspected { // of less than 10 ms much is chance
		known.suspected = true
		s.warn("cache-suspected", "Ollama took %.4g ms for a prompt that took it %.4g ms before: most of it came from its cache (OLLAMA_MULTIUSER_CACHE=1, "+
			"several slots, or somebody who asks for the same); time to first token and prefill are not those of the whole prompt", *ns/1e6, most/1e6)
	}
	known.slowest = max(most, *ns)
}

// room refuses a prompt that would be cut, or that would lose its beginning while it is continued. Where its bytes may
// be too many, Ollama counts its tokens first.
func (s *session) room(ctx context.Context, l *loaded, r engine.Request) error {
	// A token has a byte of the prompt at least, but for a BOS and a blank in front.
	if l.context == 0 || len(r.Prompt)+2+r.MaxTokens <= l.context {
		return nil
	}
	known := l.about(r.Prompt)
	if known.tokens == 0 && !s.config.flushes() { // what Ollama counted would be in its cache
		if t, err := l.tokens(); err == nil {
			known.tokens = len(t.Prompt(r.Prompt))
		}
	} else if known.tokens == 0 {
		a, err := s.one(ctx, l, r.Prompt)
		if err != nil {
			return err
		}
		known.tokens = count(a.Prompted)
	}
	switch n := known.tokens; {
	case n == 0: // found out at the end
	case n >= l.context:
		return engine.TooLong("the prompt has more tokens than the context of %d has room for", l.context)
	case n+r.MaxTokens > l.context:
		return engine.TooLong("the prompt of %d tokens and %d tokens to generate do not fit in a context of %d", n,
			r.MaxTokens, l.context)
	}
	return nil
}

// check looks at what a generation that came to its end says of itself.
func (s *session) check(ctx context.Context, l *loaded, r engine.Request, g *generation) error {
	u := &g.usage
	if s.own != nil {
		if s.own.said.wasCut() {
			return engine.TooLong("Ollama cut the prompt, or dropped a part of the text, to fit it in a context of %d tokens",
				l.context)
		}
		s.cached(l, u)
	} else if u.CachedTokens = record.CacheUnknown; !l.unreported {
		l.unreported = true
		s.warn("cache-untold", "how many of a prompt's tokens came from Ollama's cache is not told by a server that ran already; "+
			"another text is generated before each prompt, which leaves no more than a BOS there under Ollama's default policy; "+
			"with OLLAMA_MULTIUSER_CACHE=1, or where others ask for the same, prompts may come from the cache")
	}
	if ns, ok := u.Reported["prompt_eval_duration"]; ok {
		s.took(l, r.Prompt, &ns)
	}
	if l.context > 0 && u.PromptTokens+u.Generated > l.context {
		return engine.TooLong("Ollama counts %d tokens of the prompt and %d behind it, more than its context of %d holds: a part was dropped",
			u.PromptTokens, u.Generated, l.context)
	}
	known := l.about(r.Prompt)
	known.tokens = u.PromptTokens
	if g.odd != "" {
		s.warn("counts-differ", "%s", g.odd)
	}
	if odd := g.burst(); odd != "" && !known.burst { // a warm-up's is not the measured one's
		known.burst = true
		s.warn("times-differ", "%s", odd)
	}
	s.restarted(ctx, l, time.Duration(u.Reported["load_duration"]))
	return nil
}

// reload is how long Ollama takes to turn to a request at most whose model is in memory.
const reload = 50 * time.Millisecond

// restarted tells of a runner that Ollama started for a generation: by its process where it is seen, else by what
// Ollama says that it spent on a load.
func (s *session) restarted(ctx context.Context, l *loaded, load time.Duration) {
	if load > reload {
		s.family.look(ctx)
	}
	now, was := s.family.runner(l.blobs).pid, int(l.runner.Load())
	const why = "a load is in the times of a generation; somebody else asked for other options or another model, or the model was kept too short a time"
	switch {
	case was != 0 && now != 0 && now != was:
		s.warn("runner-restarted", "Ollama started its runner anew (process %d was %d): "+why, now, was)
		l.runner.Store(int64(now))
	case (was == 0 || now == 0) && load > reload:
		s.warn("runner-restarted", "Ollama spent %.4g ms on loading the model, by its own word: "+why,
			load.Seconds()*1e3)
	}
}

// cached takes from the log how many of the prompt's tokens were in the cache: the counts of the answer have them in.
func (s *session) cached(l *loaded, u *record.Usage) {
	u.CachedTokens = record.CacheUnknown
	if l.unreported {
		return
	}
	if counts, ok := s.own.said.await(u.PromptTokens); ok {
		u.CachedTokens = counts.used // untold, where the log said it of several prompts of this length
	} else {
		l.unreported = true
		s.warn("cache-untold", "Ollama's log does not tell, in words that are known, how many of a prompt's tokens came from its cache")
	}
}

// crash tells whether the server or its runner has ended; nil: neither.
func (s *session) crash(err error) *engine.Failure {
	text := err.Error()
	if s.own != nil && s.own.Ended(map[bool]time.Duration{true: 0, false: time.Second}[wire.RefusalOf(err) != nil]) {
		if s.own.Asked() {
			return errClosed
		}
		return s.own.Crashed(s.own.lastWords())
	}
	gone := s.gone(wire.RefusalOf(err) == nil)
	says := slices.ContainsFunc([]string{"error was encountered while running the model", "process has terminated",
		"no longer running", "unexpected EOF",
		"connection refused", "connection reset", "POST predict"},
		func(w string) bool { return strings.Contains(text, w) })
	switch {
	case !gone && (wire.RefusalOf(err) == nil || !says):
		return nil
	case s.own != nil:
		words := s.own.lastWords()
		return engine.Fail(logs.ClassOf(text+words), "Ollama's runner crashed: %s; its last words: %s", text, words)
	}
	return engine.Fail(logs.ClassOf(text), "Ollama or its runner crashed: %s", text)
}

// gone tells whether a process that did the model's work has ended. A connection breaks a moment before that is to be
// seen.
func (s *session) gone(wait bool) bool {
	pids := []int{s.family.root}
	if l, err := s.model.Now(); err == nil {
		pids = append(pids, int(l.runner.Load()))
	}
	for deadline := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		for _, pid := range pids {
			if pid == 0 {
				continue
			}
			if _, err := proc.Look(pid); errors.Is(err, sample.ErrGone) {
				return true
			}
		}
		if !wait || s.family.root == 0 || time.Now().After(deadline) {
			return false
		}
	}
}

// generation is a text that is being streamed.
type generation struct {
	client *client
	body   generate
	max    int
	usage  record.Usage
	odd    string // what of the counts can't be right

	launch.Text
	same int       // how many pieces in a row were the last one
	last string    // without blanks
	made [2]string // when the server made the first piece and the last, by its own words
}

func (g *generation) run(ctx context.Context) error {
	g.usage.Sent = time.Now()
	defer g.measured()
	lines, body, err := g.client.stream(ctx, g.body)
	if err != nil {
		return err
	}
	defer body.Close()
	for {
		a, at, err := lines.next()
		if ctx.Err() != nil {
			return ctx.Err() // what was read ahead is not told any more
		}
		if errors.Is(err, io.EOF) {
			return g.endless()
		}
		if err != nil {
			return err
		}
		if a.Response != "" {
			g.made[min(g.N, 1)] = a.Created
			g.piece(a.Response, at)
		}
		if a.Done {
			return g.finish(a)
		}
	}
}

func (g *generation) piece(text string, at time.Time) {
	if t := strings.TrimSpace(text); g.N > 0 && t == g.last {
		g.same++
	} else {
		g.last, g.same = t, 0
	}
	g.Piece(text, at)
}

// tolerated is how often Ollama lets a piece come again in a row; then it ends the text, and its stream without a last
// line.
const tolerated = 30

// endless is a stream that ended without its last line.
func (g *generation) endless() error {
	if g.same >= tolerated {
		return engine.Fail(record.BadOutput,
			"Ollama broke the text off after %d pieces, %d of them the same in a row: it lets no text go on so",
			g.N, g.same+1)
	}
	return fmt.Errorf("the stream ended after %d pieces without its last line: %w", g.N, io.ErrUnexpectedEOF)
}

// finish reads the last line, which has the server's own figures.
func (g *generation) finish(a answer) error {
	u := &g.usage
	u.Reported = a.reported()
	if seed, ok := g.body.Options["seed"].(uint32); ok {
		u.Reported["seed"] = float64(seed)
	}
	u.Finish = a.Reason
	if a.Reason == "" {
		u.Finish = "stop"
	}
	u.PromptTokens, u.Generated = count(a.Prompted), count(a.Counted)
	if g.N == 0 {
		u.Generated = 0
		return engine.Fail(record.BadOutput, "Ollama ended a generation without a token (%s)", u.Finish)
	}
	// The token that ends a text is counted, and is no piece of it.
	if u.Finish == "stop" && u.Generated > g.N {
		u.Generated--
	}
	switch {
	case u.Generated < g.N || u.Generated > g.max:
		g.odd = fmt.Sprintf("Ollama counts %d tokens where %d pieces came and %d were asked for; the pieces are taken for the count", count(a.Counted), g.N, g.max)
		u.Generated = min(g.N, g.max)
	case u.PromptTokens == 0:
		g.odd = "Ollama does not tell how many tokens the prompt has"
	}
	return nil
}

// burst compares the time of the pieces with Ollama's own: they pass through two processes on their way, and where
// tokens come faster than they are passed on, several arrive at once.
func (g *generation) burst() string {
	its, ours := time.Duration(g.usage.Reported["eval_duration"]), g.Last.Sub(g.First)
	if g.usage.Generated < 8 || its <= 0 || (ours-its).Abs() < its/5 {
		return ""
	}
	// Without figures, which are in the record: what all launches say is said once.
	return "Ollama's pieces came within another time than it decoded their tokens in by its own clock (eval_duration): they were held up on " +
		"their way; when each token was there is not known, and neither is decode"
}

// held is how many tokens lie in the cache at the end: the last one that was asked for never gets there.
func (g *generation) held() int {
	n := g.usage.PromptTokens + g.usage.Generated
	if g.usage.Finish == "length" {
		n--
	}
	return n
}

// count makes a whole number of what may be none.
func count(v *float64) int {
	if v == nil || !(*v >= 0 && *v < 1<<31) {
		return 0
	}
	return int(*v)
}

// measured fills in what the client saw, also of a generation that broke off.
func (g *generation) measured() {
	g.usage.Text = g.String()
	if g.N > 0 && g.usage.Generated == 0 {
		g.usage.Generated = g.N // broken off: there were as many at least
	}
	decode := ""
	if g.usage.Generated > 1 && g.burst() == "" {
		decode = "at the client: first to last piece read; a piece may be several tokens"
	}
	g.usage.Spans = g.Spans(g.usage.Sent,
		"at the client: request handed over, to the first piece read; Ollama's scheduling and tokenising are in it", decode)
}
