package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"llmparity/assets/page"
	"llmparity/browser"
	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/estimate"
	"llmparity/internal/fault"
	"llmparity/internal/model"
	"llmparity/internal/npm"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/resolve"
	"llmparity/native/llamacpp"
	"llmparity/native/ollama"
	"llmparity/native/openai"
)

// resolver resolves the plan that the flags are for. With dry, nothing is fetched, made or started.
func (f *runFlags) resolver(dry bool, say func(engine, text string), stderr io.Writer) *resolve.Resolver {
	return resolve.New(resolve.Options{Dry: dry, Results: f.out, GPU: !browser.Auto.Software(), Warnings: stderr,
		Models: f.finder(func(text string) { say(browser.Name, text) }), Complete: f.settle,
		Engines: f.enginesOf(dry, func(text string) { say(browser.Name, text) })})
}

// settle writes into a setup's plan what was chosen by default.
func (f *runFlags) settle(p *plan.Plan, m engine.Model) {
	own := f.following(p)
	own.complete(p, m)
}

// following are the flags as a setup's plan changes them.
func (f *runFlags) following(p *plan.Plan) *runFlags {
	own := *f
	own.made = nil
	cacheTypes(p)
	own.engineFlags.follow(*p)
	own.version, own.file = p.WebLLMVersion, p.WebLLMBundle
	return &own
}

// finder finds models as the flags say.
func (f *runFlags) finder(say func(string)) model.Finder {
	return model.Finder{Catalogue: builtInCatalogue, Mirror: f.mirror, Say: say,
		Features: func(ctx context.Context) ([]string, error) {
			device, err := f.webllm().Device(ctx, say)
			return browser.Features(device), err
		}}
}

// enginesOf makes the engines of setups' plans, which share the WebLLM that was found for them.
func (f *runFlags) enginesOf(dry bool, say func(string)) func(context.Context, plan.Plan) ([]resolve.Engine, error) {
	type found struct {
		bundle browser.Bundle
		err    error
		fetch  *model.Fetch
	}
	bundles := map[bundleFlags]found{}
	return func(ctx context.Context, p plan.Plan) (out []resolve.Engine, err error) {
		own := f.following(&p)
		for _, name := range p.Engines {
			var has found
			if name == browser.Name {
				var known bool
				if has, known = bundles[own.bundleFlags]; !known {
					if v := own.version; dry && own.file == "" && v != "" && v != page.WebLLM &&
						!npm.Kept(cache.Dir(os.Getenv), webllmPackage, v, bundleFile) {
						has.fetch = &model.Fetch{What: "WebLLM " + v + " from npm"}
					} else {
						has.bundle, has.err = own.find(ctx, p.Engines, say)
					}
					bundles[own.bundleFlags] = has
				}
				own.bundle = has.bundle
			}
			e := own.resolved(p, name, own.named(name), say)
			if e.Fetch = has.fetch; has.err != nil {
				e.Accepts = func(context.Context, engine.Model) engine.Verdict { return engine.Refuse(has.err) }
			}
			out = append(out, e)
		}
		return out, context.Cause(ctx)
	}
}

// resolved is an engine of a setup with what the resolver must know of it.
func (f *runFlags) resolved(p plan.Plan, name string, e engine.Engine, say func(string)) resolve.Engine {
	k, _, _ := kindOf(name)
	out := resolve.Engine{Engine: e, Planned: name, Counts: k.gguf != nil, Browser: name == browser.Name,
		Accepts: func(ctx context.Context, m engine.Model) engine.Verdict { return accepts(ctx, p, name, e, m) },
		Memory:  func(m engine.Model) (resolve.Memory, error) { return resolve.Memory{Path: m.Path}, nil }}
	switch e := e.(type) {
	case *browser.WebLLM:
		out.Confirm = func(ctx context.Context, _ engine.Model) error {
			_, err := e.Target(ctx, say)
			if fault.Of(err) == fault.NoF16 {
				return err
			}
			return nil // other trouble is the launch's to tell
		}
		out.Memory = func(m engine.Model) (resolve.Memory, error) { return f.webllmMemory(e, m), nil }
		out.Files = func(m engine.Model) []string {
			if made, ok := e.Prepared(m); ok {
				return []string{made.Dir, made.Library.Path}
			}
			return nil
		}
	case *ollama.Ollama:
		out.Coarse = true                                      // it has no KV cache of f32
		out.Files = func(engine.Model) []string { return nil } // which file of its store it is, is not known
		if e.Caps().Isolation != record.OfServer {
			out.Memory = estimatedAs(estimate.Setup{Engine: estimate.Ollama})
		}
	case *llamacpp.Engine, *llamacpp.OneShot:
		out.Coarse = p.LlamaCpp.Coarse()
		out.Memory = estimatedAs(estimate.Setup{Engine: estimate.LlamaCPP, Repacks: estimate.Repacks()})
	case interface{ Found() error }: // a program of the user's own, which tells what it runs when it has started
		out.Confirm = out.Engine.Check
	}
	if strings.HasPrefix(name, openai.Name) {
		out.Coarse = true // of a server it is not known what it has
	}
	return out
}

