package llamacpp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
)

// oneShotSession is one launch of the one-shot program: as many processes as generations, and one before them that shows what the model
// takes.
type oneShotSession struct {
	config Config
	binary identity
	probe  engine.Probe

	turn    engine.Turn
	closing context.Context // ends with Close
	close   context.CancelFunc

	mu     sync.Mutex     // guards what Close may meet in use
	run    *completionRun // the last one
	model  *engine.Model
	detach func() // the source of what the log says

	context int
	// patience is how long a process is kept at its end for the sampler to read it.
	patience time.Duration
	held     atomic.Int64 // tokens in the KV cache of the last process at its end; -1: not known
	piece    func(string) // sees the text as it comes; nil: nobody does
}

// Load runs the program for one token: it shows whether it can load the model, how long that takes, and which buffers it makes.
// Every generation loads the model again.
func (s *oneShotSession) Load(ctx context.Context, m engine.Model) error {
	if s.closing.Err() != nil {
		return errClosed
	}
	if s.loaded() != nil {
		return errors.New("a model is loaded already; unload it first")
	}
	if err := m.Same(); err != nil {
		return err
	}
	run, err := s.trial(ctx, m)
	if err != nil {
		return err
	}
	if err := m.Same(); err != nil {
		return err
	}
	s.probe.Span(record.Span{Name: "model", Begin: run.started, End: run.begun,
		How: "a process of its own that generates one token: started, to its line that says that it begins to generate"})
	return s.describe(m, run)
}

// trial runs the program for one token.
func (s *oneShotSession) trial(ctx context.Context, m engine.Model) (*completionRun, error) {
	run, err := s.start(ctx, m, engine.Request{Prompt: " ", MaxTokens: 1})
	if err != nil {
		return nil, err
	}
	p := &pieces{mark: run.mark, give: func(chunk) {}}
	run.wait(p)
	if err := s.over(ctx); err != nil {
		return nil, err
	}
	switch {
	case run.full.Load():
		return nil, tooLong("a prompt and a token", m.Context)
	case !p.over || run.begun.IsZero():
		return nil, s.why(ctx, run, m)
	}
	return run, nil
}

// over tells that whoever asked does not wait any more.
func (s *oneShotSession) over(ctx context.Context) error {
	switch {
	case s.closing.Err() != nil:
		return errClosed
	case ctx.Err() != nil:
		return fmt.Errorf("running %s: %w", s.name(), ctx.Err())
	}
	return nil
}

// describe tells what runs, and keeps what the log said for the sampler.
func (s *oneShotSession) describe(m engine.Model, run *completionRun) error {
	said := run.read.load()
	if s.config.GPULayers > 0 {
		d, err := s.config.device(said)
		if err != nil {
			return err
		}
		s.probe.Event(record.Event{At: time.Now(), Device: &d})
	}
	s.context = said.context
	if m.Context > 0 {
		s.context = min(m.Context, max(s.context, 1))
	}
	policy := s.config.policy(m, said)
	policy["context"] = itoa(said.context)
	policy["ignore_eos"] = "never chooses a token that ends the text: where it would have, its text may part from other engines'"
	policy["process"] = "one a generation, which loads the model: that is in the time to the first token"
	s.probe.Event(record.Event{At: time.Now(), Engine: &record.EngineInfo{Name: OneShotName, Version: s.binary.version, Path: s.binary.path,
		SHA256: s.binary.sha256, Args: run.args, Policy: policy}})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() != nil {
		return errClosed
	}
	s.model = &m
	s.held.Store(0)
	if len(said.buffers) == 0 {
		s.probe.Warn(record.Warning{Code: "sizes-untold", Text: s.name() + "'s log does not tell the sizes of its buffers in words that are known"})
		return nil
	}
	s.detach = s.probe.Attach(&logged{role: "completion", said: func() load { return said }, held: &s.held})
	return nil
}

