// Package once opens an engine and loads its model, to generate a text or to profile it. It measures nothing.
package once

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// Session is an open engine with a model.
type Session struct {
	engine.Session
	Probe *Probe
	Took  time.Duration // of the load
}

// Open opens an engine and loads a model. Warnings are lines of out. An engine that got less than was asked for is an
// error, unless that is allowed.
func Open(ctx context.Context, e engine.Engine, m models.Model, out io.Writer, allowed bool) (*Session, error) {
	p := &Probe{out: out, allowed: allowed}
	session, err := e.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err = session.Load(ctx, m); err == nil {
		err = p.Asked()
	}
	if err != nil {
		_ = session.Close() // only the first error matters
		return nil, err
	}
	return &Session{Session: session, Probe: p, Took: time.Since(begin)}, nil
}

// Text generates a text, and prints it with counts and times.
func (s *Session) Text(ctx context.Context, r engine.Request, out io.Writer) error {
	pieces := 0
	u, err := s.Generate(ctx, r, func(record.Token) { pieces++ })
	if err = cmp.Or(err, s.Probe.Asked()); err != nil { // what it computes with, some engines know now
		return err
	}
	fmt.Fprintf(out, "%s\n\n", u.Text)
	s.taken(out, u, pieces)
	return nil
}

// taken prints token counts and times of a generation.
func (s *Session) taken(out io.Writer, u record.Usage, pieces int) {
	fmt.Fprintf(out, "%s %s\n", s.Probe.Engine.Name, s.Probe.Engine.Version)
	cached := fmt.Sprintf("%d cached", u.CachedTokens)
	if u.CachedTokens == record.CacheUnknown {
		cached = "cached tokens not reported"
	}
	fmt.Fprintf(out, "prompt     %d tokens, %s\n", max(u.PromptTokens, len(u.PromptIDs)), cached)
	n := cmp.Or(u.Generated, pieces)
	fmt.Fprintf(out, "generated  %d tokens in %d pieces, finish reason: %s\n", n, pieces, u.Finish)
	fmt.Fprintf(out, "load       %s\n", inSeconds(s.Took))
	for _, span := range u.Spans {
		took := span.End.Sub(span.Begin)
		rate := ""
		// with fewer pieces the times of tokens are unknown
		if span.Name == record.Decode && n > 1 && took > 0 && 10*pieces >= 9*n {
			rate = fmt.Sprintf(", %.2f tokens/s", float64(n-1)/took.Seconds())
		}
		fmt.Fprintf(out, "%-10s %s%s (%s)\n", span.Name, inSeconds(took), rate, span.How)
	}
	for _, name := range slices.Sorted(maps.Keys(u.Reported)) {
		if strings.HasSuffix(name, "_duration") { // in nanoseconds
			fmt.Fprintf(out, "reported   %s %s\n", name, inSeconds(time.Duration(u.Reported[name])))
			continue
		}
		fmt.Fprintf(out, "reported   %s %g\n", name, u.Reported[name])
	}
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.4g s", d.Seconds()) }

// Probe prints warnings, and keeps the engine, its device and its processes. It samples nothing.
type Probe struct {
	engine.Unmeasured
	Engine  record.EngineInfo
	PIDs    []int // of its processes
	Workers []int // those that compute for others
	out     io.Writer
	allowed bool
	device  *record.Device // not yet judged; nil: none
	ran     []ran.Row      // not yet judged
}

// Asked judges what the engine has reported of its device and of what else was asked for.
func (p *Probe) Asked() error {
	if p.device != nil {
		w, err := engine.Asked(*p.device, p.allowed)
		if err != nil {
			return err
		}
		if w != nil {
			p.Warn(*w)
		}
	}
	warnings, err := engine.AskedAlso(p.ran, p.allowed)
	for _, w := range warnings {
		p.Warn(w)
	}
	p.device, p.ran = nil, nil
	return err
}

// Warn prints a warning.
func (p *Probe) Warn(w record.Warning) { fmt.Fprintf(p.out, "warning: %s (%s)\n", w.Text, w.Code) }

// Event keeps what the engine reports.
func (p *Probe) Event(e record.Event) {
	if e.Engine != nil {
		p.Engine = *e.Engine
	}
	if e.Device != nil {
		p.device = e.Device
	}
	p.ran = append(p.ran, e.Ran...)
}

// Attach keeps the process of a source, which is never read.
func (p *Probe) Attach(s sample.Source) func() {
	d := s.Describe()
	if d.PID > 0 && !slices.Contains(p.PIDs, d.PID) {
		p.PIDs = append(p.PIDs, d.PID)
	}
	if d.PID > 0 && d.Role == "worker" { // some say so only after a while, and come again
		p.Workers = append(p.Workers, d.PID)
	}
	return p.Unmeasured.Attach(s)
}
