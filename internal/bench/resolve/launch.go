package resolve

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
	"llmparity/internal/host/container"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// set is the engines of setups with the same settings. What they find out about the machine is found out once.
type set struct {
	plan    plan.Plan
	engines []Engine
}

// launch is what setups with the same start settings share.
type launch struct {
	set   *set
	model models.Model
	err   error // why none of the cells can run
	// packed is why a package has no GGUF for the engines that need one.
	packed error
	lacks  map[string]error // why engines have no form of the model
}

// launch returns the engines and the model of a setup.
func (r *Resolver) launch(ctx context.Context, p plan.Plan) *launch {
	own := [7]any{p.DType, p.KVDType, fmt.Sprint(p.Weights, p.Storage, p.Stored, p.Versions, p.Sections),
		strings.Join(p.Engines, "\x00"), p.Threads, p.Slots, p.Deployment}
	l, _ := once(r.cache, [4]any{own, p.Model, p.Context, fmt.Sprint(p.Forms)}, func() (*launch, error) {
		l := &launch{}
		l.set, l.err = once(r.cache, own, func() (in *set, err error) {
			in = &set{plan: p}
			in.engines, err = r.Engines(ctx, p)
			for _, e := range in.engines {
				r.fetch(e.Fetch)
			}
			return in, err
		})
		switch {
		case l.err != nil:
		case p.Forms != nil:
			l.model, l.err = r.forms(ctx, l, p)
			return l, nil
		default:
			l.model, l.err = r.model(ctx, p)
		}
		filed := func(e Engine) bool { return !e.Caps().Served }
		if l.err != nil && l.set != nil && models.OfHub(p.Model) && !slices.ContainsFunc(l.set.engines, filed) {
			p.Model = models.Served + p.Model // servers name models as Hugging Face does
			l.model, l.err = r.model(ctx, p)
		}
		r.unpack(ctx, l)
		return l, nil
	})
	return l
}

// forms finds the form of a model for each engine. The first GGUF stands for the model, else the first package, else
// the first form: its tokenizer makes the prompts, which all engines get as the same text. The smallest context counts.
func (r *Resolver) forms(ctx context.Context, l *launch, p plan.Plan) (m models.Model, err error) {
	l.lacks = map[string]error{}
	all, best, window := map[string]models.Model{}, 0, 0
	finder := *r // shares the cache
	for _, e := range l.set.engines {
		of, name := p, p.Forms[e.Planned]
		if namer, ok := e.Engine.(engine.Namer); ok && !models.Spelled(name) {
			of.Model = namer.Named(name)
		} else {
			of.Model = name
		}
		if finder.Models.Mirror = r.Models.Mirror; !models.Listed(of.Model) {
			finder.Models.Mirror = "" // it is for the catalogue's
		}
		form, why := models.Model{}, error(nil)
		if name == "" {
			why = fault.New(fault.NotSupported, "add one, or leave the engine out", "model %s: no form for %s", p.Model,
				e.Planned)
		} else if form, why = finder.model(ctx, of); why == nil && e.unpacks(form) && form.Path != "" {
			form, why = r.unpacked(ctx, form)
		}
		if why != nil {
			l.lacks[e.Planned], err = why, cmp.Or(err, why)
			continue
		}
		all[e.Planned] = form
		if n := form.Context; n > 0 && (window == 0 || n < window) {
			window = n
		}
		if rank := described(form); rank > best {
			m, best = form, rank
		}
	}
	r.fetches = finder.fetches
	if err := r.compare(ctx, l.set, all); err != nil {
		return m, err
	}
	if m.Name, m.Context, m.Forms = p.Model, window, all; len(all) > 0 {
		err = nil
	}
	return m, err
}

// compare notes which forms have the same weights, in the order of the engines.
func (r *Resolver) compare(ctx context.Context, in *set, all map[string]models.Model) error {
	if r.Dry {
		return nil
	}
	var forms []*models.Model
	for _, e := range in.engines {
		if m, ok := all[e.Planned]; ok {
			forms = append(forms, &m)
		}
	}
	err := r.Models.Compare(ctx, forms)
	for _, e := range in.engines {
		if _, ok := all[e.Planned]; ok {
			all[e.Planned], forms = *forms[0], forms[1:]
		}
	}
	return err
}

// unpack converts a package once, if an engine needs its GGUF.
func (r *Resolver) unpack(ctx context.Context, l *launch) {
	m := l.model
	needed := func(e Engine) bool { return e.unpacks(m) }
	if l.err != nil || m.Path == "" || !slices.ContainsFunc(l.set.engines, needed) {
		return
	}
	of, err := r.unpacked(ctx, m)
	if l.packed = err; err == nil {
		l.model.GGUF, l.model.Weights = of.GGUF, of.Weights
	}
}

func (r *Resolver) unpacked(ctx context.Context, m models.Model) (models.Model, error) {
	return once(r.cache, [2]string{"unpacked", m.Path}, func() (models.Model, error) {
		return r.Models.Unpacked(ctx, m, r.Dry)
	})
}

// described ranks models by how much is known of them: a GGUF's file says most, a server least.
func described(m models.Model) int {
	switch {
	case m.Reference():
		return 3
	case m.Format == record.Served:
		return 1
	}
	return 2
}

