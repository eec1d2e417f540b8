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
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
	"llmparity/native/launch"
	"llmparity/native/logs"
)

// oneShotSession is a launch of the one-shot program. Each generation is a process, and a first one shows what the
// model needs.
type oneShotSession struct {
	config Config
	binary identity
	probe  engine.Probe

	turn    engine.Turns
	closing context.Context // ends with Close
	close   context.CancelFunc

	mu     sync.Mutex     // guards what Close may use at the same time
	run    *completionRun // the latest
	model  *engine.Model
	detach func() // of the source that holds the sizes from the log

	info    record.EngineInfo // as last reported
	context int
	// patience is how long a finished process is kept for the sampler to read.
	patience time.Duration
	held     atomic.Int64 // tokens in the KV cache at the end of the last process; -1: unknown
}

// Load runs the program for one token. That shows whether it can load the model, how long this takes and which buffers
// it allocates. Each generation loads the model again.
func (s *oneShotSession) Load(ctx context.Context, m engine.Model) error {
	switch {
	case s.closing.Err() != nil:
		return errClosed
	case s.loaded() != nil:
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
	s.probe.Span(record.Span{Name: "model", Begin: run.Begun, End: run.begun,
		How: "separate process that generates one token: process start to its line that generation begins"})
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

// over returns an error if the caller no longer waits.
func (s *oneShotSession) over(ctx context.Context) error {
	switch {
	case s.closing.Err() != nil:
		return errClosed
	case ctx.Err() != nil:
		return fmt.Errorf("running %s: %w", s.name(), ctx.Err())
	}
	return nil
}

// describe reports what runs, and offers the sizes from the log to the sampler.
func (s *oneShotSession) describe(m engine.Model, run *completionRun) error {
	said := run.read.Said()
	if s.config.GPULayers > 0 {
		d, err := s.config.device(said)
		if err != nil {
			return err
		}
		s.probe.Event(record.Event{At: time.Now(), Device: &d})
	}
	s.context = said.Context
	if m.Context > 0 {
		s.context = min(m.Context, max(s.context, 1))
	}
	policy := s.config.policy(m, said)
	policy["context"] = strconv.Itoa(said.Context)
	policy["ignore_eos"] = "never chooses the end-of-text token; from there its text may differ from other engines'"
	policy["process"] = "one per generation, which loads the model; time to first token includes the load"
	s.info = record.EngineInfo{Name: OneShotName, Version: s.binary.version, Path: s.binary.path,
		SHA256: s.binary.sha256, Parts: s.binary.parts(), Policy: policy}
	s.describeRun(run)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() != nil {
		return errClosed
	}
	s.model = &m
	s.held.Store(0)
	if len(said.Buffers) == 0 {
		engine.Warn(s.probe, "sizes-untold", "%s's log does not report buffer sizes in a known format", s.name())
		return nil
	}
	s.detach = s.probe.Attach(sizes("completion", 0, said, func() int { return int(s.held.Load()) }))
	return nil
}

// describeRun reports a process's arguments if they changed, apart from the names of its own files.
func (s *oneShotSession) describeRun(run *completionRun) {
	args := run.plainArgs()
	if s.info.Policy == nil || slices.Equal(args, s.info.Args) {
		return
	}
	s.info.Args = args
	reported := s.info
	s.probe.Event(record.Event{At: time.Now(), Engine: &reported})
}

func (s *oneShotSession) loaded() *engine.Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model
}

// Unload forgets the model; no process holds it.
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

// Close ends the current process, if any.
func (s *oneShotSession) Close() error {
	s.close()
	s.mu.Lock()
	run := s.run
	s.mu.Unlock()
	if run != nil {
		<-run.Done()
		run.release()
	}
	return s.Unload(context.Background())
}

// Generate starts a process and waits for it to end.
func (s *oneShotSession) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (
	record.Usage, error) {
	free, err := s.turn.Take()
	if err != nil {
		return record.Usage{}, err
	}
	defer free()
	m, err := s.ready(r)
	if err != nil {
		return record.Usage{}, err
	}
	s.held.Store(-1)
	run, err := s.start(ctx, m, r)
	if err != nil {
		return record.Usage{}, err
	}
	said := &launch.Text{Token: token}
	p := &pieces{mark: run.mark, give: func(c chunk) {
		if ctx.Err() == nil && !run.full.Load() {
			said.Piece(string(c.text), c.at)
		}
	}}
	run.wait(p)
	u := record.Usage{Sent: run.Begun, Returned: run.concluded, PromptTokens: run.prompted, Reported: run.figures}
	if u.PromptTokens > 0 {
		u.Reported["prompt_tokens"] = float64(u.PromptTokens)
	}
	broken := s.broken(ctx, run, m, r, p.over)
	if broken == nil {
		u.Generated, u.Finish = run.generated(r.MaxTokens, said.N+len(p.held))
	}
	p.end(u.Finish == "stop")
	u.Text = printable(said.String())
	if broken != nil {
		u.Generated = said.N // all that is known if it failed
		if ctx.Err() != nil {
			u.Finish = "cancelled"
		}
	}
	u.Spans = run.spans(said, u.Generated)
	if broken != nil {
		return u, broken
	}
	return s.whole(u, run, said)
}

// ready returns the model if one is loaded and the request is possible.
func (s *oneShotSession) ready(r engine.Request) (engine.Model, error) {
	m := s.loaded()
	switch {
	case s.closing.Err() != nil:
		return engine.Model{}, errClosed
	case m == nil:
		return engine.Model{}, errors.New("no model is loaded; load one first")
	case r.Prompt == "":
		return engine.Model{}, engine.Fail(record.SetUp, "the prompt has no tokens")
	// the program would generate until its context is full, and may end before it says so
	case s.context > 0 && r.MaxTokens >= s.context:
		return engine.Model{}, tooLong(fmt.Sprintf("a prompt and %d tokens to generate", r.MaxTokens), s.context)
	}
	return *m, r.Check()
}

// whole completes the usage of a generation that did not fail.
func (s *oneShotSession) whole(u record.Usage, run *completionRun, said *launch.Text) (record.Usage, error) {
	if said.N == 0 && u.Finish == "length" {
		return u, engine.Fail(record.BadOutput, "%s generated %d tokens and printed no text", s.name(), u.Generated)
	}
	rates(u.Reported)
	if odd := timesDiffer(said, u); odd != "" {
		engine.Warn(s.probe, "times-differ", "%s%s", s.name(), odd)
	}
	held := u.PromptTokens + u.Generated
	if u.Finish == "length" {
		held-- // the last one is never evaluated
	}
	s.held.Store(int64(held))
	s.describeRun(run)
	return u, nil
}

// timesDiffer returns a warning if pieces were read too late: evaluating the tokens cannot take longer than receiving
// the text. It allows for a tenth, plus 20 ms because the clocks are coarse.
func timesDiffer(t *launch.Text, u record.Usage) string {
	ours, own := t.Last.Sub(t.First), time.Duration(u.Reported["eval_ms"]*float64(time.Millisecond))
	if t.N < 2 || own <= ours+ours/10+20*time.Millisecond {
		return ""
	}
	return fmt.Sprintf(" evaluated tokens for %s, but its text arrived within %s: it was read late, so decode looks too fast",
		own.Round(time.Millisecond), ours.Round(time.Millisecond))
}

// printable replaces invalid UTF-8 by U+FFFD in the same way as llama-server: one for an incomplete character, one for
// each other byte.
func printable(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && n == 1 {
			for n < len(text) && !utf8.FullRuneInString(text[:n+1]) {
				n++
			}
		}
		b.WriteRune(r)
		text = text[n:]
	}
	return b.String()
}

