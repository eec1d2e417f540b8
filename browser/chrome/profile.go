package chrome

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	cdpio "github.com/chromedp/cdproto/io"
	"github.com/chromedp/cdproto/profiler"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"llmparity/internal/engine"
	"llmparity/internal/kit/whole"
)

// File endings by which DevTools recognises profiles.
const (
	snapshotEnding = ".heapsnapshot"
	samplingEnding = ".heapprofile"
	cpuEnding      = ".cpuprofile"
	traceEnding    = ".trace.json"
)

// traced are the categories of a trace: those of DevTools' performance panel and the GPU's.
var traced = []string{"-*", "devtools.timeline", "disabled-by-default-devtools.timeline",
	"disabled-by-default-devtools.timeline.frame",
	"disabled-by-default-devtools.timeline.stack", "disabled-by-default-v8.gc", "v8.execute", "blink.console",
	"blink.user_timing",
	"loading", "toplevel", "gpu", "gpu.dawn"}

// watchedThread is a thread of the page that is profiled. The main thread has no name.
type watchedThread struct {
	name string
	ctx  context.Context
	end  func()
}

// profiling is a set of profiles that are being recorded.
type profiling struct {
	tab     *Tab
	kinds   []engine.Profile
	threads []watchedThread // profiled since the begin
	tracing bool
}

var _ engine.Profiler = (*Tab)(nil)

// Profile profiles the page and its current workers.
func (t *Tab) Profile(ctx context.Context, kinds []engine.Profile) (func(context.Context, string) error, error) {
	running := &profiling{tab: t, kinds: kinds}
	return running.finish, running.begin(ctx)
}

func (p *profiling) wants(k engine.Profile) bool { return slices.Contains(p.kinds, k) }

