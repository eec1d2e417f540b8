package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"llmparity/internal/bench/score"
	"llmparity/internal/bench/traffic"
	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/pagecache"
	"llmparity/internal/host/sample"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
)

const idleFor = 300 * time.Millisecond

// attempt is a repetition or a warm-up: a launch from Open to Close, or further requests in the session of an earlier
// attempt.
type attempt struct {
	*runner
	setup    *current
	cell     *series
	turn     turn
	next     []turn // turns after this one
	rec      *record.Recording
	say      func(Event)
	live     *live             // session left open by an earlier attempt, or nil
	keep     bool              // the next attempt continues in the session
	output   *score.Output     // what it generated in the measure phase
	measured []*record.Request // answered requests
	figure   float64           // the figure that --until-ci waits for
	stop     *record.Stop      // if that ends the cell's repetitions; else nil
	begun    time.Time
	needs    time.Duration // the time of the launch at the speed of its last tokens; 0: unknown
}

// run carries the attempt out and commits it to the record, whatever happens. It returns the session for the next
// repetition, or nil.
func (a *attempt) run(parent context.Context) (*live, error) {
	ctx, cancel := a.limited(parent)
	defer cancel()
	a.begun = time.Now()
	opens := a.live == nil
	if opens {
		of := ctx
		if a.turn.session() != nil {
			of = parent // it may outlive the attempt
		}
		a.memory.Store(0)
		r := &relay{memory: &a.memory}
		a.live = &live{relay: r, sampler: sample.New(of, sink{r}), opener: a.rec.ID(), of: a.turn.session()}
	}
	l, kept := a.live, false
	defer func() {
		if !kept {
			_ = l.close() // also on a panic: end what we started
		}
	}()
	cpu, before, stolen := machine.SelfCPU(), l.sampler.Cost(), machine.Stolen()
	l.relay.begin(a.rec)
	l.sampler.Resume()
	err := a.phases(ctx, opens)
	if err != nil && ctx.Err() != nil {
		cause := context.Cause(ctx)
		if t, ok := errors.AsType[launchTimeout](cause); ok {
			t.needs = a.needs
			cause = t
		}
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	continues := a.keep && err == nil
	if continues {
		l.sampler.Pause()
	} else {
		l.sampler.Stop()
		err = errors.Join(err, l.close())
	}
	cost := less(l.sampler.Cost(), before)
	l.relay.end()
	cost.SelfCPUNS = int64(machine.SelfCPU() - cpu)
	if now := machine.Stolen(); stolen != nil && now != nil {
		a.rec.Stolen(max(0, *now-*stolen))
	}
	status, class := outcome(parent, err)
	a.rec.End(status, class, err, cost)
	a.say(Event{Kind: Ended, Text: string(status), Err: err})
	if !continues {
		return nil, err
	}
	kept = true
	return l, nil
}

// limited returns a context that ends with the attempt's time: that of a launch, or what is left of the cell's.
func (a *attempt) limited(parent context.Context) (context.Context, context.CancelFunc) {
	limit := time.Duration(a.setup.Plan.Timeout)
	if of := time.Duration(a.setup.Plan.CellTimeout); of > 0 && of-a.cell.spent < limit {
		over := fmt.Errorf("cell exceeded its time limit of %s: %w", of, context.DeadlineExceeded)
		return context.WithTimeoutCause(parent, of-a.cell.spent, over)
	}
	return context.WithTimeoutCause(parent, limit, launchTimeout{limit: limit})
}

// launchTimeout is the cause of an attempt that exceeded the time limit of a launch. It is no fault.Error: that would
// end the cell, and the next launch may be faster.
type launchTimeout struct{ limit, needs time.Duration }

func (t launchTimeout) Error() string {
	if t.needs > t.limit {
		return fmt.Sprintf("launch exceeded its time limit of %s; start a new run with --timeout %s, enough at the speed of this launch",
			t.limit, words.Timeout(t.needs*5/4))
	}
	return fmt.Sprintf("launch exceeded its time limit of %s; set a higher --timeout in a new run, or repeat the failed "+
		"launch with --resume DIR --retry-failed", t.limit)
}

func (launchTimeout) Unwrap() error { return context.DeadlineExceeded }

func outcome(parent context.Context, err error) (record.Status, record.Class) {
	var over *runTimeout
	switch {
	case err == nil:
		return record.OK, ""
	case errors.As(context.Cause(parent), &over):
		return record.Interrupted, record.Timeout
	case parent.Err() != nil:
		return record.Interrupted, record.Cancelled
	case refuses(err):
		return record.Interrupted, record.SetUp
	}
	class := engine.ClassOf(err)
	if _, ok := errors.AsType[*fault.Error](err); ok && class == record.Other {
		class = record.SetUp
	}
	return record.Failed, class
}

// phases runs the phases of the attempt.
func (a *attempt) phases(ctx context.Context, opens bool) error {
	if opens {
		if err := a.open(ctx); err != nil {
			return err
		}
	} else {
		a.markProfiled()
		a.live.sampler.Edge("") // readings between attempts belong to neither
	}
	if err := a.phase(ctx, record.Measure, func() error { return a.measure(ctx) }); err != nil {
		return err
	}
	a.look()
	if a.keep = continues(a.turn, a.next, a.stop != nil); a.keep && a.cell.Shared {
		return nil
	}
	if err := a.phase(ctx, record.Idle, func() error { return pause(ctx, idleFor) }); err != nil || a.keep {
		return err
	}
	a.cell.ran = true
	if a.turn.warmup {
		if usable, err := a.checkScores(ctx); err != nil || !usable {
			return err
		}
	}
	return a.phase(ctx, record.Unload, func() error { return a.live.session.Unload(ctx) })
}

// look decides for --until-ci whether the cell needs more repetitions after this one.
func (a *attempt) look() {
	if a.cell.enough == nil || a.turn.warmup {
		return
	}
	a.figure = a.cell.enough.Of(a.measured)
	a.stop = a.cell.enough.Decide(a.figure, a.turn.repetition)
}

// open runs the phases up to a loaded and warm model.
func (a *attempt) open(ctx context.Context) (err error) {
	e, l := a.cell.engine, a.live
	a.fromDisk(ctx)
	model := a.setup.Of(e)
	model.Context = a.setup.Plan.Context
	l.relay.model = model
	if l.session, err = e.Open(ctx, probe{l.relay, l.sampler, a.gpus}); err == nil {
		err = a.asked()
	}
	if err != nil {
		return err
	}
	for _, src := range a.gpus.Sources() {
		l.sampler.Attach(src)
	}
	a.markProfiled()
	if e.Caps().Resident {
		l.sampler.Edge("")
		if err := a.phase(ctx, record.Baseline, func() error { return a.settle(ctx) }); err != nil {
			return err
		}
	}
	err = a.phase(ctx, record.Load, func() error { return l.session.Load(ctx, model) })
	if pids := l.relay.pids(); len(pids) > 0 {
		if words := machine.Beside(append(pids, child.Tagged(os.Getpid())...), model.Files()); words != "" {
			l.relay.Warn(record.Warnf(record.ProgramShared, "%s: PSS splits a file's memory between all programs "+
				"that use it, so the engine's peak reads low", words))
		}
	}
	l.relay.serve()
	if err != nil {
		return err
	}
	if info, reported := l.relay.engine(); reported {
		if err := a.past.sameEngine(a.runner, a.setup, a.cell.Engine, info); err != nil {
			return err
		}
	}
	return a.phase(ctx, record.Warmup, func() error {
		r := engine.Request{Prompt: a.cell.Prompt, MaxTokens: a.cell.MaxTokens}
		if a.cell.Traffic != nil {
			s := traffic.New(*a.cell.Traffic)
			first := s.Requests()[0]
			// an index of its own: the server must not have the prompt of the first measured request in its cache
			first.Index = a.cell.Traffic.Requests
			r, _ = a.ask(first)
		}
		return a.generate(ctx, record.Warmup, r.Prompt, min(a.setup.Plan.Warmup.Tokens, r.MaxTokens))
	})
}

// asked judges the device that the engine reports. It is called after each phase, because some engines know their
// device only once they have loaded or generated.
func (a *attempt) asked() error {
	d, fresh := a.live.relay.device()
	if !fresh {
		return nil
	}
	w, err := engine.Asked(d, a.setup.Plan.AllowFallback)
	if w != nil {
		a.live.relay.Warn(*w)
	}
	return err
}

// measure sends the requests to measure.
func (a *attempt) measure(ctx context.Context) error {
	if a.cell.Traffic != nil {
		return a.drive(ctx)
	}
	return a.generate(ctx, record.Measure, a.cell.Prompt, a.cell.MaxTokens)
}

// phase runs one phase. The reading at its end lies outside the phase if its duration is a figure, and inside if the
// phase only waits for that reading.
func (a *attempt) phase(ctx context.Context, p record.Phase, do func() error) error {
	a.say(Event{Kind: Entered, Phase: p})
	defer a.profile(ctx, p)()
	a.live.sampler.Dense(p != record.Warmup && p != record.Measure)
	begin := time.Now()
	err := do()
	waits := p == record.Baseline || p == record.Idle
	if waits {
		a.live.sampler.Edge(p)
	}
	a.rec.Phase(p, begin, time.Now())
	if !waits {
		a.live.sampler.Edge(p)
	}
	if err == nil {
		err = a.asked()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	return nil
}

func (a *attempt) generate(ctx context.Context, p record.Phase, prompt string, n int) error {
	tokens := make([]record.Token, 0, n)
	r := engine.Request{Prompt: prompt, MaxTokens: n, Temperature: a.cell.Temperature,
		IDs: a.setup.IDs[prompt], IgnoreEOS: a.cell.engine.Caps().IgnoreEOS}
	known, asked := a.known(prompt), a.cell.InputTokens
	if p == record.Warmup && a.cell.PromptCache == record.CacheOn {
		r.Prompt, r.IDs, known, asked = turned(r.Prompt), nil, nil, 0
	}
	mark := func() {
		if p == record.Measure {
			a.live.sampler.Mark(record.MethodCPUTime)
		}
	}
	mark()
	begin, first := time.Now(), time.Duration(0)
	usage, err := a.live.session.Generate(ctx, r, func(t record.Token) {
		tokens = append(tokens, t)
		if took := time.Since(begin); first == 0 {
			first = took
			mark() // it takes some 20 µs a process, while the engine computes the next token
		} else {
			each := (took - first) / time.Duration(len(tokens)-1)
			a.needs = time.Since(a.begun) + each*time.Duration(n-len(tokens))
			if p == record.Warmup {
				a.needs += first + each*time.Duration(a.cell.MaxTokens)
			}
		}
		a.say(Event{Kind: Generated, Phase: p, Token: len(tokens), Tokens: n})
	})
	returned := time.Now()
	mark()
	if err != nil && len(tokens) == 0 {
		return err
	}
	q := a.rec.Request(record.Slot{}, time.Time{}, p, usage, tokens, returned)
	if err != nil {
		return err
	}
	if p == record.Warmup {
		asked = 0 // only measured lengths matter
	}
	a.lengths(asked, q, n)
	a.keepOutput(q)
	return gibberish(tokens, known)
}

// known returns the model's answer to a prompt, if it is certain: by rounding or by sampling it can be another.
func (a *attempt) known(prompt string) []int {
	if a.cell.engine.Caps().Rounds || a.cell.Temperature > 0 {
		return nil
	}
	return a.setup.Expected[prompt]
}

// lengths warns if a request has other lengths than requested.
func (a *attempt) lengths(asked int, q *record.Request, n int) {
	if came := q.Tokened(); came != n {
		a.rec.Warn(record.Warnf("length", "requested %d tokens, received %d", n, came))
	}
	if had := q.Prompted(); asked > 0 && had > 0 && had != asked {
		a.rec.Warn(record.Warnf("input-length", "requested a prompt of %d tokens; the engine counts %d", asked, had))
	}
}

// turned reorders the words of a prompt, so that the warm-up does not fill the prompt cache for the measured request.
func turned(prompt string) string {
	first, rest, several := strings.Cut(strings.TrimSpace(prompt), " ")
	if !several {
		return "So " + prompt
	}
	return rest + " " + first
}

// gibberish returns an error if the generated tokens are not those that the model is known to generate.
func gibberish(tokens []record.Token, expected []int) error {
	for i, id := range expected {
		if i < len(tokens) && tokens[i].ID != record.NoID && tokens[i].ID != id {
			return engine.Fail(record.BadOutput,
				"token %d of %d is %d instead of %d: the engine does not compute this model correctly, or it makes up token ids",
				i+1, len(tokens), tokens[i].ID, id)
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// fromDisk evicts the model's files from the page cache, or reads them into it, as the cell requests. It warns if that
// fails.
func (a *attempt) fromDisk(ctx context.Context) {
	start := a.cell.Start
	if start == "" {
		return
	}
	paths := a.setup.Of(a.cell.engine).Files()
	if reader, ok := a.cell.engine.(engine.Reader); ok {
		paths = reader.Files(a.setup.Of(a.cell.engine))
	}
	files, err := pagecache.Files(paths)
	for ; err == nil && len(files) > 0; files = files[1:] {
		if start == record.ColdStart {
			err = pagecache.Evict(files[0])
		} else {
			err = pagecache.Load(ctx, files[0])
		}
	}
	if err != nil {
		a.rec.Warn(record.Warnf("not-"+start, "no %s start: %v", start, err))
	}
}