// broken returns why a generation failed; nil if it did not.
func (s *oneShotSession) broken(ctx context.Context, run *completionRun, m engine.Model, r engine.Request,
	whole bool) error {
	if err := s.over(ctx); err != nil {
		return err
	}
	if run.full.Load() {
		return tooLong(fmt.Sprintf("the prompt of %d tokens and %d tokens to generate", run.prompted, r.MaxTokens),
			s.context)
	}
	if _, timed := run.figures["eval_ms"]; whole && timed {
		return nil
	}
	err := s.why(ctx, run, m)
	// The program stops before the end of the text if its context is full, but may not get round to logging it. Each
	// token has at least one byte.
	if engine.ClassOf(err) == record.BadOutput && s.context > 0 && len(r.Prompt)+1+r.MaxTokens > s.context {
		err = tooLong(fmt.Sprintf("the prompt and %d tokens to generate", r.MaxTokens), s.context)
	}
	if class := engine.ClassOf(err); class == record.Crash || class == record.OOM {
		_ = s.Unload(ctx) // it never fails; the next generation needs another Load
	}
	return err
}

// completionRun is one process.
type completionRun struct {
	*launch.Program
	end     context.CancelFunc
	out     *output
	read    *logs.Loads
	args    []string
	prompt  string
	mark    string // printed when it waits for input
	input   io.Closer
	scratch string
	reads   chan reading // of its processes' memory
	// patience is how long to wait for these at the end.
	patience  time.Duration
	concluded time.Time // when the text or the process ended

	released sync.Once

	// Written by the log's goroutine; read only after the process has ended.
	begun    time.Time
	prompted int
	figures  map[string]float64
	full     atomic.Bool // ended because prompt and tokens do not fit
}

