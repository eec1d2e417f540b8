package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"llmparity/assets/page"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// Session is an open browser with an engine's page.
type Session struct {
	*Page   // can be profiled
	Adapter record.Device
	runtime Runtime
	served  Served
	probe   engine.Probe

	turn    engine.Turns
	loaded  bool // a model is loaded
	offer   *Offer
	context int
	judged  bool // whether the loaded model runs where it was asked to is known

	before   int  // files in the browser's store before the load
	reported bool // what is there after it
}

var (
	_ engine.Scorer   = (*Session)(nil)
	_ engine.Profiler = (*Session)(nil)
)

// Start starts the browser and opens the page, which has the engine's code but no model yet. The session closes the
// runtime.
func Start(ctx context.Context, c Config, r Runtime, probe engine.Probe) (*Session, error) {
	s := &Session{runtime: r, served: r.Page(), probe: probe}
	if s.served.OnCPU && c.Adapter == GPU {
		c.Adapter = Auto // that of the run's other engines is looked for in several starts
	}
	err := c.fills(r, s.served)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	s.Page, err = Open(ctx, c, s.served.Site, probe)
	if Tried(err) != nil && s.served.Elsewhere {
		c.Adapter = Auto // there is none, and it need not be
		s.Page, err = Open(ctx, c, s.served.Site, probe)
	}
	if err != nil {
		return nil, errors.Join(err, c.fill.clear(), r.Close())
	}
	s.Page.probe = probe
	if err = s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// begin reports what exists before any model, and starts measuring.
func (s *Session) begin(ctx context.Context) (err error) {
	elsewhere := s.served.Elsewhere
	if err := s.adapts(ctx); err != nil {
		return err
	}
	s.event(record.Event{Engine: s.info(nil)})
	if !elsewhere && s.Adapter.Class != "" {
		device := s.Adapter
		s.event(record.Event{Device: &device})
		if s.config.Power != "" {
			s.Got(ran.As(ran.Power, s.config.Power, device.Detail[detailPower],
				"adapter.info, which does not say whether there is another adapter"))
		}
	}
	if err := s.checkKept(ctx); err != nil {
		return err
	}
	return s.Measure(ctx, s.probe)
}

// adapts finds the adapter. Engines that need none may have none.
func (s *Session) adapts(ctx context.Context) (err error) {
	needless := s.served.Elsewhere
	if s.Adapter, err = s.Device(ctx); needless && fault.Of(err) == fault.NoAdapter {
		return nil
	}
	return err
}

func (s *Session) event(e record.Event) {
	e.At = time.Now()
	s.probe.Event(e)
}

// info describes the engine; o is nil before the load.
func (s *Session) info(o *Offer) *record.EngineInfo {
	info, own := s.Info(), s.served.Info
	info.Name, info.Title, info.Version, info.Origin = own.Name, s.served.Title, own.Version, own.Origin
	info.Computes, info.Vector = own.Computes, own.Vector
	maps.Copy(info.Parts, own.Parts)
	maps.Copy(info.Policy, own.Policy)
	if sum, err := page.SHA256(s.served.Scripts); err == nil {
		info.Parts["page_sha256"] = sum
	}
	if o != nil {
		info.Library, info.Weights = o.Library, o.Weights
		maps.Copy(info.Policy, o.Policy)
	}
	return info
}

// How often to look for new processes. During a generation, looking must not affect the figures.
const (
	watchLoad     = 500 * time.Millisecond
	watchGenerate = proc.ExpensiveEvery
)

// Load makes the page load the model.
func (s *Session) Load(ctx context.Context, m models.Model) error {
	if err := s.Settle(ctx); err != nil {
		return err
	}
	if s.loaded { // memory could not be attributed to one of two
		return errors.New("a model is already loaded; unload it first")
	}
	defer s.AttachNew(ctx, s.probe, watchLoad)()
	defer s.Guard()()
	o, err := s.runtime.Offer(ctx, m, s.Adapter)
	if err != nil {
		return err
	}
	s.Parted(o.Layout)
	if err := s.watchBlocks(ctx); err != nil {
		return err
	}
	begin := time.Now()
	marks, err := Long[map[string]float64](ctx, s.Page, "llmparity.giveUp()", "llmparity.load", o.Options,
		func(Told) {})
	if err != nil {
		if err = overQuota(err); engine.ClassOf(err) == record.Quota {
			return fmt.Errorf("loading %s into %s: %w", m.Name, s.served.Title, err)
		}
		lacks := ""
		if o.Lacks != nil {
			lacks = o.Lacks()
		}
		return fmt.Errorf("loading %s into %s %s: %w%s", m.Name, s.served.Title, s.served.Info.Version, err, lacks)
	}
	s.loaded, s.context, s.offer, s.judged, s.reported = true, o.Context, o, false, false
	for _, span := range s.served.spans(marks, s.Page) {
		s.probe.Span(span)
	}
	ran, err := s.ran(ctx, o)
	if err != nil {
		return err
	}
	blocks, err := s.blocks(ctx, []record.Span{{Name: string(record.Load), Begin: begin, End: time.Now()}})
	if err != nil {
		return err
	}
	s.probe.Span(blocks[0])
	if err := s.Loaded(ctx); err != nil {
		return err
	}
	info := s.info(o)
	if ran != nil {
		maps.Copy(info.Policy, ran.Policy)
		info.Layers = ran.Layers
	}
	s.event(record.Event{Engine: info})
	if err := s.granted(ctx); err != nil {
		return err
	}
	for _, w := range o.Warnings {
		s.probe.Warn(w)
	}
	return s.Attach(ctx, s.probe)
}

// ran asks the script what it computes on, and attaches sources that exist while the model is loaded.
func (s *Session) ran(ctx context.Context, o *Offer) (*Ran, error) {
	if o.Ran == nil {
		return nil, nil
	}
	told, err := Call[json.RawMessage](ctx, s.Page, "llmparity.ran()")
	if err != nil {
		return nil, fmt.Errorf("asking %s what it loaded: %w", s.served.Title, err)
	}
	ran, err := o.Ran(s.Page, told)
	if err != nil {
		return nil, err
	}
	if ran.Device != nil {
		s.event(record.Event{Device: ran.Device})
	}
	sources := ran.Sources
	if ran.Ledger && s.served.Elsewhere {
		sources = append(sources, s.ledger)
	}
	return ran, s.attach(ofTheModel, s.probe, sources)
}

// answer is the page's answer to a request; tokens come before it as events.
type answer struct {
	TooLong   int                `json:"tooLong"` // prompt length if it does not fit
	Context   int                `json:"context"` // into this context
	Sent      float64            `json:"sent"`
	Text      string             `json:"text"`
	Finish    string             `json:"finish"`
	Reported  map[string]float64 `json:"reported"`
	PromptIDs []int              `json:"promptIDs"`
	Warnings  []record.Warning   `json:"warnings"`
}

// generation collects the tokens of a request.
type generation struct {
	engine.Text
	session *Session
	sent    time.Time // by our clock, just before the call
}

// take reports tokens.
func (g *generation) take(told Told) {
	for i := 0; i+1 < len(told.Tokens); i += 2 {
		g.Tell(int(told.Tokens[i]), g.session.At(told.Tokens[i+1]))
	}
}

// usage sums up. The page knows best when the engine got the request, but a failed request has no answer.
func (g *generation) usage(a answer) record.Usage {
	u := record.Usage{PromptIDs: a.PromptIDs, Text: a.Text, Finish: a.Finish, Reported: a.Reported, Sent: g.sent}
	if u.Finish == "abort" {
		u.Finish = "cancelled"
	}
	how := "our clock: call of the page; page clock: first token sampled"
	if a.Sent != 0 {
		u.Sent = g.session.At(a.Sent)
		how = "page clock: request passed to " + g.session.served.Title + " to first token sampled"
	}
	u.Spans = g.Spans(u.Sent, g.N, how, "page clock: first token sampled to last token sampled")
	return u
}

// Generate completes a raw prompt. A second one is refused, because engines would queue it and time the wait.
func (s *Session) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	free, err := s.turn.Take()
	if err != nil {
		return record.Usage{}, err
	}
	defer free()
	if err := s.Settle(ctx); err != nil {
		return record.Usage{}, err
	}
	defer s.AttachNew(ctx, s.probe, watchGenerate)()
	defer s.Guard()()
	if err := s.watchBlocks(ctx); err != nil {
		return record.Usage{}, err
	}
	if err := s.reportKept(ctx); err != nil {
		return record.Usage{}, err
	}
	g := generation{Text: engine.Text{Token: token}, session: s, sent: time.Now()}
	seed := r.NewSeed()
	computes := s.computes(ctx)
	answer, err := Long[answer](ctx, s.Page, "llmparity.interrupt()", "llmparity.generate", map[string]any{
		"prompt": r.Prompt, "maxTokens": r.MaxTokens, "temperature": r.Temperature, "ignoreEOS": r.IgnoreEOS,
		"ids": r.IDs, "seed": seed,
	}, g.take)
	if r.Temperature > 0 {
		if answer.Reported == nil { // scripts need not report anything themselves
			answer.Reported = map[string]float64{}
		}
		answer.Reported["seed"] = float64(seed)
	}
	if err != nil {
		return g.usage(answer), fmt.Errorf("generating with %s: %w", s.served.Title, err)
	}
	for _, w := range answer.Warnings {
		s.probe.Warn(w)
	}
	if answer.TooLong > 0 {
		return g.usage(answer), fault.New(
			fault.PromptTooLong, "shorten the prompt, request fewer tokens, or use a larger context",
			"the prompt of %d tokens and %d tokens to generate do not fit in a context of %d", answer.TooLong,
			r.MaxTokens, answer.Context)
	}
	u := g.usage(answer)
	u.Returned = time.Now()
	blocks, err := s.blocks(ctx, u.Spans)
	u.Spans = append(u.Spans, blocks...)
	return u, errors.Join(err, computes())
}

