package enginetest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// Open opens a session that is closed at the end of the test.
func Open(t testing.TB, e engine.Engine) (engine.Session, *Probe) {
	t.Helper()
	p := &Probe{}
	s, err := e.Open(t.Context(), p)
	check.Err(t, err)
	t.Cleanup(func() { s.Close() })
	return s, p
}

// Load loads a model into a session.
func Load(t testing.TB, s engine.Session, m models.Model) {
	t.Helper()
	check.Err(t, s.Load(t.Context(), m))
}

// OneLine checks an error: its kind, its class, that it is one line, and that it contains words.
func OneLine(t testing.TB, err error, kind fault.Kind, class record.Class, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want class %s", class)
	}
	if fault.Of(err) != kind || engine.ClassOf(err) != class || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v: kind %s, class %s; want one line of kind %s, class %s", err, fault.Of(err), engine.ClassOf(err), kind,
			class)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v: lacks %q", err, w)
		}
	}
}

// Warned returns the texts of the warnings with a code.
func (p *Probe) Warned(code string) (texts []string) {
	for _, w := range p.Warnings() {
		if w.Code == code {
			texts = append(texts, w.Text)
		}
	}
	return texts
}

// PIDs returns the processes that are sampled in a role.
func (p *Probe) PIDs(role string) (pids []int) {
	for _, s := range p.Attached() {
		if d := s.Describe(); d.Role == role && d.PID != 0 && !slices.Contains(pids, d.PID) {
			pids = append(pids, d.PID)
		}
	}
	return pids
}

// Values reads the attached sources of a method and returns their values by name; empty if there are none.
func (p *Probe) Values(t testing.TB, method string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, s := range p.Attached() {
		if s.Describe().Method == method {
			maps.Copy(values, Read(t, s))
		}
	}
	return values
}

// Figures reads the attached source of a method and a role.
func (p *Probe) Figures(t testing.TB, method, role string) map[string]float64 {
	t.Helper()
	return Read(t, Source(t, p.Attached(), method, role))
}

// Source returns the one of several sources that has a method and a role.
func Source(t testing.TB, all []sample.Source, method, role string) sample.Source {
	t.Helper()
	for _, s := range all {
		if d := s.Describe(); d.Method == method && d.Role == role {
			return s
		}
	}
	t.Fatalf("no source reads the %s by %s", role, method)
	return nil
}

// Read returns a source's values by name.
func Read(t testing.TB, s sample.Source) map[string]float64 {
	t.Helper()
	r, values := record.NewSample(), map[string]float64{}
	if err := s.Read(t.Context(), &r); err != nil {
		t.Fatalf("%+v: %v", s.Describe(), err)
	}
	for _, v := range r.Values {
		values[v.Name] = v.Value
	}
	return values
}

// Generate runs a request.
func Generate(ctx context.Context, s engine.Session, r engine.Request) (g Generation, err error) {
	g = Generation{MaxTokens: r.MaxTokens, Called: time.Now()}
	g.Usage, err = s.Generate(ctx, r, func(k record.Token) { g.Tokens = append(g.Tokens, k) })
	g.Returned = time.Now()
	return g, err
}
