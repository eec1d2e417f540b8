package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"llmparity/assets/page"
	"llmparity/browser"
	"llmparity/internal/cache"
	"llmparity/internal/catalogue"
	"llmparity/internal/engine"
	"llmparity/internal/npm"
	"llmparity/internal/plan"
	"llmparity/internal/prompts"
	"llmparity/internal/record"
	"llmparity/internal/run"
	"llmparity/internal/tiny/reference"
)

// resolver finds what a plan's setups need, for all of them before anything is launched, and makes it when a setup's
// turn comes.
type resolver struct {
	flags  *runFlags // as they were given; what a setup says of engines is in a copy of them
	say    func(engine, text string)
	stderr io.Writer

	models  map[modelKey]foundModel
	bundles map[string]foundBundle // by version and file
	sets    map[string]*engineSet
	makers  map[string]foundMaker // by model
	texts   map[textKey]string
	counts  map[textKey]int // tokens of prompts that are texts
	opened  *engineSet      // engines of the setup that is carried out
	settled map[settledKey]*settledSetup
	// dry has nothing made or fetched: what would be is in fetches.
	dry       bool
	fetches   []fetched
	notes     []string
	unfetched map[string]bool // models, by their names in plans
	// expressed are texts of which it is known whether a model's vocabulary has all their characters.
	expressed map[textKey]error
	sources   map[sourceKey]readText
}

type modelKey struct {
	name    string
	context int
}

type foundModel struct {
	model engine.Model
	err   error
}

type foundBundle struct {
	bundle browser.Bundle
	err    error
}

type foundMaker struct {
	maker  *prompts.Maker
	tokens *reference.Tokenizer
	err    error
}

type textKey struct {
	path string
	n    int
	seed uint64
}

// engineSet is the engines of setups that say the same of them: what they find out about the machine they find out
// once.
type engineSet struct {
	key     string
	flags   *runFlags
	engines []engine.Engine
	checked map[checkKey]error
	webllm  error // why WebLLM can't be had
}

// checkKey is what an engine's check looks at.
type checkKey struct {
	engine string
	model  modelKey
}

func newResolver(f *runFlags, say func(engine, text string), stderr io.Writer) *resolver {
	return &resolver{flags: f, say: say, stderr: stderr, models: map[modelKey]foundModel{},
		bundles: map[string]foundBundle{},
		sets:    map[string]*engineSet{}, makers: map[string]foundMaker{}, texts: map[textKey]string{},
		counts: map[textKey]int{}, expressed: map[textKey]error{}, sources: map[sourceKey]readText{},
		settled:   map[settledKey]*settledSetup{},
		unfetched: map[string]bool{}}
}

// close ends what engines keep from launch to launch.
func (r *resolver) close() { r.open(nil) }

// open has a set's engines be the ones that are used now. Others of the same kind, which would keep a server or a store
// beside them, end.
func (r *resolver) open(set *engineSet) {
	if r.opened != nil && r.opened != set {
		closeEngines(r.opened.engines, r.stderr)
		delete(r.sets, r.opened.key)
	}
	r.opened = set
}

// engineKey is what a plan says of engines, without what it says of models and requests.
func engineKey(p plan.Plan) (string, error) {
	p.Name, p.Model, p.Prompts, p.Sources, p.MaxTokens, p.Context, p.Traffic, p.Repetitions = "", "", nil, nil, 0,
		0, nil, 0
	p.Start, p.Gate, p.ContextNote, p.Deployment, p.Seed = "", nil, "", plan.Deployment{}, 0
	text, err := json.Marshal(p)
	return string(text), err
}

// use gives the engines of a setup.
func (r *resolver) use(ctx context.Context, p plan.Plan) (*engineSet, error) {
	key, err := engineKey(p)
	if err != nil {
		return nil, err
	}
	if set := r.sets[key]; set != nil {
		return set, nil
	}
	f := *r.flags
	f.made = nil
	f.engineFlags.follow(p)
	f.version, f.file = p.WebLLMVersion, p.WebLLMBundle
	set := &engineSet{key: key, flags: &f, checked: map[checkKey]error{}}
	f.bundle, set.webllm = r.bundle(ctx, &f, p.Engines)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	set.engines = f.build(p.Engines)
	r.sets[key] = set
	return set, nil
}

// bundle finds a WebLLM once.
func (r *resolver) bundle(ctx context.Context, f *runFlags, engines []string) (browser.Bundle, error) {
	if !slices.Contains(engines, browser.Name) {
		return browser.Bundle{}, nil
	}
	key := f.version + " " + f.file
	found, ok := r.bundles[key]
	if !ok && r.dry && f.file == "" && f.version != "" && f.version != page.WebLLM &&
		!npm.Kept(cache.Dir(os.Getenv), webllmPackage, f.version, bundleFile) {
		r.bundles[key], ok = found, true
		r.fetches = append(r.fetches, fetched{What: "WebLLM " + f.version + " from npm"})
	}
	if !ok {
		found.bundle, found.err = f.find(ctx, engines, func(text string) { r.say(browser.Name, text) })
		if ctx.Err() == nil {
			r.bundles[key] = found
		}
	}
	return found.bundle, found.err
}

