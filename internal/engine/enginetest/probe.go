package enginetest

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// Probe keeps what an engine reports. The zero value is ready.
type Probe struct {
	mu       sync.Mutex
	spans    []record.Span
	events   []record.Event
	warnings []record.Warning
	sources  []*attached
	logs     map[string]*log
}

// log keeps what is written to it.
type log struct {
	probe  *Probe
	text   []byte
	closed bool
}

func (l *log) Write(b []byte) (int, error) {
	l.probe.mu.Lock()
	defer l.probe.mu.Unlock()
	l.text = append(l.text, b...)
	return len(b), nil
}

func (l *log) Close() error {
	l.probe.mu.Lock()
	defer l.probe.mu.Unlock()
	l.closed = true
	return nil
}

type attached struct {
	sample.Source
	detached bool
}

var _ engine.Probe = (*Probe)(nil)

// Attach keeps a source until it is detached; only the suite reads it.
func (p *Probe) Attach(s sample.Source) func() {
	a := &attached{Source: s}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sources = append(p.sources, a)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if c, ok := s.(io.Closer); ok && !a.detached {
			_ = c.Close() // as the sampler does
		}
		a.detached = true
	}
}

// keep adds a report to a list of the probe's.
func keep[T any](p *Probe, to *[]T, one T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*to = append(*to, one)
}

// list returns the reports so far.
func list[T any](p *Probe, all *[]T) []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(*all)
}

// Span keeps a load stage.
func (p *Probe) Span(s record.Span) { keep(p, &p.spans, s) }

// Spans returns the load stages so far.
func (p *Probe) Spans() []record.Span { return list(p, &p.spans) }

// Event keeps an event.
func (p *Probe) Event(e record.Event) { keep(p, &p.events, e) }

// Events returns the events so far.
func (p *Probe) Events() []record.Event { return list(p, &p.events) }

// Warn keeps a warning.
func (p *Probe) Warn(w record.Warning) { keep(p, &p.warnings, w) }

// Warnings returns the warnings so far.
func (p *Probe) Warnings() []record.Warning { return list(p, &p.warnings) }

// Log keeps what an engine prints.
func (p *Probe) Log(name string) io.WriteCloser {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.logs == nil {
		p.logs = map[string]*log{}
	}
	p.logs[name] = &log{probe: p}
	return p.logs[name]
}

// Logged returns the contents of a log and whether it was closed.
func (p *Probe) Logged(name string) (text string, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.logs[name]
	if !ok {
		return "", false
	}
	return string(l.text), l.closed
}

// lastWords returns the ends of all logs, to find out what went wrong; empty if there are none.
func (p *Probe) lastWords() string {
	const most = 8 << 10 // of each
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.logs)) {
		text := p.logs[name].text
		fmt.Fprintf(&b, "\nthe end of %s's log:\n%s", name, text[max(0, len(text)-most):])
	}
	return b.String()
}

// Attached returns the sources that are still attached.
func (p *Probe) Attached() []sample.Source {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []sample.Source
	for _, a := range p.sources {
		if !a.detached {
			out = append(out, a.Source)
		}
	}
	return out
}

// Engine returns the latest description of the engine; nil if there is none.
func (p *Probe) Engine() *record.EngineInfo {
	return last(p, func(e record.Event) *record.EngineInfo { return e.Engine })
}

// Device returns the latest description of the device; nil if there is none.
func (p *Probe) Device() *record.Device {
	return last(p, func(e record.Event) *record.Device { return e.Device })
}

func last[T any](p *Probe, of func(record.Event) *T) *T {
	for _, e := range slices.Backward(p.Events()) {
		if one := of(e); one != nil {
			return one
		}
	}
	return nil
}
