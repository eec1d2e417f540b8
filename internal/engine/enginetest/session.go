package enginetest

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// session tests a whole life in one launch.
func (c Case) session(t *testing.T) {
	l := c.open(t)
	l.check(t)
	if resident, n := l.engine.Caps().Resident, len(l.probe.Attached()); resident != (n > 0) {
		t.Errorf("Caps.Resident is %v but %d sources are attached before the load", resident, n)
	}
	l.load(t)
	l.described(t)
	l.readable(t)

	var first Generation
	t.Run("generate", func(t *testing.T) { first = l.right(t, l.MaxTokens) })
	t.Run("again", func(t *testing.T) {
		if again := l.right(t, l.MaxTokens); !first.Same(again) {
			t.Errorf("two greedy generations differ:\n%v\n%v", first, again)
		}
	})
	t.Run("one token", func(t *testing.T) { l.right(t, 1) })
	t.Run("cancel", func(t *testing.T) { l.cancel(t, first) })
	t.Run("prompt too long", l.tooLong)
	t.Run("after trouble", func(t *testing.T) { l.right(t, l.MaxTokens) })
	t.Run("at once", func(t *testing.T) {
		if l.engine.Caps().Requests == 1 {
			l.refused(t, first)
		} else {
			l.sideBySide(t)
		}
	})
	t.Run("scores", func(t *testing.T) { l.scores(t, first) })
	t.Run("restart", func(t *testing.T) { l.restart(t, first) })

	l.unload(t)
	l.close(t)
	if _, err := l.generate(limit(t), t, l.request(1), nil); err == nil {
		t.Error("Generate after Close gives no error")
	}
}

func (l *launch) check(t *testing.T) {
	if err := l.engine.Check(limit(t), l.Model); err != nil {
		t.Errorf("Check: %v", err)
	}
	missing := l.Model
	missing.Path += ".missing"
	if l.engine.Caps().Served {
		missing.Name, missing.Path = missing.Name+"-missing", ""
	}
	if err := l.engine.Check(limit(t), missing); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("Check of a missing model returns %v, want one line", err)
	}
}

// described checks the descriptions that a record needs once the model is loaded.
func (l *launch) described(t *testing.T) {
	if info := l.probe.Engine(); info == nil {
		t.Error("no event describes the engine")
	} else if info.Name != l.engine.Name() || info.Version == "" || len(info.Policy) == 0 {
		t.Errorf("the engine's description lacks its name, version or policy: %+v", *info)
	}
	if device := l.probe.Device(); device == nil {
		t.Error("no event describes the device")
	} else if device.Class == "" || device.Name == "" {
		t.Errorf("the device's description lacks its class or name: %+v", *device)
	}
	for _, w := range l.probe.Warnings() {
		if w.Code == "" || w.Text == "" || strings.Contains(w.Text, "\n") {
			t.Errorf("a warning is empty or longer than a line: %+v", w)
		}
	}
}

// readable checks that every source belongs to a living process and returns a figure.
func (l *launch) readable(t *testing.T) {
	sources := l.probe.Attached()
	if len(sources) == 0 {
		t.Error("no source is attached after the load")
	}
	for _, s := range sources {
		d := s.Describe()
		// What a server reports about itself belongs to no process.
		if d.Role == "" || d.Method == "" || d.Sees == "" || d.Blind == "" || d.PID != 0 && !child.Alive(d.PID) {
			t.Errorf("a source's description is incomplete, or its process is gone: %+v", d)
		}
		if err := readOne(t.Context(), s); err != nil {
			t.Errorf("reading %s by %s: %v", d.Role, d.Method, err)
		}
	}
}

func readOne(ctx context.Context, s sample.Source) error {
	got := record.NewSample()
	if err := s.Read(ctx, &got); err != nil {
		return err
	}
	if got.Begin.IsZero() || got.End.Before(got.Begin) {
		return errors.New("the sample has no begin and end")
	}
	if max(got.RSS, got.VMS, got.PSS, got.USS, got.HWM) <= 0 && len(got.Values) == 0 {
		return errors.New("the sample has no figure")
	}
	return nil
}

// most is the longest generation that fits after the prompt.
func (l *launch) most(known Generation) int { return l.Model.Context - known.Prompted() - 1 }

