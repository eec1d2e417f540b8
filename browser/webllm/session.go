package webllm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"llmparity/assets/page"
	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// session is a browser with a page whose main thread or worker runs WebLLM.
type session struct {
	*browser.Page // can be profiled
	webllm        *WebLLM
	site          *site
	probe         engine.Probe
	device        record.Device

	turn    engine.Turns
	loaded  bool // a model is loaded
	context int
}

var (
	_ engine.Scorer   = (*session)(nil)
	_ engine.Profiler = (*session)(nil)
)

// Open starts the browser and opens the page, which has WebLLM's code but no engine yet.
func (w *WebLLM) Open(ctx context.Context, probe engine.Probe) (engine.Session, error) {
	s, err := w.open(ctx, probe, func(site http.Handler) http.Handler { return site })
	if err != nil {
		return nil, err
	}
	return s, nil
}

// open is Open with a filter between the page and its server.
func (w *WebLLM) open(ctx context.Context, probe engine.Probe, between func(http.Handler) http.Handler) (*session,
	error) {
	b, err := w.bundle(ctx, quiet)
	if err != nil {
		return nil, err
	}
	site, err := newSite(b)
	if err != nil {
		return nil, err
	}
	shown := site.page()
	shown.Handler = between(site)
	p, err := browser.Open(ctx, w.browser(), shown, probe)
	if err != nil {
		return nil, err
	}
	s := &session{Page: p, webllm: w, site: site, probe: probe}
	if s.device, err = s.Device(ctx); err == nil { // report what exists before any model
		device := s.device
		w.device.Store(&device)
		s.event(record.Event{Engine: s.info(nil)})
		s.event(record.Event{Device: &device})
		err = s.Measure(ctx, probe)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *session) event(e record.Event) {
	e.At = time.Now()
	s.probe.Event(e)
}

// info describes the engine; p is nil before the load.
func (s *session) info(p *Package) *record.EngineInfo {
	info, bundle := s.Info(), s.site.bundle
	info.Name, info.Title, info.Version, info.Origin = Name, Memory.Title, bundle.version(), bundle.origin()
	info.Parts["bundle_sha256"] = s.site.sha256
	if sum, err := page.SHA256(); err == nil {
		info.Parts["page_sha256"] = sum
	}
	info.Policy["prompt_cache"] = "off"
	if p == nil {
		return info
	}
	info.Library = &p.Library.Library
	maps.Copy(info.Policy, p.settings())
	return info
}

// How often to look for new processes. During a generation, looking must not affect the figures.
const (
	watchLoad     = 500 * time.Millisecond
	watchGenerate = proc.ExpensiveEvery
)

// Load creates WebLLM's engine and loads the model.
func (s *session) Load(ctx context.Context, m models.Model) error {
	if err := s.Settle(ctx); err != nil {
		return err
	}
	if s.loaded { // memory could not be attributed to one of two
		return errors.New("a model is already loaded; unload it first")
	}
	defer s.AttachNew(ctx, s.probe, watchLoad)()
	defer s.Guard()()
	p, err := s.webllm.packageOf(ctx, m, quiet)
	if err != nil {
		return err
	}
	if p.DType == F16 || p.NeedsF16 {
		if err := needF16(s.device); err != nil {
			return err
		}
	}
	failed := func(err error) error {
		return fmt.Errorf("loading %s into %s: %w%s", m.Name, s.site.bundle, err, s.site.lacks())
	}
	if err := s.webllm.intact(ctx, p); err != nil {
		return failed(err)
	}
	offer, err := s.site.offer(p)
	if err != nil {
		return err
	}
	var split browser.Layout // nil: not split
	if l, err := layoutOf(p); err == nil {
		split = l
	} else {
		engine.Warn(s.probe, "no-attribution", "WebGPU memory is not split into weights, KV cache and workspaces: %v", err)
	}
	s.Parted(split)
	marks, err := browser.Long[map[string]float64](ctx, s.Page, "llmparity.giveUp()", "llmparity.load", map[string]any{
		"model": s.Base() + offer + "/model/", "library": s.Base() + offer + "/library.wasm", "id": p.ID,
		"window": p.Context, "overrides": p.Overrides,
	}, func(browser.Told) {})
	if err != nil {
		return failed(err)
	}
	s.loaded, s.context = true, p.Context
	for _, span := range stages(marks, s.At) {
		s.probe.Span(span)
	}
	if err := s.Loaded(ctx); err != nil {
		return err
	}
	s.event(record.Event{Engine: s.info(&p)})
	for _, w := range p.Warnings {
		s.probe.Warn(w)
	}
	if k, d := p.Library.Kernels, s.device; k != "" && (k == SoftwareKernels) != (kernelsFor(d) == SoftwareKernels) {
		engine.Warn(s.probe, "library-for-another-adapter", "the model library has %s kernels, but the adapter is "+
			"%s (%s): a library made for it would be faster or slower", k, d.Name, d.Class)
	}
	return s.Attach(ctx, s.probe)
}

// Generate completes a raw prompt. A second one is refused, because WebLLM would queue it and time the wait.
func (s *session) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
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
	g := generation{Text: engine.Text{Token: token}, at: s.At, sent: time.Now()}
	answer, err := browser.Long[answer](ctx, s.Page, "llmparity.interrupt()", "llmparity.generate", map[string]any{
		"prompt": r.Prompt, "maxTokens": r.MaxTokens, "temperature": r.Temperature, "ignoreEOS": r.IgnoreEOS,
		"ids": r.IDs,
	}, g.take)
	if err != nil {
		return g.usage(answer), fmt.Errorf("generating with WebLLM: %w", err)
	}
	if answer.TooLong > 0 {
		return g.usage(answer), fault.New(
			fault.PromptTooLong, "shorten the prompt, request fewer tokens, or use a larger context",
			"the prompt of %d tokens and %d tokens to generate do not fit in a context of %d", answer.TooLong,
			r.MaxTokens, answer.Context)
	}
	return g.usage(answer), nil
}