// start starts a process that is sampled from its first moment.
func (s *oneShotSession) start(ctx context.Context, m engine.Model, r engine.Request) (*completionRun, error) {
	dir, err := child.Scratch("prompt")
	if err != nil {
		return nil, err
	}
	s.mu.Lock() // so that Close either prevents this process or ends it
	defer s.mu.Unlock()
	run := &completionRun{scratch: dir, figures: map[string]float64{}, mark: newMark(), prompt: r.Prompt,
		reads: make(chan reading, 16), patience: s.patience}
	alive, end := launch.Within(ctx, s.closing)
	run.end = end
	if err := run.begin(alive, s, m, r); err != nil {
		run.release()
		return nil, err
	}
	s.run = run
	return run, nil
}

func (run *completionRun) begin(ctx context.Context, s *oneShotSession, m engine.Model, r engine.Request) error {
	// In a file, because arguments are limited in length and visible to all users. The program strips one newline at
	// its end.
	prompt, err := promptFile(run.scratch, r.Prompt)
	if err != nil {
		return err
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
	// An input that stays empty, and closes when we end.
	in, hold, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting %s: %w", s.name(), err)
	}
	defer in.Close()
	cmd.Stdin, run.input = in, hold
	cmd.Stdout = run.out
	run.Program, err = launch.Start(ctx, cmd, launch.Options{Name: s.name(), Log: s.probe.Log("llama-completion"),
		Keep: 16 << 10, Read: run.read, Role: "completion",
		Attach: func(src sample.Source) func() { return s.probe.Attach(often(src, run.reads)) }})
	return err
}