func (s *oneShotSession) loaded() *engine.Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model
}

// Unload forgets the model: no process holds it.
func (s *oneShotSession) Unload(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model = nil
	if s.detach != nil {
		s.detach()
		s.detach = nil
	}
	return nil
}

// Close ends the process that there may be.
func (s *oneShotSession) Close() error {
	s.close()
	s.mu.Lock()
	run := s.run
	s.mu.Unlock()
	if run != nil {
		<-run.proc.Done()
		run.release()
	}
	return s.Unload(context.Background())
}

// Generate starts a process and waits for its end.
func (s *oneShotSession) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	free, err := s.turn.Take()
	if err != nil {
		return record.Usage{}, err
	}
	defer free()
	m := s.loaded()
	switch {
	case s.closing.Err() != nil:
		return record.Usage{}, errClosed
	case m == nil:
		return record.Usage{}, errors.New("no model is loaded; load one first")
	case r.MaxTokens < 1:
		return record.Usage{}, engine.Fail(record.SetUp, "a generation of %d tokens was asked for", r.MaxTokens)
	case r.Prompt == "":
		return record.Usage{}, engine.Fail(record.SetUp, "the prompt has no tokens")
	}
	s.held.Store(-1)
	run, err := s.start(ctx, *m, r)
	if err != nil {
		return record.Usage{}, err
	}
	var text strings.Builder
	var first, last time.Time
	n := 0
	p := &pieces{mark: run.mark}
	p.give = func(c chunk) {
		if ctx.Err() != nil || run.full.Load() {
			return
		}
		if n == 0 {
			first = c.at
		}
		last = c.at
		text.Write(c.text)
		if s.piece != nil {
			s.piece(string(c.text))
		}
		token(record.Token{Index: n, ID: record.NoID, At: c.at})
		n++
	}
	run.wait(p)
	u := record.Usage{Sent: run.started, PromptTokens: run.prompted, Reported: run.figures}
	if u.PromptTokens > 0 {
		u.Reported["prompt_tokens"] = float64(u.PromptTokens)
	}
	err = s.broken(ctx, run, *m, r, p.over)
	if err == nil {
		u.Generated = run.generated(r.MaxTokens, n+len(p.held))
	}
	p.end(u.Generated > 0 && u.Generated < r.MaxTokens)
	u.Text = strings.ToValidUTF8(text.String(), "\ufffd")
	if err != nil {
		u.Generated = n // of one that broke off no more is known
		if ctx.Err() != nil {
			u.Finish = "cancelled"
		}
	}
	if n > 0 {
		u.Spans = run.spans(first, last, u.Generated)
	}
	if err != nil {
		return u, err
	}
	u.Finish = "length"
	if u.Generated < r.MaxTokens {
		u.Finish = "stop"
	}
	if n == 0 && u.Finish == "length" {
		return u, engine.Fail(record.BadOutput, "%s generated %d tokens and printed no text", s.name(), u.Generated)
	}
	rates(u.Reported)
	s.held.Store(int64(u.PromptTokens + u.Generated - 1))
	return u, nil
}

// broken tells why a generation broke off; nil where it did not.
func (s *oneShotSession) broken(ctx context.Context, run *completionRun, m engine.Model, r engine.Request, whole bool) error {
	if err := s.over(ctx); err != nil {
		return err
	}
	if run.full.Load() {
		return tooLong(fmt.Sprintf("the prompt of %d tokens and %d tokens to generate", run.prompted, r.MaxTokens), s.context)
	}
	if _, timed := run.figures["eval_ms"]; whole && timed {
		return nil
	}
	err := s.why(ctx, run, m)
	if class := engine.ClassOf(err); class == record.Crash || class == record.OOM {
		_ = s.Unload(ctx) // it never fails; who goes on must load again
	}
	return err
}