// Unload frees the model, waits until the GPU process has freed it, too, and measures the page's clock again.
func (s *session) Unload(ctx context.Context) error {
	if err := s.Settle(ctx); err != nil {
		return err
	}
	defer s.Guard()()
	if _, err := browser.Call[any](ctx, s.Page, "llmparity.unload()"); err != nil {
		return fmt.Errorf("unloading: %w", err)
	}
	s.loaded = false
	return s.Unloaded(ctx, s.probe)
}

// Close ends the browser and the server, and removes their files.
func (s *session) Close() error { return errors.Join(s.Page.Close(), s.site.close()) }

// Score makes the page force a text on WebLLM. It reads raw logits through a LogitProcessor, which exists only
// meanwhile.
func (s *session) Score(ctx context.Context, f engine.Forced, each func(record.Score)) error {
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
	count, failed := 0, error(nil)
	answer, err := browser.Long[struct {
		PromptIDs []int `json:"promptIDs"`
	}](ctx, s.Page, "llmparity.interrupt()", "llmparity.score",
		map[string]any{"prompt": f.Prompt, "forced": f.IDs, "top": f.Top, "whole": f.Whole}, func(told browser.Told) {
			for _, numbers := range told.Scores {
				if failed != nil {
					return
				}
				var score record.Score
				if score, failed = scored(f.IDs, count, numbers); failed == nil {
					count++
					each(score)
				}
			}
		})
	switch {
	case err != nil:
		return fmt.Errorf("scoring with WebLLM: %w", err)
	case failed != nil:
		return failed
	case !slices.Equal(answer.PromptIDs, f.Prompt):
		return engine.Fail(record.BadOutput, "WebLLM scored after the prompt %v, not after the given one",
			answer.PromptIDs)
	case count != len(f.IDs):
		return engine.Fail(record.BadOutput, "WebLLM scored %d of %d tokens", count, len(f.IDs))
	}
	return nil
}

// scored parses a token's score: its log-probability, then ids and log-probabilities of the likeliest tokens in turn.
func scored(forced []int, at int, numbers []float64) (record.Score, error) {
	if at == len(forced) || len(numbers)%2 == 0 {
		return record.Score{}, engine.Fail(record.BadOutput, "the page sent %d numbers for token %d of %d", len(numbers),
			at+1, len(forced))
	}
	s := record.Score{Position: at, Forced: forced[at], LogProb: numbers[0]}
	for i := 1; i < len(numbers); i += 2 {
		s.Top = append(s.Top, record.Candidate{ID: int(numbers[i]), LogProb: numbers[i+1]})
	}
	if err := s.Sound(); err != nil {
		return s, engine.Fail(record.BadOutput, "WebLLM's logits: %w", err)
	}
	return s, nil
}
