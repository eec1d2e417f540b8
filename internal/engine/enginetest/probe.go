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

// Probe keeps what an engine reports. The zero value is ready.
type Probe struct {
	spans    kept[record.Span]
	events   kept[record.Event]
	warnings kept[record.Warning]

	mu      sync.Mutex
	sources []*attached
	logs    map[string]*log
}

// kept is a list of reports, in order.
type kept[T any] struct {
	mu  sync.Mutex
	all []T
}

func (k *kept[T]) add(one T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, one)
}

func (k *kept[T]) list() []T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.all)
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

// Span keeps a load stage.
func (p *Probe) Span(s record.Span) { p.spans.add(s) }

// Event keeps an event.
func (p *Probe) Event(e record.Event) { p.events.add(e) }

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

// Warn keeps a warning.
func (p *Probe) Warn(w record.Warning) { p.warnings.add(w) }

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

// Spans returns the load stages so far.
func (p *Probe) Spans() []record.Span { return p.spans.list() }

// Events returns the events so far.
func (p *Probe) Events() []record.Event { return p.events.list() }

// Warnings returns the warnings so far.
func (p *Probe) Warnings() []record.Warning { return p.warnings.list() }

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
