// Package deepen profiles one generation of an engine: its operators where it times them itself, and the stacks of its
// processes where perf may sample them. Profiles cost time, so nothing of it is measured or recorded as a run.
package deepen

import (
	"context"
	"errors"
	"fmt"
	"time"

	"llmparity/internal/bench/once"
	"llmparity/internal/depth"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Found is what the profile of an engine has.
type Found struct {
	depth.Profile
	Stacks *depth.Stacks // below the names of phases; nil: none
}

// Generation profiles a session's answer to a request. It also generates without a profile: twice before, to warm up,
// and once after, to know what a profile costs.
func Generation(ctx context.Context, s *once.Session, r engine.Request, prefix string) (Found, error) {
	var f Found
	for range 2 {
		wall, err := plain(ctx, s, r)
		if err != nil {
			return f, err
		}
		f.Wall = wall
	}
	deep, ok := s.Session.(engine.DeepProfiler)
	err := engine.ErrShallow
	if ok {
		err = f.operators(ctx, s, deep, r, prefix)
	}
	if err != nil && !errors.Is(err, engine.ErrShallow) {
		return f, err
	}
	if ok && err != nil && len(f.Notes) == 0 {
		f.Notes = append(f.Notes, "no operators: "+err.Error())
	}
	if _, ok := s.Session.(engine.Profiler); ok {
		err = f.scripts(ctx, s, r, prefix)
	} else {
		err = f.native(ctx, s, r)
	}
	if err != nil {
		if ctx.Err() != nil {
			return f, err
		}
		works := map[bool]string{false: "without them, nothing is known of this engine",
			true: "rows do not need them"}[len(f.Rows) > 0]
		f.Notes = append(f.Notes, "no stacks: "+err.Error()+"; "+works)
	}
	return f, nil
}

// operators times the engine's operators, and says what that cost: against generations of the same program without
// timing, or one of the engine before it and one behind it.
func (f *Found) operators(ctx context.Context, s *once.Session, deep engine.DeepProfiler, r engine.Request,
	prefix string) error {
	before := f.Wall
	p, err := deep.Deep(ctx, r, prefix)
	if err != nil {
		f.Notes = p.Notes // why they are not timed
		return err
	}
	f.Profile = p
	after := p.Plain
	if p.Plain != nil {
		before = p.Plain
	} else if after, err = plain(ctx, s, r); err != nil {
		return err
	}
	f.Notes = append(f.Notes, cost(p, before[record.Decode], after[record.Decode]))
	return nil
}

// plain generates, and returns how long its phases took.
func plain(ctx context.Context, s *once.Session, r engine.Request) (map[string]time.Duration, error) {
	u, err := s.Generate(ctx, r, func(record.Token) {})
	if err != nil {
		return nil, err
	}
	out := map[string]time.Duration{}
	for _, span := range u.Spans {
		if span.Name == record.Prefill || span.Name == record.Decode {
			out[span.Name] = span.End.Sub(span.Begin)
		}
	}
	return out, nil
}

// cost says what timing added to decode, which took so long before and after it without.
func cost(p depth.Profile, before, after time.Duration) string {
	var calls int64
	for _, r := range p.Rows {
		if r.Phase == record.Decode && r.Role != depth.Wait {
			calls += r.Calls
		}
	}
	with, without := p.Wall[record.Decode], min(before, after)
	if calls == 0 || without <= 0 {
		return "what timing costs is unknown, because decode had no operators"
	}
	each := fmt.Sprintf("%.3g µs for each of %d operators", float64(with-without)/float64(calls)/1e3, calls)
	if with <= max(before, after) {
		each = fmt.Sprintf("what it costs is less than chance, for %d operators", calls)
	}
	return fmt.Sprintf("decode took %.2f times as long as without timing: %s", float64(with)/float64(without), each)
}

// long is how long stacks are sampled, at least: a fast engine generates several times.
const long = 3 * time.Second

// native samples the engine's processes: the functions of Python, if one is, else native ones. Where the engine has no
// operators, rows are samples of native functions.
func (f *Found) native(ctx context.Context, s *once.Session, r engine.Request) error {
	if pid := python(s.Probe); pid > 0 {
		err := f.spy(ctx, s, r, pid)
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil:
			f.Notes = append(f.Notes, "no functions of Python: "+err.Error())
		case len(f.Rows) > 0:
			return nil
		}
	}
	functions := f.Stacks // of Python
	if err := f.sample(ctx, s, r); err != nil && (functions == nil || ctx.Err() != nil) {
		return err
	} else if err != nil {
		f.Notes = append(f.Notes, "no rows: "+err.Error())
	}
	if functions != nil {
		f.Stacks = functions
	}
	return nil
}

// sample generates again while perf samples the engine's processes.
func (f *Found) sample(ctx context.Context, s *once.Session, r engine.Request) error {
	if len(s.Probe.PIDs) == 0 {
		return errors.New("the engine has no process of its own here")
	}
	perf, err := sampling(ctx, s.Probe.PIDs)
	if err != nil {
		return err
	}
	var phases []phase
	var failed error
	for end := monotonic() + long; failed == nil && monotonic() < end; {
		begin := monotonic()
		var first, last time.Duration
		_, failed = s.Generate(ctx, r, func(record.Token) {
			last = monotonic()
			if first == 0 {
				first = last
			}
		})
		phases = append(phases, phase{record.Prefill, begin, first}, phase{record.Decode, first, last})
	}
	all, err := perf.stop(ctx, phases)
	if failed != nil || err != nil {
		return errors.Join(failed, err)
	}
	f.Stacks = merged(all)
	f.Stacks.Generations = len(phases) / 2
	if f.Stacks.Total() == 0 {
		f.Stacks = nil
		return errors.New("perf saw no sample; generate more tokens")
	}
	f.Notes = append(f.Notes, unnamed(f.Stacks)...)
	if len(f.Rows) == 0 {
		f.Wall = map[string]time.Duration{}
		for _, p := range phases {
			f.Wall[p.name] += p.end - p.begin
		}
		for _, name := range []string{record.Prefill, record.Decode} {
			f.Rows = append(f.Rows, all[name].Rows(name)...)
		}
		f.Notes = append(f.Notes, fmt.Sprintf("rows are %d samples of the stacks of all threads in %d generations, because this "+
			"engine does not time its operators here: threads that work at once add up to more than the clock",
			f.Stacks.Total(), len(phases)/2))
	}
	return nil
}