func promptFile(dir, prompt string) (string, error) {
	path := filepath.Join(dir, "prompt")
	if err := os.WriteFile(path, []byte(prompt+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("writing the prompt: %w", err)
	}
	return path, nil
}

var (
	promptLine = regexp.MustCompile(`: number of tokens in prompt = ([0-9]+)$`)
	beginLine  = regexp.MustCompile(`^\s*generate: n_ctx = `)
)

// hear reads a line of the log. If prompt and tokens cannot fit, it ends the process before it generates.
func (run *completionRun) hear(line string, tokens, context int) {
	if m := promptLine.FindStringSubmatch(line); m != nil {
		run.prompted, _ = strconv.Atoi(m[1]) // fits: no more tokens than bytes
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

// wait hands on pieces until the process has ended. At the end of the text the program waits for input. It is then
// sampled once more and interrupted, which makes it print its timings and flush its log. If it ended by itself, it
// would lose output.
func (run *completionRun) wait(p *pieces) {
	defer run.release()
	var heedless <-chan time.Time // fires if it ignores the interrupt
	for {
		select {
		case <-heedless:
			run.end()
		case c := <-run.out.chunks:
			if p.over {
				break
			}
			if p.add(c); p.over {
				run.concluded = c.at
				run.conclude()
				heedless = time.After(10 * time.Second)
			}
		case <-run.Done(): // all its output has been queued
			if run.concluded.IsZero() {
				run.concluded = time.Now()
			}
			for len(run.out.chunks) > 0 {
				p.add(<-run.out.chunks)
			}
			return
		}
	}
}

// conclude ends a process that is waiting for input.
func (run *completionRun) conclude() {
	if run.patience > 0 && run.Tree != nil {
		run.readOnce()
	}
	run.Interrupt()
}

// readOnce waits until every process has been sampled since now, up to patience.
func (run *completionRun) readOnce() {
	since := time.Now()
	late := time.NewTimer(run.patience)
	defer late.Stop()
	run.Tree.Look(context.Background())
	left := run.Tree.PIDs()
	for len(left) > 0 {
		select {
		case read := <-run.reads:
			if read.at.After(since) {
				left = slices.DeleteFunc(left, func(pid int) bool { return pid == read.pid })
			}
		case <-late.C:
			return
		case <-run.Done():
			return
		}
	}
}

// release frees what belongs to a process that has ended or never started.
func (run *completionRun) release() { run.released.Do(run.letGo) }

func (run *completionRun) letGo() {
	run.end()
	if run.input != nil {
		_ = run.input.Close() // nothing was written
	}
	if run.Program != nil {
		run.End(0) // also processes that a wrapper left behind
	}
	_ = os.RemoveAll(run.scratch) // if it stays, the next start removes it
}

// generated returns the number of tokens in the text and how it ended. The first token comes from evaluating the
// prompt, and each other one from an evaluation of its own. The evaluation of the last token has begun but not ended
// when the program waits for input. The program reports 1 run if there was none, and counts the evaluation of a single
// prompt token as a generated one. The token that ends a text is not part of it.
func (run *completionRun) generated(most, pieces int) (int, string) {
	n := int(run.figures["eval_runs"]) + 1
	if batch := run.read.Said().Batch; run.prompted == 1 || batch > 0 && run.prompted%batch == 1 {
		n--
	}
	if pieces <= 1 && n == 2 && run.figures["eval_ms"] == 0 {
		n = 1
	}
	if n < most {
		return max(n-1, 0), "stop"
	}
	return most, "length"
}

// newMark returns a string that no text contains.
func newMark() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	return "<" + hex.EncodeToString(b[:]) + ">"
}

// spans returns the spans of a generation. The line that says that it begins comes through another pipe than the text,
// and may be read after it.
func (run *completionRun) spans(said *launch.Text, tokens int) []record.Span {
	if said.N == 0 {
		return nil
	}
	begun, how := run.begun, "the program's line that generation begins, to the first piece of text read"
	if begun.IsZero() || begun.After(said.First) {
		begun = said.First.Add(-time.Duration(run.figures["prompt_eval_ms"] * float64(time.Millisecond)))
		how = "the program's own prompt evaluation time, up to the first piece of text read; its line that generation begins was read later"
	}
	if begun.Before(run.Begun) {
		begun = run.Begun
	}
	decode := ""
	if tokens > 1 {
		decode = "first to last piece of text read"
	}
	process := record.Span{Name: "process", Begin: run.Begun, End: begun,
		How: "process start to its line that generation begins; includes the model's load"}
	spans := said.Spans(begun, how, decode)
	if !begun.Before(said.First) {
		spans = spans[1:] // no prefill was observed
	}
	return append([]record.Span{process}, spans...)
}

// plainArgs returns the arguments with placeholders for what differs in each process.
func (run *completionRun) plainArgs() []string {
	args := slices.Clone(run.args)
	for i, a := range args {
		if a == run.mark {
			args[i] = "MARK"
		} else if a == filepath.Join(run.scratch, "prompt") {
			args[i] = "PROMPT"
		}
	}
	return args
}

// reading is when a process's memory was read.
type reading struct {
	pid int
	at  time.Time
}

// often samples the expensive source of a short-lived process as often as the cheap one; the sampler limits what that
// costs. Each reading is reported to reads.
func often(src sample.Source, reads chan reading) sample.Source {
	if p, ok := src.(sample.Peaker); ok {
		return oftener{p, reads}
	}
	return src
}

type oftener struct {
	sample.Peaker
	reads chan reading
}

func (o oftener) Describe() record.Source {
	d := o.Peaker.Describe()
	d.Every = proc.FastEvery
	return d
}

func (o oftener) Read(ctx context.Context, r *record.Sample) error {
	err := o.Peaker.Read(ctx, r)
	select {
	case o.reads <- reading{o.Peaker.Describe().PID, r.Begin}:
	default: // nobody waits for these
	}
	return err
}