func estimatedAs(s estimate.Setup) func(engine.Model) (resolve.Memory, error) {
	return func(m engine.Model) (resolve.Memory, error) { return resolve.Memory{Path: m.Path, Setup: s}, nil }
}

// webllmMemory goes by the package that was prepared, and before that by what would be made of a GGUF.
func (f *runFlags) webllmMemory(e *browser.WebLLM, m engine.Model) resolve.Memory {
	out := resolve.Memory{Path: m.Path, Setup: estimate.Setup{Engine: estimate.WebLLM, OnGPU: !e.Software()},
		Device: func(ctx context.Context) (record.Device, error) { return e.Device(ctx, func(string) {}) }}
	if p, ok := e.Prepared(m); ok {
		out.Path, out.Library = p.Dir, p.Library.Path
	} else if m.Format == model.GGUF {
		out.Setup.DType, out.Setup.PrefillChunk = f.dtype, min(prefillChunk, m.Context)
	}
	return out
}

// accepts says whether an engine can run a model as a setup's plan wants it.
func accepts(ctx context.Context, p plan.Plan, name string, e engine.Engine, m engine.Model) engine.Verdict {
	k, _, _ := kindOf(name)
	refuse := func(kind fault.Kind, do, format string, args ...any) engine.Verdict {
		return engine.Refuse(fault.New(kind, do, format, args...))
	}
	switch {
	case p.KVDType != "" && name == browser.Name && m.Format == model.WebLLM:
		return refuse(fault.NotSupported, "leave it out",
			"kv_cache_dtype: %s: the KV cache of %s has the numbers of its package", p.KVDType, name)
	case p.KVDType != "" && name == ollama.Name && p.Ollama != nil && p.Ollama.URL != "":
		return refuse(fault.NotSupported, "leave it out",
			"kv_cache_dtype: %s: an Ollama that runs already has its own", p.KVDType)
	case m.Format == record.Served && !k.asks && !e.Caps().Served:
		return refuse(fault.NotSupported, "name a file, or leave the engine out",
			"%s runs models from files, and %s is one that only a server has", e.Name(), model.Served+m.Name)
	case m.Format == model.WebLLM && m.Path == "": // it is not here yet
		if name != browser.Name {
			return refuse(fault.BadModel, "leave the engine out",
				"%s runs no WebLLM packages, and %s is one", e.Name(), m.Name)
		}
		return engine.Verdict{}
	}
	if m.Unsupported != nil && name == browser.Name {
		return engine.Refuse(m.Unsupported)
	}
	if f, ok := e.(interface{ Found() error }); ok {
		if err := f.Found(); err != nil {
			return engine.Refuse(err)
		}
		return engine.Undecided("%s says what it runs when it has started", name)
	}
	if err := e.Check(ctx, m); err != nil {
		return engine.Refuse(err)
	}
	if m.Unsupported != nil {
		return engine.Undecided("llmparity does not know the architecture %s; %s decides when it loads the model",
			m.Architecture, e.Name())
	}
	if _, ok := e.(*browser.WebLLM); ok && p.DType == browser.F16 && m.Format == model.GGUF {
		return engine.Undecided("the browser says whether its WebGPU adapter has float16 when it has started")
	}
	return engine.Verdict{}
}

// cacheTypes puts the dtype of a setup's KV cache where engines look for it. llama.cpp has quantised values with flash
// attention alone.
func cacheTypes(p *plan.Plan) {
	if p.KVDType == "" {
		return
	}
	if slices.Contains(p.Engines, llamacpp.Name) || slices.Contains(p.Engines, llamacpp.OneShotName) {
		said := plan.LlamaCpp{}
		if p.LlamaCpp != nil {
			said = *p.LlamaCpp
		}
		said.CacheTypeK, said.CacheTypeV = p.KVDType, p.KVDType
		if plain := []string{"f32", "f16", "bf16"}; !slices.Contains(plain, p.KVDType) &&
			cmp.Or(said.FlashAttention, "off") == "off" {
			said.FlashAttention = "on"
		}
		p.LlamaCpp = &said
	}
	if slices.Contains(p.Engines, ollama.Name) {
		said := plan.Ollama{}
		if p.Ollama != nil {
			said = *p.Ollama
		}
		said.KVType = p.KVDType
		p.Ollama = &said
	}
}
