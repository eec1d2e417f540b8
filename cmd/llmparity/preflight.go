package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/native/llamacpp"
	"llmparity/native/ollama"
)

// unserved refuses what a plan asks for that an engine does not do, whatever the model is.
func unserved(p plan.Plan, name string) error {
	if lines := p.Unserved(name); len(lines) > 0 {
		return fault.New(fault.Usage, "leave it out of the plan", "%s", strings.Join(lines, "; "))
	}
	return nil
}

// engineFault says why an engine of a setup can run none of its cells here. It starts nothing that stays.
func (r *resolver) engineFault(ctx context.Context, s plan.Setup, set *engineSet, m engine.Model, i int) error {
	e, name := set.engines[i], s.Plan.Engines[i]
	if err := unserved(s.Plan, name); err != nil {
		return err
	}
	if err := kvFault(s.Plan, name, m); err != nil {
		return err
	}
	if err := servedFault(s.Plan, name, e); err != nil {
		return err
	}
	if name == browser.Name && set.webllm != nil {
		return set.webllm
	}
	if r.unfetched[s.Plan.Model] {
		return packageFault(e.Name(), m, s.Plan.Model)
	}
	if k, _, _ := kindOf(name); r.dry && k.asks {
		if f, ok := e.(interface{ Found() error }); ok {
			return f.Found()
		}
		return nil // it would have to be started
	}
	key := checkKey{e.Name(), modelKey{m.Path, min(m.Context, 1)}} // how long a context is no engine's check looks at
	err, known := set.checked[key]
	if !known {
		if err = e.Check(ctx, m); err == nil && !r.dry {
			err = r.halfFault(ctx, s, e, m)
		}
		if ctx.Err() == nil {
			set.checked[key] = err
		}
	}
	return err
}

// halfFault asks the browser whether its adapter has float16, where that is wanted: half of a plan's cells may hang on
// it.
func (r *resolver) halfFault(ctx context.Context, s plan.Setup, e engine.Engine, m engine.Model) error {
	w, ok := e.(*browser.WebLLM)
	if !ok || s.Plan.DType != browser.F16 || m.Format != "gguf" {
		return nil
	}
	if _, err := w.Target(ctx, func(text string) { r.say(browser.Name, text) }); fault.Code(err) == int(fault.NoF16) {
		return err
	}
	return nil // other trouble is the launch's to tell
}

// packageFault refuses a package that is not here yet for engines that run none.
func packageFault(called string, m engine.Model, name string) error {
	if m.Format != webllmFormat || called == browser.Name {
		return nil
	}
	return fault.New(fault.BadModel, "leave the engine out", "%s runs no WebLLM packages, and %s is one", called, name)
}

// servedFault refuses a served model for an engine that needs a file.
func servedFault(p plan.Plan, name string, e engine.Engine) error {
	k, _, _ := kindOf(name)
	// one that is asked tells when it is checked
	if !strings.HasPrefix(p.Model, servedPrefix) || k.asks || e.Caps().Served {
		return nil
	}
	return fault.New(fault.Usage, "name a file, or leave the engine out",
		"%s runs models from files, and %s is one that only a server has", e.Name(), p.Model)
}

// kvFault refuses to choose the numbers of a KV cache where the model or the server has its own. What engines have is
// the plan's to know.
func kvFault(p plan.Plan, name string, m engine.Model) error {
	switch {
	case p.KVDType == "":
		return nil
	case name == browser.Name && m.Format == webllmFormat:
		return fault.New(fault.Usage, "leave it out",
			"kv_cache_dtype: %s: the KV cache of %s has the numbers of its package", p.KVDType, name)
	case name == ollama.Name && p.Ollama != nil && p.Ollama.URL != "":
		return fault.New(fault.Usage, "leave it out", "kv_cache_dtype: %s: an Ollama that runs already has its own",
			p.KVDType)
	}
	return nil
}

// cacheTypes puts the type of a setup's KV cache where engines look for it. llama.cpp has quantised values with flash
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

// question is what a request asks: a text, or as many tokens as there shall be.
type question struct {
	prompt  string
	in, out int
}