// completionRun is one process.
type completionRun struct {
	proc    *child.Process
	end     context.CancelFunc
	out     *output
	tail    *child.Tail
	read    *logReader
	log     io.WriteCloser
	args    []string
	mark    string // what it prints when it waits for input
	input   io.Closer
	scratch string
	reads   chan time.Time // when its memory was read
	// patience is how long the end waits for that.
	patience time.Duration
	detach   []func()
	started  time.Time

	released sync.Once

	// What the log says, in its goroutine; to be read when the process has ended.
	begun    time.Time
	prompted int
	figures  map[string]float64
	full     atomic.Bool // prompt and tokens do not fit: it was ended
}

// start starts a process and has it sampled from its first instant.
func (s *oneShotSession) start(ctx context.Context, m engine.Model, r engine.Request) (*completionRun, error) {
	dir, err := child.Scratch("prompt")
	if err != nil {
		return nil, err
	}
	s.mu.Lock() // a Close either prevents it or ends it
	defer s.mu.Unlock()
	run := &completionRun{tail: &child.Tail{Max: 16 << 10}, scratch: dir, figures: map[string]float64{}, mark: newMark(),
		reads: make(chan time.Time, 1), patience: s.patience}
	alive, end := context.WithCancel(ctx)
	if s.closing.Err() != nil {
		end()
	}
	forget := context.AfterFunc(s.closing, end)
	run.end = func() {
		forget()
		end()
	}
	run.log = s.probe.Log("llama-completion")
	if err := run.begin(alive, s, m, r); err != nil {
		run.release()
		return nil, err
	}
	sources, err := proc.SourcesOfOurs(run.proc.PID(), "completion")
	for _, src := range sources {
		run.detach = append(run.detach, s.probe.Attach(often(src, run.reads)))
	}
	if err != nil && !errors.Is(err, sample.ErrGone) { // one that has died already is its end's to explain
		run.end()
		<-run.proc.Done()
		run.release()
		return nil, fmt.Errorf("sampling %s: %w", s.name(), err)
	}
	s.run = run
	return run, nil
}

func (run *completionRun) begin(ctx context.Context, s *oneShotSession, m engine.Model, r engine.Request) error {
	// A file: arguments may be read by everybody on the machine, and are short. One line end behind the prompt is taken away.
	prompt := filepath.Join(run.scratch, "prompt")
	if err := os.WriteFile(prompt, []byte(r.Prompt+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the prompt: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("running %s: %w", s.name(), err)
	}
	flags, err := s.binary.options.fitted(completionProgram(), s.binary.path, s.config.oneShot(m, prompt, run.mark, r))
	if err != nil {
		return err
	}
	run.args = arguments(flags)
	run.out = newOutput(ctx)
	run.read = newLogReader(func(line string) { run.hear(line, r.MaxTokens, s.context) })
	cmd := exec.Command(s.binary.path, run.args...)
	cmd.Env = environment("")
	// An input that nothing comes from, and that ends when we do.
	in, hold, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting %s: %w", s.name(), err)
	}
	defer in.Close()
	cmd.Stdin, run.input = in, hold
	cmd.Stdout, cmd.Stderr = run.out, heard{run.tail, run.read, run.log}
	run.started = time.Now()
	run.proc, err = child.Start(ctx, cmd)
	return err
}

var (
	promptLine = regexp.MustCompile(`: number of tokens in prompt = ([0-9]+)$`)
	beginLine  = regexp.MustCompile(`^\s*generate: n_ctx = `)
)

// hear reads a line of the log. What can't fit is ended before it generates.
func (run *completionRun) hear(line string, tokens, context int) {
	if m := promptLine.FindStringSubmatch(line); m != nil {
		run.prompted = number(m[1])
		if tokens > 0 && context > 0 && run.prompted+tokens > context {
			run.full.Store(true)
			run.end()
		}
	} else if beginLine.MatchString(line) && run.begun.IsZero() {
		run.begun = time.Now()
	} else {
		perf(line, run.figures)
	}
}

