package enginetest

import (
	"strings"
	"testing"

	"llmparity/internal/check"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
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
func Load(t testing.TB, s engine.Session, m engine.Model) {
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

// Values reads the attached sources of a method and returns their values by name; empty if there are none.
func (p *Probe) Values(t testing.TB, method string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, s := range p.Attached() {
		if s.Describe().Method != method {
			continue
		}
		r := record.NewSample()
		check.Err(t, s.Read(t.Context(), &r))
		for _, v := range r.Values {
			values[v.Name] = v.Value
		}
	}
	return values
}