func (p *profiling) begin(ctx context.Context) error {
	threads, err := p.tab.watchedThreads(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, t := range threads {
		if err := p.beginOn(ctx, t); err != nil {
			t.end()
			errs = append(errs, fmt.Errorf("profiling the page%s: %w", t.name, p.tab.unread(ctx, err)))
			continue
		}
		p.threads = append(p.threads, t)
	}
	if p.wants(engine.Trace) {
		err := p.tab.trace(ctx, tracing.StartParams{TransferMode: tracing.StartTransferModeReturnAsStream,
			StreamFormat: tracing.StreamFormatJSON, TraceConfig: &tracing.TraceConfig{IncludedCategories: traced}})
		p.tracing = err == nil
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// watchedThreads returns the page's main thread and its workers; the caller ends them.
func (t *Tab) watchedThreads(ctx context.Context) ([]watchedThread, error) {
	workers, err := t.Workers(ctx)
	if err != nil {
		return nil, err
	}
	all := []watchedThread{{"", t.Ctx, func() {}}}
	for i, w := range workers {
		one := watchedThread{name: "-worker"}
		if i > 0 {
			one.name += strconv.Itoa(i + 1)
		}
		one.ctx, one.end = t.into(target.ID(w))
		all = append(all, one)
	}
	return all, nil
}

// into returns a context for calls to a worker, until it is ended.
func (t *Tab) into(worker target.ID) (context.Context, context.CancelFunc) {
	return chromedp.NewContext(t.Ctx, chromedp.WithTargetID(worker), chromedp.WithDetachOnCancel())
}

func (p *profiling) beginOn(ctx context.Context, t watchedThread) error {
	both, cancel := engine.Within(t.ctx, ctx)
	defer cancel()
	// The first call to a worker opens its session, which ends with that call's context.
	if err := openTarget(ctx, t.ctx); err != nil {
		return err
	}
	for _, s := range sampled {
		if p.wants(s.kind) {
			if err := chromedp.Do(both, s.begin...); err != nil {
				return err
			}
		}
	}
	return nil
}

// sampled are the profiles that cover a phase, per thread.
var sampled = []struct {
	kind        engine.Profile
	ending, end string // file ending and command that ends it
	begin       []chromedp.Action[chromedp.Void]
}{
	{engine.CPUProfile, cpuEnding, "Profiler.stop", []chromedp.Action[chromedp.Void]{
		command(profiler.Enable, cdp.Empty{}), command(profiler.Start, cdp.Empty{})}},
	{engine.SamplingProfile, samplingEnding, "HeapProfiler.stopSampling", []chromedp.Action[chromedp.Void]{
		command(heapprofiler.Enable, cdp.Empty{}),
		command(heapprofiler.StartSampling, heapprofiler.StartSamplingParams{})}},
}

// openTarget opens the session of a target. A worker that has just ended does not answer.
func openTarget(ctx, target context.Context) error {
	done := make(chan error, 1)
	go func() { done <- chromedp.Do(target) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(threadAnswers):
		return errors.New("no answer")
	}
}

// threadAnswers is how long a thread's current task may take.
const threadAnswers = 30 * time.Second

func (t *Tab) trace(ctx context.Context, how tracing.StartParams) error {
	_, err := ask(ctx, t, "starting a trace", tracing.Start, how)
	return err
}

// finish ends profiles in the opposite order, so that only the snapshot, which comes last, can include the ending of
// another.
func (p *profiling) finish(ctx context.Context, prefix string) error {
	var errs []error
	if p.tracing {
		errs = append(errs, p.endTrace(ctx, prefix+traceEnding))
	}
	for _, t := range p.threads {
		for _, s := range sampled {
			if p.wants(s.kind) {
				errs = append(errs, p.write(ctx, t, s.end, prefix+t.name+s.ending))
			}
		}
	}
	for _, t := range p.threads {
		if p.wants(engine.HeapSnapshot) {
			if err := snapshot(ctx, t, prefix+t.name+snapshotEnding); err != nil {
				errs = append(errs, fmt.Errorf("heap snapshot of the page%s: %w", t.name, p.tab.unread(ctx, err)))
			}
		}
		t.end()
	}
	return errors.Join(errs...)
}

// write ends a thread's profile and writes it as the browser returned it.
func (p *profiling) write(ctx context.Context, t watchedThread, method, path string) error {
	both, cancel := engine.Within(t.ctx, ctx)
	defer cancel()
	limit, cancel := context.WithTimeout(both, threadAnswers)
	defer cancel()
	type answer struct {
		Profile json.RawMessage `json:"profile"`
	}
	a, err := chromedp.Call(limit, cdp.Command[cdp.Empty, answer]{Method: method}, cdp.Empty{})
	if err != nil {
		return fmt.Errorf("%s in the page%s: %w", method, t.name, p.tab.unread(ctx, err))
	}
	return whole.Write(path, func(w io.Writer) error {
		_, err := w.Write(a.Profile)
		return err
	})
}

// snapshot writes pieces as they arrive, on the goroutine that reads them, so that the browser sends no faster than
// they can be written, and memory holds only one. The answer follows the last piece.
func snapshot(ctx context.Context, t watchedThread, path string) error {
	return whole.Write(path, func(w io.Writer) error {
		both, cancel := engine.Within(t.ctx, ctx)
		defer cancel()
		var writing error
		err := chromedp.Listen(both, func(ev any) {
			if piece, ok := ev.(*heapprofiler.EventAddHeapSnapshotChunk); ok && writing == nil {
				_, writing = io.WriteString(w, piece.Chunk)
			}
		})
		if err != nil {
			return err
		}
		_, err = chromedp.Call(both, heapprofiler.TakeHeapSnapshot, heapprofiler.TakeHeapSnapshotParams{})
		return errors.Join(err, writing)
	})
}

// endTrace ends the trace and copies it piece by piece.
func (p *profiling) endTrace(ctx context.Context, path string) error {
	both, cancel := p.tab.within(ctx)
	defer cancel()
	complete := chromedp.Events(both, tracing.TracingComplete)
	if _, err := ask(ctx, p.tab, "ending the trace", tracing.End, cdp.Empty{}); err != nil {
		return err
	}
	for done, err := range complete {
		if err != nil {
			return fmt.Errorf("ending the trace: %w", p.tab.errorOf(ctx, err))
		}
		if err := whole.Write(path, func(w io.Writer) error { return copyStream(both, w, done.Stream) }); err != nil {
			return fmt.Errorf("reading the trace: %w", p.tab.errorOf(ctx, err))
		}
		if done.DataLossOccurred {
			return errors.New("the trace is incomplete: the browser lost a part of it")
		}
		break
	}
	return nil
}

func copyStream(ctx context.Context, w io.Writer, stream cdpio.StreamHandle) error {
	for {
		piece, err := chromedp.Call(ctx, cdpio.Read, cdpio.ReadParams{Handle: stream, Size: 1 << 20})
		if err != nil {
			return err
		}
		if _, err := w.Write(piece.Data); err != nil {
			return err
		}
		if piece.EOF {
			_, err := chromedp.Call(ctx, cdpio.Close, cdpio.CloseParams{Handle: stream})
			return err
		}
	}
}