// cancel stops a long generation at its third token.
func (l *launch) cancel(t *testing.T, known Generation) {
	ctx, cancel := context.WithCancel(limit(t))
	defer cancel()
	r := l.request(l.most(known))
	g, err := l.generate(ctx, t, r, func(tok record.Token) {
		if tok.Index == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled Generate returns %v, want a context error", err)
	}
	if n := len(g.Tokens); n < 3 || n >= r.MaxTokens {
		t.Errorf("a generation of %d tokens, cancelled at its third, yields %d", r.MaxTokens, n)
	}
	l.right(t, l.MaxTokens)
}

func (l *launch) tooLong(t *testing.T) {
	r := l.request(1)
	// No common tokeniser makes one token from sixteen bytes of plain prose again and again.
	r.Prompt = strings.Repeat(l.Prompt+" ", 1+l.Model.Context*16/len(l.Prompt+" "))
	g, err := l.generate(limit(t), t, r, nil)
	if !isTooLong(err) {
		t.Errorf("a prompt longer than the context gives %v, want one line of kind PromptTooLong", err)
	}
	if len(g.Tokens) != 0 {
		t.Errorf("a prompt longer than the context yields %d tokens", len(g.Tokens))
	}
	// A prompt that fits, with more tokens requested than there is room. An engine that cannot count prompt tokens
	// notices only at the end.
	g, err = l.generate(limit(t), t, l.request(l.Model.Context), nil)
	shorter := err == nil && !l.engine.Caps().TokenIDs && g.Usage.Finish != "" && g.Count() < l.Model.Context
	switch {
	case shorter:
		t.Logf("more tokens than the context holds: %d came, finish %q", g.Count(), g.Usage.Finish)
	case !isTooLong(err):
		t.Errorf("more tokens than the context holds give %v, want one line of kind PromptTooLong", err)
	case l.engine.Caps().TokenIDs && len(g.Tokens) != 0:
		t.Errorf("more tokens than the context holds yield %d", len(g.Tokens))
	}
	l.right(t, l.MaxTokens)
}

// kill ends a sampled process. It may be gone already, because a process has several sources.
func kill(pid int) {
	if pid == 0 || pid == os.Getpid() {
		return
	}
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

// killed ends every sampled process during a generation.
func (c Case) killed(t *testing.T) {
	if c.InProcess {
		t.Skip("the engine has no process of its own")
	}
	l, g, err := c.kill(t)
	for try := 1; err == nil && try < 20; try++ { // on a busy machine everything may have been sent before the kill
		l.close(t)
		l, g, err = c.kill(t)
	}
	if class := engine.ClassOf(err); err == nil || (class != record.Crash && class != record.DeviceLost) {
		t.Errorf("killed during a generation: error %v of class %q, want a crash", err, class)
	}
	if len(g.Tokens) < 3 {
		t.Errorf("%d tokens before the kill at the third", len(g.Tokens))
	}
	report(t, g.BrokenFaults(l.slack()))
	if _, err := l.generate(limit(t), t, l.request(1), nil); err == nil {
		t.Error("Generate after a crash gives no error")
	}
	l.close(t)
	after := c.open(t)
	after.load(t)
	after.right(t, after.MaxTokens)
	after.close(t)
}

// kill starts a generation and ends all processes at its third token.
func (c Case) kill(t *testing.T) (*launch, Generation, error) {
	l := c.open(t)
	l.load(t)
	g, err := l.generate(limit(t), t, l.request(l.Model.Context/2), func(tok record.Token) {
		if tok.Index != 2 {
			return
		}
		for _, s := range l.probe.Attached() {
			kill(s.Describe().PID)
		}
	})
	return l, g, err
}

// closed closes the session during a generation.
func (c Case) closed(t *testing.T) {
	l := c.open(t)
	l.load(t)
	done := make(chan struct{})
	_, err := l.generate(limit(t), t, l.request(l.Model.Context/2), func(tok record.Token) {
		if tok.Index == 2 {
			go func() {
				defer close(done)
				l.close(t)
			}()
			time.Sleep(50 * time.Millisecond) // let it interfere; a late Close is fine, too
		}
	})
	l.within("Close", func() { <-done })
	if err == nil {
		t.Error("Generate returns no error although the session was closed during it")
	}
	if _, err := l.generate(limit(t), t, l.request(1), nil); err == nil {
		t.Error("Generate after Close gives no error")
	}
}

// cancelledLoad cancels the load soon after its begin.
func (c Case) cancelledLoad(t *testing.T) {
	l := c.open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	l.within("Load", func() {
		// A load that has finished by then is fine.
		if err := l.session.Load(ctx, l.Model); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a cancelled Load returns %v, want a context error", err)
		}
	})
	l.unload(t)
	l.close(t)
}

// closedLoad closes the session just before, during or just after the load.
func (c Case) closedLoad(t *testing.T) {
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 300 * time.Millisecond} {
		l := c.open(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(after)
			l.close(t)
		}()
		l.within("Load", func() {
			err := l.session.Load(limit(t), l.Model)
			t.Logf("closed after %v: Load returns %v", after, err)
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("a Load that is closed returns more than a line: %v", err)
			}
		})
		<-done
		if n := len(l.probe.Attached()); n != 0 {
			t.Errorf("closed %v into Load: %d sources are still attached", after, n)
		}
		if _, err := l.generate(limit(t), t, l.request(1), nil); err == nil {
			t.Error("Generate after Close gives no error")
		}
	}
}