// model finds a setup's model.
func (r *Resolver) model(ctx context.Context, p plan.Plan) (models.Model, error) {
	name, err := r.located(ctx, p)
	if err != nil {
		return models.Model{}, err
	}
	m, err := r.named(ctx, name, max(p.Context, 0))
	if m.Name == name {
		m.Name = p.Model
	}
	return m, err
}

// located returns the plan's model, or the path on this machine of one that the plan's container has.
func (r *Resolver) located(ctx context.Context, p plan.Plan) (string, error) {
	if p.ContainerName == "" || !filepath.IsAbs(p.Model) {
		return p.Model, nil
	}
	if _, err := os.Lstat(p.Model); err == nil {
		return p.Model, nil
	}
	c, err := once(r.cache, [2]string{"container", p.ContainerName}, func() (*container.Container, error) {
		return container.Wanted(ctx, p.ContainerName)
	})
	if err != nil {
		return "", err
	}
	path := c.Outside(p.Model)
	if _, err := os.Stat(path); err != nil {
		return "", fault.New(fault.BadModel, "name a file or folder of either",
			"model %s is not on this machine, and not in container %s", p.Model, c.Name)
	}
	return path, nil
}

// named finds a model once, and fetches it if needed. The result is the same for every context that the model supports.
func (r *Resolver) named(ctx context.Context, name string, window int) (models.Model, error) {
	m, err := r.find(ctx, name, 0)
	switch {
	case window == 0 || m.Format == record.Served && err == nil:
		m.Context = cmp.Or(m.Context, window)
		return m, err
	case err == nil && (window <= m.MaxContext || m.MaxContext == 0 && m.Reference()):
		m.Context = window
		return m, nil
	}
	return r.find(ctx, name, window) // its error explains what is wrong with that context
}

func (r *Resolver) find(ctx context.Context, name string, window int) (models.Model, error) {
	return once(r.cache, [3]any{"model", name, window}, func() (models.Model, error) {
		if !r.Dry {
			return r.Models.Find(ctx, name, window)
		}
		m, fetch, err := r.Models.Look(ctx, name, window)
		r.fetch(fetch)
		return m, err
	})
}

// fetch notes once what would be fetched.
func (r *Resolver) fetch(f *models.Fetch) {
	if f != nil && !slices.ContainsFunc(r.fetches, func(o models.Fetch) bool { return o.What == f.What }) {
		r.fetches = append(r.fetches, *f)
	}
}

// MaxUnasked is the longest default context: WebLLM reserves memory for all of it at load.
const MaxUnasked = 4096

// choose completes a setup's plan.
func (r *Resolver) choose(s *Chosen) error {
	if s.launch.err != nil {
		return s.launch.err
	}
	s.Model = s.launch.model
	if err := chooseContext(&s.Plan, &s.Model); err != nil {
		return err
	}
	r.Complete(&s.Plan, s.Model)
	return nil
}

// chooseContext sets the context in the plan and the model.
func chooseContext(p *plan.Plan, m *models.Model) error {
	if m.Format == record.Served {
		p.Context = m.Context // 0: the server's own
		return nil
	}
	if m.Context < 2 {
		return fault.New(fault.Usage, "give --context N", "model %s: context length unknown", m.Name)
	}
	if p.Context == plan.Unsaid && m.Context > MaxUnasked {
		p.ContextNote = fmt.Sprintf("of the model's %d; --context 0 uses all", m.Context)
		m.Context = MaxUnasked
	}
	p.Context = m.Context
	return nil
}

// accepts asks once whether an engine runs a model. Engines ignore the length of the context.
func (r *Resolver) accepts(ctx context.Context, l *launch, at int, m models.Model) engine.Verdict {
	in := l.set
	e := in.engines[at]
	m = e.own(m)
	key := [6]any{in, at, m.Name, m.Path, m.Format, m.Context > 0}
	v, _ := once(r.cache, key, func() (engine.Verdict, error) {
		of := e.form(m)
		switch {
		case e.unpacks(m) && m.Path == "":
			return engine.Undecided("whether the package %s can become a GGUF is known after the download", m.Name), nil
		case e.unpacks(m) && l.packed != nil:
			return engine.Refuse(l.packed), nil
		case of.From != "" && of.Path == "": // not converted yet; whether the engine is there, the tiny model tells
			if of.Path, l.packed = models.Path(models.Tiny); l.packed != nil {
				return engine.Refuse(l.packed), nil
			}
			return e.accepts(ctx, of), nil
		}
		v := e.accepts(ctx, of)
		if c, ok := e.Engine.(engine.Confirmer); ok && v.Answer == engine.Unknown && !r.Dry {
			v = engine.Refuse(c.Confirm(ctx, of, e.Say))
		}
		return v, nil
	})
	return v
}

// open makes a set's engines the current ones and closes the others, which may keep a server running.
func (r *Resolver) open(ctx context.Context, next *set) (err error) {
	if r.opened != nil && r.opened != next {
		for _, e := range r.opened.engines {
			if c, ok := e.Engine.(io.Closer); ok {
				if err := c.Close(); err != nil {
					fmt.Fprintf(r.Warnings, "warning: %v\n", err)
				}
			}
		}
		r.opened.engines = nil
	}
	if r.opened = next; next != nil && next.engines == nil {
		next.engines, err = r.Engines(ctx, next.plan)
	}
	return err
}

// Close closes the current engines.
func (r *Resolver) Close() { _ = r.open(context.Background(), nil) }