// Unload frees the model, waits until the GPU process has freed it, too, and measures the page's clock again.
func (s *Session) Unload(ctx context.Context) error {
	if err := s.Settle(ctx); err != nil {
		return err
	}
	defer s.Guard()()
	s.detach(ofTheModel)
	if _, err := Call[any](ctx, s.Page, "llmparity.unload()"); err != nil {
		return fmt.Errorf("unloading: %w", err)
	}
	s.loaded = false
	return s.Unloaded(ctx, s.probe)
}

// Close ends the browser and the server, and removes their files.
func (s *Session) Close() error { return errors.Join(s.Page.Close(), s.runtime.Close()) }

// Score makes the page force a text on the engine. Only engines whose script exports score have Caps.Scores.
func (s *Session) Score(ctx context.Context, f engine.Forced, each func(record.Score)) error {
	if err := f.Validate(); err != nil {
		return err
	}
	free, err := s.turn.Take()
	if err != nil {
		return err
	}
	defer free()
	if err := s.Settle(ctx); err != nil {
		return err
	}
	if err := f.Fit(s.context); err != nil {
		return err
	}
	defer s.Guard()()
	title, count, failed := s.served.Title, 0, error(nil)
	answer, err := Long[struct {
		PromptIDs []int `json:"promptIDs"`
	}](ctx, s.Page, "llmparity.interrupt()", "llmparity.score",
		map[string]any{"prompt": f.Prompt, "forced": f.IDs, "top": f.Top, "whole": f.Whole}, func(told Told) {
			for _, numbers := range told.Scores {
				if failed != nil {
					return
				}
				var score record.Score
				if score, failed = scored(title, f.IDs, count, numbers); failed == nil {
					count++
					each(score)
				}
			}
		})
	switch {
	case err != nil:
		return fmt.Errorf("scoring with %s: %w", title, err)
	case failed != nil:
		return failed
	case !slices.Equal(answer.PromptIDs, f.Prompt):
		return engine.Fail(record.BadOutput, "%s scored after the prompt %v, not after the given one", title,
			answer.PromptIDs)
	case count != len(f.IDs):
		return engine.Fail(record.BadOutput, "%s scored %d of %d tokens", title, count, len(f.IDs))
	}
	return nil
}

// scored parses a token's score: its log-probability, then ids and log-probabilities of the likeliest tokens in turn.
func scored(title string, forced []int, at int, numbers []float64) (record.Score, error) {
	if at == len(forced) || len(numbers)%2 == 0 {
		return record.Score{}, engine.Fail(record.BadOutput, "the page sent %d numbers for token %d of %d", len(numbers),
			at+1, len(forced))
	}
	s := record.Score{Position: at, Forced: forced[at], LogProb: numbers[0]}
	for i := 1; i < len(numbers); i += 2 {
		s.Top = append(s.Top, record.Candidate{ID: int(numbers[i]), LogProb: numbers[i+1]})
	}
	if err := s.Sound(); err != nil {
		return s, engine.Fail(record.BadOutput, "%s's logits: %w", title, err)
	}
	return s, nil
}