// wait gives the pieces as they come, until the process has ended. At the end of the text it waits for input; it is then sampled once more
// and interrupted, upon which it prints its timings and all else that it has still to print. One that is left to end by itself does not
// wait for what it has to print.
func (run *completionRun) wait(p *pieces) {
	defer run.release()
	var heedless <-chan time.Time // one that does not heed the interruption is ended
	for {
		select {
		case <-heedless:
			run.end()
		case c := <-run.out.chunks:
			if p.over {
				break
			}
			if p.add(c); p.over {
				run.conclude()
				heedless = time.After(10 * time.Second)
			}
		case <-run.proc.Done(): // all of its output was handed on
			for len(run.out.chunks) > 0 {
				p.add(<-run.out.chunks)
			}
			return
		}
	}
}

// conclude ends a process that waits for input.
func (run *completionRun) conclude() {
	since := time.Now()
	late := time.NewTimer(run.patience)
	defer late.Stop()
	for read := false; !read; {
		select {
		case at := <-run.reads:
			read = at.After(since)
		case <-late.C:
			read = true
		case <-run.proc.Done():
			return
		}
	}
	if p, err := os.FindProcess(run.proc.PID()); err == nil {
		_ = p.Signal(os.Interrupt) // it may have ended meanwhile
	}
}

// release lets go of what belongs to a process that has ended, or never began.
func (run *completionRun) release() { run.released.Do(run.letGo) }

func (run *completionRun) letGo() {
	run.end()
	if run.input != nil {
		_ = run.input.Close() // nothing was written to it
	}
	for _, d := range run.detach {
		d()
	}
	_ = run.log.Close()           // nothing hangs on its last bytes
	_ = os.RemoveAll(run.scratch) // swept at the next start, if it is still there
}

// generated is how many tokens there were: the first comes of the prompt's evaluation, each other of one of its own, and the evaluation of
// the last, which the program begins before it waits, does not end. The program says 1 where it evaluated none, and counts an evaluation
// of a single token of the prompt as one of a generated token.
func (run *completionRun) generated(most, pieces int) int {
	n := int(run.figures["eval_runs"]) + 1
	if batch := run.read.load().batch; run.prompted == 1 || batch > 0 && run.prompted%batch == 1 {
		n--
	}
	if pieces <= 1 && n == 2 && run.figures["eval_ms"] == 0 {
		n = 1
	}
	return max(min(n, most), 1)
}

// newMark is what no text holds.
func newMark() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return "<" + hex.EncodeToString(b[:]) + ">"
}

func (run *completionRun) spans(first, last time.Time, tokens int) []record.Span {
	begun := run.begun
	if begun.IsZero() || begun.After(first) { // the log may be read a moment after the text
		begun = first
	}
	spans := []record.Span{
		{Name: "process", Begin: run.started, End: begun, How: "process started, to its line that says that it begins to generate: the model's load lies within"},
		{Name: record.Prefill, Begin: begun, End: first, How: "the program's line that says that it begins to generate read, to the first piece of text read"},
	}
	if tokens > 1 {
		spans = append(spans, record.Span{Name: record.Decode, Begin: first, End: last, How: "first to last piece of text read"})
	}
	return spans
}

// often has the dear source of a process that does not live long read at the quick one's rate; the sampler bounds what that takes. It tells
// when it was read.
func often(src sample.Source, reads chan time.Time) sample.Source {
	if p, ok := src.(sample.Peaker); ok {
		return oftener{p, reads}
	}
	return src
}

type oftener struct {
	sample.Peaker
	reads chan time.Time
}

func (o oftener) Describe() record.Source {
	d := o.Peaker.Describe()
	d.Every = proc.FastEvery
	return d
}

func (o oftener) Read(ctx context.Context, r *record.Sample) error {
	err := o.Peaker.Read(ctx, r)
	select {
	case o.reads <- r.Begin:
	default: // the last one was not asked for
	}
	return err
}
