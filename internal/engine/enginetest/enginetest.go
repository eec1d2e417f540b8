// Package enginetest is the suite that every engine passes, run on the real engine with a real model.
//
// It checks the contract of package engine: counts, ids, times, cancellation, prompts that are too long, requests at
// once, reloading, crashes, and that nothing is left behind. What an engine cannot do according to engine.Caps is not
// tested. No speed is asserted; the time limits are watchdogs. It cannot tell whether an engine's figures are right,
// only that they are consistent. Its one check of the arithmetic are greedy ids from a reference (Case.Expected).
package enginetest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// Case is an engine and a model to test it with.
type Case struct {
	New    func(*testing.T) engine.Engine
	Model  models.Model // Context must be set
	Prompt string
	// What a reference implementation says; nil and "" are not checked. An engine without token ids is compared by
	// Text and by the number of PromptIDs. Set none of these for an engine that computes in another precision than the
	// reference.
	PromptIDs []int
	Expected  []int  // greedy continuation; its length is the number of tokens to generate
	Text      string // of Expected
	// MaxTokens is the length of a generation if Expected is nil; 0 means 16.
	MaxTokens int
	// Slots is how many requests the engine was configured to compute together; 0 skips that test.
	Slots int
	// InProcess: the engine computes in this process, which cannot be killed.
	InProcess bool
}

// Faults lists where a greedy generation of the case's prompt differs from the reference. It may be shorter than
// Expected.
func (c Case) Faults(g Generation) []string {
	f := &faults{}
	if g.Caps.TokenIDs {
		c.ids(f, g)
	} else if c.PromptIDs != nil && g.Prompted() != len(c.PromptIDs) {
		f.add("%d prompt tokens, want %d", g.Prompted(), len(c.PromptIDs))
	}
	text := strings.TrimRight(g.Usage.Text, "\ufffd") // an incomplete character
	switch whole := g.Count() == len(c.Expected); {
	case c.Text == "":
	case whole && g.Usage.Text != c.Text:
		f.add("text %q, want %q", g.Usage.Text, c.Text)
	case !whole && !g.Caps.TokenIDs && !strings.HasPrefix(c.Text, text):
		f.add("the text begins with %q, want %q", text, c.Text)
	}
	return f.list
}

func (c Case) ids(f *faults, g Generation) {
	if c.PromptIDs != nil && !slices.Equal(g.Usage.PromptIDs, c.PromptIDs) {
		f.add("prompt ids %v, want %v", g.Usage.PromptIDs, c.PromptIDs)
	}
	if n := len(g.Tokens); c.Expected != nil && (n > len(c.Expected) || !slices.Equal(g.IDs(), c.Expected[:n])) {
		f.add("ids  %v,\nwant %v", g.IDs(), c.Expected)
	}
}

// After patience a call is cancelled and its test fails; after watchdog the test program ends with all stacks.
const (
	patience = 4 * time.Minute
	watchdog = patience + time.Minute
)

// Run runs the suite: five loads in four launches, a launch whose load is cancelled, and launches closed during the
// load.
func Run(t *testing.T, c Case) {
	if c.Expected != nil {
		c.MaxTokens = len(c.Expected)
	} else if c.MaxTokens == 0 {
		c.MaxTokens = 16
	}
	left := leftovers(t)
	t.Run("session", c.session)
	t.Run("killed", c.killed)
	t.Run("closed", c.closed)
	t.Run("cancelled load", c.cancelledLoad)
	t.Run("closed load", c.closedLoad)
	left()
}

// launch is an open session.
type launch struct {
	Case
	engine  engine.Engine
	session engine.Session
	probe   *Probe
}

func (c Case) open(t *testing.T) *launch {
	t.Helper()
	e := c.New(t)
	l := &launch{Case: c, engine: e, probe: &Probe{}}
	ctx := limit(t)
	if p, ok := e.(engine.Preparer); ok {
		if err := p.Prepare(ctx, c.Model, func(s string) { t.Log(s) }); err != nil {
			t.Fatalf("Prepare: %v", err)
		}
	}
	opening, opened := context.WithCancel(ctx)
	s, err := e.Open(opening, l.probe)
	opened() // the session lives on
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	l.session = s
	t.Cleanup(func() {
		l.close(t) // twice in every test that closes by itself
		if said := l.probe.lastWords(); t.Failed() && said != "" {
			t.Log(said)
		}
	})
	return l
}

