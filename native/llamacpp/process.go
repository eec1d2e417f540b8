package llamacpp

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/logs"
)

// completionRun is one process of the one-shot program.
type completionRun struct {
	*launch.Program
	end       context.CancelFunc
	text      *pieces
	read      *logs.Loads
	shown     []string // arguments, with placeholders for what differs in each process
	scratch   string
	concluded time.Time // when the text or the process ended

	// Written by the log's goroutine; read only after the process has ended.
	begun    time.Time
	prompted int
	figures  map[string]float64
	full     atomic.Bool // ended because prompt and tokens do not fit
}

// start starts a process that is sampled from its first moment, and gives its text as it is read.
func (s *oneShotSession) start(ctx context.Context, m models.Model, r engine.Request,
	give func(text string, at time.Time)) (*completionRun, error) {
	dir, err := child.Scratch("prompt")
	if err != nil {
		return nil, err
	}
	s.mu.Lock() // so that Close either prevents this process or ends it
	defer s.mu.Unlock()
	alive, end := engine.Within(ctx, s.closing)
	// no text contains the mark
	run := &completionRun{scratch: dir, figures: map[string]float64{}, end: end,
		text: newPieces(alive, "<"+rand.Text()+">", give)}
	if err := run.begin(alive, s, m, r); err != nil {
		run.release()
		if s.closing.Err() != nil {
			err = errClosed
		}
		return nil, err
	}
	s.run = run
	return run, nil
}

func (run *completionRun) begin(ctx context.Context, s *oneShotSession, m models.Model, r engine.Request) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("running %s: %w", s.name, err)
	}
	// In a file, because arguments are limited in length and visible to all users. The program strips one newline at
	// its end.
	prompt := filepath.Join(run.scratch, "prompt")
	if err := os.WriteFile(prompt, []byte(r.Prompt+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the prompt: %w", err)
	}
	args := func(prompt, mark string) ([]string, error) {
		flags, err := s.binary.fitted(s.config.oneShot(m, prompt, mark, r))
		return arguments(flags), err
	}
	run.shown, _ = args("PROMPT", "MARK") // fails as the next one does
	given, err := args(prompt, run.text.mark)
	if err != nil {
		return err
	}
	run.read = newLogReader(func(line string) { run.hear(line, r.MaxTokens, s.context) })
	cmd := exec.Command(s.binary.path, given...)
	cmd.Env = Config{}.environment("")
	if _, err := cmd.StdinPipe(); err != nil { // stays empty, and closes when the process or we end
		return fmt.Errorf("starting %s: %w", s.name, err)
	}
	cmd.Stdout = run.text
	run.Program, err = launch.Start(ctx, cmd, launch.Options{Name: s.name, Log: s.probe.Log("llama-completion"),
		Keep: 16 << 10, Read: run.read, Role: "completion",
		Attach: func(src sample.Source) func() {
			if p, ok := src.(sample.Peaker); ok {
				src = oftener{p}
			}
			return s.probe.Attach(src)
		}})
	return err
}

var (
	promptLine = regexp.MustCompile(`: number of tokens in prompt = ([0-9]+)$`)
	beginLine  = regexp.MustCompile(`^\s*generate: n_ctx = `)
	fullLine   = regexp.MustCompile(`prompt is too long`)
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
	} else if fullLine.MatchString(line) {
		run.full.Store(true)
	} else {
		perf(line, run.figures)
	}
}

// wait waits until the process has ended. At the end of the text the program waits for input. It is then sampled once
// more and interrupted, which makes it print its timings and flush its log. If it ended by itself, it would lose
// output.
func (run *completionRun) wait() {
	defer run.release()
	select {
	case <-run.text.over:
		run.Look()
		run.Ended(2 * proc.FastEvery)
		run.Interrupt()
		if !run.Ended(10 * time.Second) { // it ignores the interrupt
			run.end()
		}
	case <-run.Done():
	}
	<-run.Done()
	if run.concluded = run.text.at; run.concluded.IsZero() {
		run.concluded = time.Now()
	}
}

// release frees what belongs to a process that has ended or never started. It may be called more than once.
func (run *completionRun) release() {
	run.end()
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

// spans returns the spans of a generation. The line that says that it begins comes through another pipe than the text,
// and may be read after it.
func (run *completionRun) spans(said *engine.Text, tokens int) []record.Span {
	if said.N == 0 {
		return nil
	}
	begun, how := run.begun, "the program's line that generation begins, to the first piece of text read"
	if begun.IsZero() || begun.After(said.First) {
		begun = said.First.Add(-time.Duration(run.figures["prompt_eval_ms"] * float64(time.Millisecond)))
		how = "the program's own prompt evaluation time, up to the first piece of text read; " +
			"its line that generation begins was read later"
	}
	if begun.Before(run.Begun) {
		begun = run.Begun
	}
	process := record.Span{Name: "process", Begin: run.Begun, End: begun,
		How: "process start to its line that generation begins; includes the model's load"}
	spans := said.Spans(begun, tokens, how, "first to last piece of text read")
	if !begun.Before(said.First) {
		spans = spans[1:] // no prefill was observed
	}
	return append([]record.Span{process}, spans...)
}

// oftener samples the expensive source of a short-lived process as often as the cheap one; the sampler limits what that
// costs.
type oftener struct{ sample.Peaker }

func (o oftener) Describe() record.Source {
	d := o.Peaker.Describe()
	d.Every = proc.FastEvery
	return d
}