// questions are what a shape's requests ask, as far as it is known beforehand: what was answered between the turns of a
// conversation is not.
func (r *resolver) questions(s plan.Shape) ([]question, error) {
	read := r.source(s.Source)
	switch t := s.Traffic; {
	case read.err != nil:
		return nil, read.err
	case t == nil:
	case len(t.Mix) > 0:
		var out []question
		for _, k := range t.Mix {
			q := question{cmp.Or(k.Prompt, s.Prompt), k.InputTokens, cmp.Or(k.MaxTokens, s.MaxTokens)}
			if k.Prompt == "" && k.InputTokens == 0 {
				q.in = s.InputTokens
			}
			out = append(out, q)
		}
		return out, nil
	case len(read.trace) > 0:
		var out []question
		for _, a := range read.trace {
			out = append(out, question{"", a.InputTokens, a.MaxTokens})
		}
		return out, nil
	case len(read.items) > 0:
		var out []question
		for _, item := range read.items[:min(len(read.items), max(1, t.Requests/max(1, t.Turns)))] {
			out = append(out, question{conversation(item.Turns, t.Turns), 0, cmp.Or(item.MaxTokens, s.MaxTokens)})
		}
		return out, nil
	case s.Source != nil && len(s.Source.Conversation) > 0:
		return []question{{conversation(s.Source.Conversation, t.Turns), 0, s.MaxTokens}}, nil
	}
	return []question{{cmp.Or(s.Prompt, read.text), s.InputTokens, s.MaxTokens}}, nil
}

// conversation is what its last turn's prompt has at least.
func conversation(turns []string, n int) string {
	return strings.Join(turns[:min(len(turns), max(1, n))], "\n")
}

// shapeFault says why a model can't be asked what a shape asks.
func (r *resolver) shapeFault(m engine.Model, name string, s plan.Shape) error {
	asked, err := r.questions(s)
	if err == nil {
		err = r.wordsFault(m, asked)
	}
	if err == nil {
		err = r.lengthFault(m, name, asked)
	}
	return err
}

// lengthFault refuses what has no room in the context, for engines of which it is known how they count.
func (r *resolver) lengthFault(m engine.Model, name string, asked []question) error {
	if m.Format != "gguf" || m.Context == 0 {
		return nil
	}
	if k, _, ok := kindOf(name); !ok || k.gguf == nil {
		return nil
	}
	for _, q := range asked {
		in := q.in
		if in == 0 {
			in = r.count(m, q.prompt, m.Context-q.out)
		}
		if in+q.out > m.Context {
			return fault.New(fault.PromptTooLong, "ask for less, or give the model a larger context",
				"a prompt of %d tokens and %d tokens to generate do not fit in a context of %d", in, q.out, m.Context)
		}
	}
	return nil
}

// count is how many tokens a text has, once; a text that has room however its tokens lie is not looked at: each has a
// byte at least.
func (r *resolver) count(m engine.Model, text string, room int) int {
	if len(text)+1 <= room { // one may be put before it
		return 0
	}
	key := textKey{path: m.Path + "\x00" + text}
	n, ok := r.counts[key]
	if !ok {
		if found := r.maker(m); found.tokens != nil {
			n = len(found.tokens.Prompt(text))
		}
		r.counts[key] = n
	}
	return n
}

// wordsFault refuses prompts that the model's vocabulary can't express: an engine would drop characters silently.
func (r *resolver) wordsFault(m engine.Model, asked []question) error {
	if m.Format != "gguf" || m.Path == "" {
		return nil
	}
	var f *gguf.File
	for _, q := range asked {
		if q.in > 0 || q.prompt == "" {
			continue
		}
		key := textKey{path: m.Path + "\x00" + q.prompt}
		wrong, known := r.expressed[key]
		if !known {
			if f == nil {
				var err error
				if f, err = gguf.Open(m.Path); err != nil {
					return err
				}
				defer f.Close()
			}
			wrong = gguf.PromptFault(f, q.prompt)
			r.expressed[key] = wrong
		}
		if wrong != nil {
			return wrong
		}
	}
	return nil
}

// refusals are the reasons why cells can't run here, each with how many; and what a reader should know of those that
// can.
type refusals struct {
	cells   int64
	refused int64
	engines map[string]*tally // by their names in plans
	order   []string          // of those
	reasons []*reason
	by      map[string]*reason
	notes   []string
	noted   map[string]bool
}