func (l *launch) load(t *testing.T) {
	t.Helper()
	begin, before := time.Now(), len(l.probe.Spans())
	l.within("Load", func() {
		loading, loaded := context.WithCancel(limit(t))
		defer loaded() // the model stays
		if err := l.session.Load(loading, l.Model); err != nil {
			t.Fatalf("Load: %v", err)
		}
	})
	end := time.Now()
	spans := l.probe.Spans()[before:]
	if len(spans) == 0 {
		t.Error("Load reported no stage")
	}
	f := &faults{slack: l.slack()}
	for _, s := range spans {
		f.exactly("load stage "+s.Name+"'s begin and end", s.Begin, s.End)
		f.ordered("load, stage "+s.Name, begin, s.Begin)
		f.ordered("stage "+s.Name+", end of load", s.End, end)
		if s.How == "" {
			f.add("load stage %s does not say how its limits were measured", s.Name)
		}
	}
	report(t, f.list)
}

func (l *launch) unload(t *testing.T) {
	t.Helper()
	l.within("Unload", func() {
		if err := l.session.Unload(limit(t)); err != nil {
			t.Errorf("Unload: %v", err)
		}
	})
}

func (l *launch) close(t *testing.T) {
	t.Helper()
	l.within("Close", func() {
		if err := l.session.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	if n := len(l.probe.Attached()); n != 0 {
		t.Errorf("%d sources are still attached after Close", n)
	}
}

// slack is the largest clock error that the engine reported.
func (l *launch) slack() time.Duration {
	var worst int64
	for _, e := range l.probe.Events() {
		if e.Clock != nil {
			worst = max(worst, e.Clock.ErrorNS)
		}
	}
	return time.Duration(worst)
}

func (l *launch) request(n int) engine.Request {
	return engine.Request{Prompt: l.Prompt, MaxTokens: n, IgnoreEOS: l.engine.Caps().IgnoreEOS}
}

// generate runs r. on, which may be nil, sees every token.
func (l *launch) generate(ctx context.Context, t *testing.T, r engine.Request, on func(record.Token)) (
	Generation, error) {
	t.Helper()
	var err error
	g := Generation{Caps: l.engine.Caps(), MaxTokens: r.MaxTokens, Called: time.Now()}
	l.within("Generate", func() {
		g.Usage, err = l.session.Generate(ctx, r, func(tok record.Token) {
			g.Tokens = append(g.Tokens, tok)
			if on != nil {
				on(tok)
			}
		})
	})
	g.Returned = time.Now()
	return g, err
}

// right generates n tokens and checks everything that is known about them.
func (l *launch) right(t *testing.T, n int) Generation {
	t.Helper()
	g, err := l.generate(limit(t), t, l.request(n), nil)
	if err != nil {
		t.Fatalf("Generate: %v", err)
	}
	report(t, append(g.Faults(l.slack()), l.Faults(g)...))
	return g
}

func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// within ends the test program with all stacks and the engine's output if f hangs.
func (l *launch) within(what string, f func()) {
	dog := time.AfterFunc(watchdog, func() { panic("enginetest: " + what + " hangs" + l.probe.lastWords()) })
	defer dog.Stop()
	f()
}

func report(t *testing.T, list []string) {
	t.Helper()
	for _, s := range list {
		t.Error(s)
	}
}

// leftovers notes the processes, folders and goroutines; the function it returns checks that there are no new ones.
func leftovers(t *testing.T) func() {
	list := func() []string {
		profiles, _ := filepath.Glob(filepath.Join(os.TempDir(), "chromedp-runner*")) // the pattern is valid
		return append(profiles, child.Scratches(os.Getpid())...)
	}
	dirs, pids, goroutines := list(), child.Tagged(os.Getpid()), goleak.IgnoreCurrent()
	return func() {
		t.Helper()
		deadline := time.Now().Add(time.Minute) // the children of a killed browser take a moment to end
		for {
			newDirs, newPIDs := added(list(), dirs), added(child.Tagged(os.Getpid()), pids)
			if len(newDirs)+len(newPIDs) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("left behind: processes %v, folders %v", newPIDs, newDirs)
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		goleak.VerifyNone(t, goroutines)
	}
}

func added[T comparable](now, before []T) []T {
	return slices.DeleteFunc(now, func(x T) bool { return slices.Contains(before, x) })
}

func isTooLong(err error) bool {
	return fault.Of(err) == fault.PromptTooLong && !strings.Contains(err.Error(), "\n")
}
