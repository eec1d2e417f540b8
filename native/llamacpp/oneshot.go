package llamacpp

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/sample/proc"
	"llmparity/native/logs"
)

// OneShotName is the name of llama.cpp's one-shot program in plans and records.
const OneShotName = "llamacpp-oneshot"

// OneShot is llama.cpp through llama-completion or its predecessors: a process that loads the model, continues one
// prompt and ends. It prints text, not tokens. Pieces have the times at which they were read; the program's own timing
// lines count tokens. To continue a text it never chooses the end token, so from there its text may differ from that
// of other engines.
type OneShot struct {
	config Config
	known  known
}

// NewOneShot makes the engine without searching for anything.
func NewOneShot(c Config) *OneShot {
	c.Slots, c.PromptCache = 0, false // each process does one generation
	return &OneShot{config: c}
}

// Name returns OneShotName.
func (*OneShot) Name() string { return OneShotName }

// Caps returns what llama-completion can do. Each generation is a process, also within a launch.
func (o *OneShot) Caps() engine.Caps {
	return engine.Caps{IgnoreEOS: true, Requests: 1, Isolation: record.OfLaunch, PerGeneration: true,
		Rounds: o.config.coarse()}
}

// Check finds the program and reads the model's header.
func (o *OneShot) Check(ctx context.Context, m engine.Model) error {
	if err := checkModel(m); err != nil {
		return err
	}
	b, err := o.identify(ctx)
	if err != nil {
		return err
	}
	if _, err := b.options.fitted(completionProgram(), b.path,
		o.config.oneShot(m, "", "", engine.Request{MaxTokens: 1, IgnoreEOS: true})); err != nil {
		return err
	}
	return o.config.gpu(ctx, completionProgram(), b.path)
}

func (o *OneShot) identify(ctx context.Context) (identity, error) {
	path, err := FindCLI(o.config)
	if err != nil {
		return identity{}, err
	}
	b, err := o.known.identify(ctx, completionProgram(), path)
	if err != nil {
		return identity{}, err
	}
	// Newer llama-cli is a chat client: it lacks --prompt-cache, which every one-shot version has.
	if _, ok := b.options["--prompt-cache"]; !ok && b.options != nil {
		return identity{}, completionProgram().Unfit(
			"%s is not llama.cpp's one-shot program: it lacks --prompt-cache (newer llama-cli is a chat client)", path)
	}
	return b, nil
}

// Open identifies the program and the machine; it starts nothing that outlives the call.
func (o *OneShot) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	b, err := o.identify(ctx)
	if err != nil {
		return nil, err
	}
	o.config.onCPU(p)
	s := &oneShotSession{config: o.config, binary: b, probe: p, patience: 3 * proc.FastEvery}
	s.closing, s.close = context.WithCancel(context.Background()) // a session outlives the Open call
	return s, nil
}

// oneShot returns the options of a run. prompt is a file; mark is printed once the text has ended.
func (c Config) oneShot(m engine.Model, prompt, mark string, r engine.Request) []flag {
	flags := append(c.common(m), flag{"-f", prompt}, flag{"-n", strconv.Itoa(r.MaxTokens)},
		// print only the raw text as it is generated, and log the number of prompt tokens
		flag{"-no-cnv"}, flag{"--no-display-prompt"}, flag{"--simple-io"}, flag{"--no-escape"},
		flag{"--verbose-prompt"},
		// at the end of the text, print the mark and wait for input
		flag{"-i"}, flag{"--in-prefix", mark}, flag{"--temp", strconv.FormatFloat(max(0, r.Temperature), 'g', -1, 64)})
	if r.IgnoreEOS {
		flags = append(flags, flag{"--ignore-eos"})
	}
	// A single sampler: the largest logit at temperature 0, otherwise the whole distribution at that temperature.
	if r.Temperature <= 0 {
		return append(flags, flag{"--top-k", "1"})
	}
	return append(flags, flag{"--top-k", "0"}, flag{"--top-p", "1"}, flag{"--min-p", "0"})
}

// tooLong is the error for a prompt that does not fit.
func tooLong(what string, context int) error {
	return engine.TooLong("%s do not fit in a context of %d", what, context)
}

// why returns why a process ended unexpectedly.
func (s *oneShotSession) why(ctx context.Context, run *completionRun, m engine.Model) error {
	words := said(run.Tail.Lines(200))
	how := run.Exit()
	lacks := missingFlag(words, run.args)
	failed := func(words []string) bool {
		return contains(words, "failed to load model") || contains(words, "error loading model")
	}
	if lacks == "" && run.Err() != nil && !signalled(run.Err()) && !failed(words) &&
		!contains(words, tooLongWords) && !logs.OutOfMemory(words...) {
		words = s.words(ctx, run, words)
	}
	switch {
	case lacks != "":
		return tooOld(completionProgram(), s.binary.path, lacks)
	case contains(words, tooLongWords):
		return tooLong("the prompt and a token", s.context)
	case logs.OutOfMemory(words...):
		return engine.Fail(record.OOM, "%s ran out of memory (%s): %s", s.name(), how, logs.LastWords(words))
	case signalled(run.Err()):
		return engine.Fail(record.Crash, "%s crashed (%s); last output: %s", s.name(), how, logs.LastWords(words))
	case failed(words):
		return &engine.Failure{Class: record.BadModel, Err: fault.New(fault.BadModel,
			"check the file, or use a newer llama.cpp", "%s cannot load %s: %s", s.name(), m.Path, loadError(words))}
	case run.Err() != nil:
		return engine.Fail(record.Other, "%s failed (%s): %s", s.name(), how, logs.LastWords(words))
	}
	return engine.Fail(record.BadOutput, "%s ended early; last output: %s", s.name(), logs.LastWords(words))
}

// words runs the program again with the same prompt to see why it fails. It does not flush its log before it ends, and
// a log of errors alone is most likely to be complete. If that shows nothing, before is returned.
func (s *oneShotSession) words(ctx context.Context, run *completionRun, before []string) []string {
	dir, err := child.Scratch("prompt")
	if err != nil {
		return before
	}
	defer os.RemoveAll(dir)
	prompt, err := promptFile(dir, run.prompt)
	if err != nil {
		return before
	}
	args := slices.Clone(run.args)
	for name, value := range map[string]string{"-lv": "1", "-f": prompt, "-n": "1"} {
		if i := slices.Index(args, name); i >= 0 {
			args[i+1] = value
		}
	}
	for range 5 {
		cmd := exec.Command(s.binary.path, args...)
		cmd.Env = environment("")
		tail := &child.Tail{Max: 16 << 10}
		cmd.Stderr = tail
		p, err := child.Start(ctx, cmd)
		if err != nil {
			break
		}
		<-p.Done()
		if words := said(tail.Lines(200)); p.Err() != nil &&
			(contains(words, "error") || contains(words, "failed") || contains(words, tooLongWords)) {
			return words
		}
	}
	return before
}

// tooLongWords is what the program prints if a prompt does not fit.
const tooLongWords = "prompt is too long"

func (s *oneShotSession) name() string {
	return s.binary.path[strings.LastIndexByte(s.binary.path, '/')+1:]
}