// tally is how many cells an engine has, and how many of them can't run.
type tally struct {
	cells, refused int64
	first          error
}

// reason is why some cells can't run.
type reason struct {
	engines []string
	err     error
	cells   int64
}

func newRefusals() *refusals {
	return &refusals{engines: map[string]*tally{}, by: map[string]*reason{}, noted: map[string]bool{}}
}

// add counts cells of an engine; err is nil where they can run.
func (f *refusals) add(engine string, cells int64, err error) {
	of := f.engines[engine]
	if of == nil {
		of = &tally{}
		f.engines[engine] = of
		f.order = append(f.order, engine)
	}
	of.cells, f.cells = of.cells+cells, f.cells+cells
	if err == nil {
		return
	}
	if of.first == nil {
		of.first = err
	}
	of.refused, f.refused = of.refused+cells, f.refused+cells
	why := f.by[err.Error()]
	if why == nil {
		why = &reason{err: err}
		f.by[err.Error()] = why
		f.reasons = append(f.reasons, why)
	}
	if !slices.Contains(why.engines, engine) {
		why.engines = append(why.engines, engine)
	}
	why.cells += cells
}

func (f *refusals) note(text string) {
	if !f.noted[text] {
		f.noted[text] = true
		f.notes = append(f.notes, text)
	}
}

// err ends a run that is not worth beginning: an engine could run none of its cells, and what would be compared with it
// is not wanted alone. With strict, any cell is enough.
func (f *refusals) err(strict bool) error {
	for _, name := range f.order {
		if of := f.engines[name]; of.refused == of.cells && of.cells > 0 {
			return of.first
		}
	}
	if strict && len(f.reasons) > 0 {
		return f.reasons[0].err
	}
	return nil
}

// mostReasons is what a screen has room for.
const mostReasons = 20

// lines say what won't run, a line a reason.
func (f *refusals) lines() []string {
	var out []string
	for i, why := range f.reasons {
		if i == mostReasons {
			out = append(out, fmt.Sprintf("… and for %d more reasons: run --dry-run shows each cell", len(f.reasons)-i))
			break
		}
		of := int64(0)
		for _, engine := range why.engines {
			of += f.engines[engine].cells
		}
		out = append(out, fmt.Sprintf("%s: %d of %s can't run here: %s", strings.Join(why.engines, ", "), why.cells,
			plural(int(of), "cell"),
			fault.OneLine(why.err.Error())))
	}
	return append(out, f.notes...)
}

// preflight looks at every setup, and finds or fetches what it needs, before anything is launched.
func (r *resolver) preflight(ctx context.Context, p plan.Plan) (*refusals, error) {
	out := newRefusals()
	for s := range p.Setups() {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		r.look(ctx, s, out)
	}
	return out, nil
}

// look counts what can't run of a setup.
func (r *resolver) look(ctx context.Context, s plan.Setup, out *refusals) {
	names := s.Plan.Engines
	unheeded(s.Plan, out)
	set, m, err := r.settleOnce(ctx, &s)
	if err == nil {
		err = r.write(&s, m)
	}
	for i, name := range names {
		of := cmp.Or(unserved(s.Plan, name), err)
		if of == nil {
			of = r.engineFaultOnce(ctx, s, set, m, i)
		}
		for _, shape := range s.Shapes {
			if !shape.Asks(name) {
				continue
			}
			why := of
			if why == nil {
				why = r.shapeFault(m, name, shape)
			}
			out.add(name, 1, why)
			if why == nil {
				queues(out, set.engines[i], shape)
			}
		}
	}
}

// unheeded notes what a plan says that makes no difference.
func unheeded(p plan.Plan, out *refusals) {
	for _, line := range p.Unheeded() {
		out.note(line)
	}
}

// queues notes that an engine can't do at once what is asked of it at once.
func queues(out *refusals, e engine.Engine, s plan.Shape) {
	if s.Traffic == nil {
		return
	}
	most := e.Caps().Requests
	wants := s.Traffic.Concurrency
	if s.Traffic.Loop == record.OpenLoop && wants == 0 {
		wants = s.Traffic.Requests
	}
	if wants > most {
		out.note(fmt.Sprintf("%s does %d at a time: of more requests than that, some wait for others, and what they wait is in their times", e.Name(), most))
	}
}
