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

// Generation profiles a session's answer to a request. Before, it generates twice without a profile, to warm up and to
// know what a profile costs.
func Generation(ctx context.Context, s *once.Session, r engine.Request, prefix string) (Found, error) {
	var f Found
	for range 2 {
		wall, err := plain(ctx, s, r)
		if err != nil {
			return f, err
		}
		f.Wall = wall
	}
	usual := f.Wall
	deep, ok := s.Session.(engine.DeepProfiler)
	err := engine.ErrShallow
	if ok {
		var p depth.Profile
		if p, err = deep.Deep(ctx, r, prefix); err == nil {
			if p.Plain != nil {
				usual = p.Plain
			}
			f.Profile = p
			f.Notes = append(f.Notes, cost(p, usual))
		} else {
			f.Notes = p.Notes // why operators are not timed
		}
	}
	if err != nil && !errors.Is(err, engine.ErrShallow) {
		return f, err
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

// cost says what timing added to decode.
func cost(p depth.Profile, usual map[string]time.Duration) string {
	var calls int64
	for _, r := range p.Rows {
		if r.Phase == record.Decode && r.Role != depth.Wait {
			calls += r.Calls
		}
	}
	with, without := p.Wall[record.Decode], usual[record.Decode]
	if calls == 0 || without <= 0 {
		return "what timing costs is unknown, because decode had no operators"
	}
	if with <= without {
		return fmt.Sprintf("decode took %.2f times as long as without timing: what it costs is less than chance",
			float64(with)/float64(without))
	}
	return fmt.Sprintf("decode took %.2f times as long as without timing: %.3g µs for each of %d operators",
		float64(with)/float64(without), float64(with-without)/float64(calls)/1e3, calls)
}

// long is how long stacks are sampled, at least: a fast engine generates several times.
const long = 3 * time.Second

// native samples the engine's processes: the functions of Python, if one is, else native ones. Where the engine has no
// operators, rows are samples of native functions.
func (f *Found) native(ctx context.Context, s *once.Session, r engine.Request) error {
	if pid := pythonOf(s.Probe.PIDs); pid > 0 {
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
	python := f.Stacks
	if err := f.sample(ctx, s, r); err != nil && (python == nil || ctx.Err() != nil) {
		return err
	} else if err != nil {
		f.Notes = append(f.Notes, "no rows: "+err.Error())
	}
	if python != nil {
		f.Stacks = python
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
		f.Notes = append(f.Notes, fmt.Sprintf("rows are %d samples of stacks of %d generations, because this engine does not time "+
			"its operators here", f.Stacks.Total(), len(phases)/2))
	}
	return nil
}