// model finds a model once, and fetches it where it must; what is found is the same for every context that it has.
func (r *resolver) model(ctx context.Context, f *runFlags, p plan.Plan) (engine.Model, error) {
	window := max(p.Context, 0)
	m, err := r.find(ctx, f, modelKey{p.Model, 0})
	switch {
	case window == 0 || m.Format == record.Served && err == nil:
		m.Context = cmp.Or(m.Context, window)
		return m, err
	case err == nil && window <= m.MaxContext:
		m.Context = window
		return m, nil
	}
	return r.find(ctx, f, modelKey{p.Model, window}) // whose error says what is wrong with that context
}

func (r *resolver) find(ctx context.Context, f *runFlags, key modelKey) (engine.Model, error) {
	found, ok := r.models[key]
	if !ok && r.dry && listedModel(key.name) {
		found.model, found.err = r.unfetchedModel(ctx, key.name, key.context)
		r.models[key], ok = found, found.err != nil || found.model.Path == ""
	}
	if !ok {
		found.model, found.err = f.findModel(ctx, key.name, key.context,
			func(text string) { r.say(browser.Name, text) })
		if ctx.Err() == nil {
			r.models[key] = found
		}
	}
	return found.model, found.err
}

// settle finds a setup's engines and model, and has its plan say what was chosen.
func (r *resolver) settle(ctx context.Context, s *plan.Setup) (*engineSet, engine.Model, error) {
	cacheTypes(&s.Plan)
	set, err := r.use(ctx, s.Plan)
	if err != nil {
		return nil, engine.Model{}, err
	}
	m, err := r.model(ctx, set.flags, s.Plan)
	if err != nil {
		return nil, m, err
	}
	if err := chooseContext(&s.Plan, &m); err != nil {
		return nil, m, err
	}
	if r.dry {
		return set, m, nil
	}
	set.flags.complete(&s.Plan, m)
	return set, m, r.write(s, m)
}

// settledKey is what setups of one plan differ by, as far as engines and models go.
type settledKey struct {
	model, dtype, kv, version, engines string
	context, threads, slots            int
	deployment                         plan.Deployment
}

// settledSetup is what settle finds, and what is wrong with engines.
type settledSetup struct {
	set    *engineSet
	model  engine.Model
	err    error
	faults map[int]error
}

func (r *resolver) once(s *plan.Setup) *settledSetup {
	p := &s.Plan
	engines := p.Engines[0]
	if len(p.Engines) > 1 {
		engines = strings.Join(p.Engines, "\x00")
	}
	key := settledKey{p.Model, p.DType, p.KVDType, p.WebLLMVersion, engines, p.Context, p.Threads, p.Slots,
		p.Deployment}
	if r.settled[key] == nil {
		r.settled[key] = &settledSetup{faults: map[int]error{}}
	}
	return r.settled[key]
}

// settleOnce is settle for plans of very many setups, whose own plan stays as it is.
func (r *resolver) settleOnce(ctx context.Context, s *plan.Setup) (*engineSet, engine.Model, error) {
	known := r.once(s)
	if known.set == nil && known.err == nil {
		of := *s
		known.set, known.model, known.err = r.settle(ctx, &of)
	}
	return known.set, known.model, known.err
}

// engineFaultOnce is engineFault for them.
func (r *resolver) engineFaultOnce(ctx context.Context, s plan.Setup, set *engineSet, m engine.Model, i int) error {
	known := r.once(&s)
	err, ok := known.faults[i]
	if !ok {
		err = r.engineFault(ctx, s, set, m, i)
		known.faults[i] = err
	}
	return err
}

// listedModel tells whether a name is one of WebLLM's catalogue.
func listedModel(name string) bool {
	return name != "tiny" && name != "smollm2" && !strings.HasPrefix(name, servedPrefix) && !isPackage(name) &&
		isID(name)
}

// unfetchedModel is a model of the catalogue as far as it is known without fetching it; one without a path is not
// there.
func (r *resolver) unfetchedModel(ctx context.Context, id string, window int) (engine.Model, error) {
	e, err := inCatalogue(id)
	if err != nil {
		return engine.Model{}, err
	}
	p, err := catalogue.Open(catalogue.Store(cache.Dir(os.Getenv)), e.ID)
	switch {
	case err == nil:
		return openPackaged(p.Dir, e.ID, cmp.Or(window, max(e.Context(), 0)))
	case !errors.Is(err, fs.ErrNotExist):
		return engine.Model{}, err
	}
	if !r.unfetched[id] {
		r.unfetched[id] = true
		f := fetched{What: id + " of WebLLM's catalogue"}
		if r.flags.mirror != "" {
			if sizes, err := catalogue.Sizes(ctx, []catalogue.Entry{e},
				catalogue.Options{Mirror: r.flags.mirror}); err == nil {
				if n, ok := sizes[e.ID]; ok {
					f.Bytes = &n
				}
			}
		} else {
			f.What += fmt.Sprintf(", of which WebLLM says that it takes %.0f MB of video memory", e.VRAM)
		}
		r.fetches = append(r.fetches, f)
	}
	return engine.Model{Model: record.Model{Name: e.ID, Format: webllmFormat,
		Context: cmp.Or(window, max(e.Context(), 0))}}, nil
}

