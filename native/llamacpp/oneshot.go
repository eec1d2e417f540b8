package llamacpp

import (
	"context"
	"path/filepath"
	"strconv"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/native/program"
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
	if err := program.CheckGGUF("llama.cpp", m); err != nil {
		return err
	}
	b, err := o.identify(ctx)
	if err != nil {
		return err
	}
	return o.config.fits(ctx, completionProgram(), b,
		o.config.oneShot(m, "", "", engine.Request{MaxTokens: 1, IgnoreEOS: true}))
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
	s := &oneShotSession{config: o.config, binary: b, probe: p, name: filepath.Base(b.path)}
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
