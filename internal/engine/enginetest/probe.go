package enginetest

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// Probe keeps what an engine tells the runner. The zero value is ready.
type Probe struct {
	mu       sync.Mutex
	sources  []*attached
	spans    []record.Span
	events   []record.Event
	warnings []record.Warning
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

// Attach keeps a source until it is detached; nothing reads it but the suite.
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

// Span keeps a load stage.
func (p *Probe) Span(s record.Span) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spans = append(p.spans, s)
}

// Event keeps an event.
func (p *Probe) Event(e record.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
}

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

// Logged gives what was written to a log, and whether it was closed.
func (p *Probe) Logged(name string) (text string, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.logs[name]
	if !ok {
		return "", false
	}
	return string(l.text), l.closed
}

// lastWords are the ends of all logs, for people who look for what went wrong; empty where there are none.
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

// Warn keeps a warning.
func (p *Probe) Warn(w record.Warning) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.warnings = append(p.warnings, w)
}

// Attached gives the sources that were attached and not detached since.
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

// Spans gives the load stages so far.
func (p *Probe) Spans() []record.Span {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.spans)
}

// Events gives the events so far.
func (p *Probe) Events() []record.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.events)
}

// Warnings gives the warnings so far.
func (p *Probe) Warnings() []record.Warning {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.warnings)
}

// Engine gives the last description of the engine, nil when there was none.
func (p *Probe) Engine() *record.EngineInfo {
	var info *record.EngineInfo
	for _, e := range p.Events() {
		if e.Engine != nil {
			info = e.Engine
		}
	}
	return info
}

// Device gives the last description of the device, nil when there was none.
func (p *Probe) Device() *record.Device {
	var device *record.Device
	for _, e := range p.Events() {
		if e.Device != nil {
			device = e.Device
		}
	}
	return device
}