// write makes the prompts whose lengths are asked for, and reads those that stand in files. The same length has the
// same text in every setup of a model.
func (r *resolver) write(s *plan.Setup, m engine.Model) error {
	s.Shapes = slices.Clone(s.Shapes)
	for i := range s.Shapes {
		shape := &s.Shapes[i]
		if err := r.sourced(shape); err != nil {
			return err
		}
		if shape.Prompt == "" && shape.InputTokens > 0 {
			text, err := r.text(m, shape.InputTokens, s.Plan.Seed)
			if err != nil {
				return fmt.Errorf("input_lengths: %d: %w", shape.InputTokens, err)
			}
			shape.Prompt = text
		}
		if err := r.mixed(shape, m, s.Plan.Seed); err != nil {
			return err
		}
	}
	return nil
}

// mixed makes the prompts of kinds of requests.
func (r *resolver) mixed(shape *plan.Shape, m engine.Model, seed uint64) error {
	if shape.Traffic == nil || len(shape.Traffic.Mix) == 0 {
		return nil
	}
	t := *shape.Traffic // shapes share it
	t.Mix = slices.Clone(t.Mix)
	for i := range t.Mix {
		k := &t.Mix[i]
		if k.Prompt != "" || k.InputTokens == 0 {
			continue
		}
		text, err := r.text(m, k.InputTokens, seed)
		if err != nil {
			return fmt.Errorf("traffic.mix: %s: %w", k.Name, err)
		}
		k.Prompt = text
	}
	shape.Traffic = &t
	return nil
}

// text is a prompt of exactly so many tokens.
func (r *resolver) text(m engine.Model, n int, seed uint64) (string, error) {
	key := textKey{m.Path, n, seed}
	if text, ok := r.texts[key]; ok {
		return text, nil
	}
	maker := r.maker(m)
	if maker.err != nil {
		return "", maker.err
	}
	text, err := maker.maker.OfLength(n, seed)
	if err == nil {
		r.texts[key] = text
	}
	return text, err
}

func (r *resolver) maker(m engine.Model) foundMaker {
	found, ok := r.makers[m.Path]
	if !ok {
		if found.tokens, found.err = tokenizerOf(m); found.err == nil {
			found.maker, found.err = prompts.NewMaker(found.tokens)
		}
		r.makers[m.Path] = found
	}
	return found
}

// setup makes what carries a setup out. The engines stay until another setup wants others.
func (r *resolver) setup(ctx context.Context, s plan.Setup) (run.Setup, func(), error) {
	set, m, err := r.settle(ctx, &s)
	if err != nil {
		return run.Setup{Setup: s}, nil, err
	}
	r.open(set)
	known, err := expected(m, s.Plan, s.Shapes)
	if err != nil {
		return run.Setup{Setup: s}, nil, err
	}
	asks, err := r.asking(s, m)
	if err != nil {
		return run.Setup{Setup: s}, nil, err
	}
	f, told := set.flags, newForetelling(set.engines, m)
	out := run.Setup{Setup: s, Parts: run.Parts{Engines: slices.Clone(set.engines), Model: m, Expected: known,
		Unsure: unsure(s.Plan),
		Pieces: pieces(m), Foretell: told.foretell, Judge: told.judge, Ask: asks, Files: modelFiles(m, s.Plan.Context),
		Reference: func() (string, error) { return f.referenceOf(s.Plan), f.referenceFault(s.Plan) }}}
	refused := map[string]error{}
	for i, e := range out.Engines {
		if err := r.engineFault(ctx, s, set, m, i); err != nil {
			refused[e.Name()] = err
			out.Engines[i] = absent{e}
		}
	}
	out.Refused = func(c record.Cell) error {
		if err := refused[c.Engine]; err != nil {
			return err
		}
		of := plan.Shape{Prompt: c.Prompt, InputTokens: c.InputTokens, MaxTokens: c.MaxTokens, Traffic: c.Traffic}
		if i := slices.IndexFunc(s.Shapes,
			func(shape plan.Shape) bool { return shape.PromptID == c.PromptID }); i >= 0 {
			of.Source = s.Shapes[i].Source
		}
		return r.shapeFault(m, c.Engine, of)
	}
	return out, nil, nil
}

// absent is an engine that can't run here, of which it is known why: it is neither checked nor prepared again.
type absent struct{ engine.Engine }

// Check says nothing: cells of it are refused.
func (absent) Check(context.Context, engine.Model) error { return nil }
