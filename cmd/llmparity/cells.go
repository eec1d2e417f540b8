package main

import (
	"context"
	"io"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/estimate"
	"llmparity/internal/kinds"
	"llmparity/internal/model"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/resolve"
)

// resolver resolves the plan. With dry, nothing is downloaded, compiled or started.
func (f *runFlags) resolver(dry bool, say func(engine, text string), stderr io.Writer) *resolve.Resolver {
	return resolve.New(resolve.Options{Dry: dry, Results: f.out, GPU: !browser.Auto.Software(), Warnings: stderr,
		Models: f.finder(func(text string) { say("model", text) }), Complete: f.settle, Engines: f.enginesOf(dry, say)})
}

// settle writes defaults into a setup's plan.
func (f *runFlags) settle(p *plan.Plan, m engine.Model) {
	own := f.following(*p)
	own.complete(p, m)
}

// following returns the flags with the settings of a setup's plan.
func (f *runFlags) following(p plan.Plan) *runFlags {
	own := *f
	own.engineFlags.follow(p)
	return &own
}

// finder finds models. Some models of the catalogue need features of the WebGPU adapter.
func (f *runFlags) finder(say func(string)) model.Finder {
	return model.Finder{Catalogue: builtInCatalogue, Mirror: f.mirror, Say: say,
		Features: func(ctx context.Context) ([]string, error) {
			for _, k := range kinds.All {
				e, ok := f.chosen().Engine(k.Name).(interface {
					Device(context.Context, func(string)) (record.Device, error)
				})
				if k.Browser && ok {
					device, err := e.Device(ctx, say)
					return browser.Features(device), err
				}
			}
			return nil, nil
		}}
}

// enginesOf makes the engines of setups. A failed download is not repeated.
func (f *runFlags) enginesOf(dry bool, say func(engine, text string)) func(context.Context, plan.Plan) (
	[]resolve.Engine, error) {
	failed := map[string]error{}
	return func(ctx context.Context, p plan.Plan) (out []resolve.Engine, err error) {
		own := f.following(p)
		for _, name := range p.Engines {
			k, _ := kinds.All.Of(name)
			e := forResolver(k, own.chosen().Engine(name), func(text string) { say(name, text) })
			e.Planned = name
			if fetcher, ok := e.Engine.(engine.Fetcher); ok && fetcher.Lacks() != "" {
				lacks := fetcher.Lacks()
				if dry {
					e.Fetch = &model.Fetch{What: lacks}
				} else if _, known := failed[lacks]; !known {
					failed[lacks] = fetcher.Fetch(ctx, func(text string) { say(name, text) })
				}
				if err := failed[lacks]; err != nil {
					e.Accepts = func(context.Context, engine.Model) engine.Verdict { return engine.Refuse(err) }
				}
			}
			out = append(out, e)
		}
		return out, context.Cause(ctx)
	}
}

// forResolver describes an engine to the resolver.
func forResolver(k *engine.Kind, e engine.Engine, say func(string)) resolve.Engine {
	out := resolve.Engine{Engine: e, Counts: k.Runs != nil, Browser: k.Browser, Coarse: e.Caps().Rounds,
		Accepts: func(ctx context.Context, m engine.Model) engine.Verdict { return k.Accepts(ctx, e, m) },
		Memory: func(m engine.Model) (resolve.Memory, error) {
			h := k.Holds(e, m)
			return resolve.Memory{Path: h.Path, Library: h.Library, Device: h.Device,
				Setup: estimate.Setup{Engine: h.As,
					OnGPU: h.OnGPU, DType: h.DType, PrefillChunk: h.PrefillChunk, Repacks: estimate.Repacks()}}, nil
		}}
	if c, ok := e.(engine.Confirmer); ok {
		out.Confirm = func(ctx context.Context, m engine.Model) error { return c.Confirm(ctx, m, say) }
	}
	if r, ok := e.(engine.Reader); ok {
		out.Files = r.Files
	}
	return out
}
