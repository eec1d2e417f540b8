package openai

import (
	"context"
	"maps"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/record"
)

// Started is a server that another engine has started, samples and ends.
type Started struct {
	PID  int
	Tree *proc.Tree
	// Info describes the engine and its program. What the server says about itself is added.
	Info record.EngineInfo
	// Sizes are what its log says, under the names of records.
	Sizes map[string]float64
}

// with returns the description of the engine with what the server says.
func (s *Started) with(said record.EngineInfo) record.EngineInfo {
	info := s.Info
	info.Version = said.Version
	delete(said.Parts, "url") // its port is another at each start
	maps.Copy(said.Parts, info.Parts)
	maps.Copy(said.Policy, info.Policy)
	info.Parts, info.Policy = said.Parts, said.Policy
	return info
}

// Session is a session on a server that another engine has started. Close leaves the server alone.
type Session interface {
	engine.Session
	engine.Scorer
}

// Join opens a session on a server that is ready.
func (e *Engine) Join(ctx context.Context, p engine.Probe, started Started) (Session, error) {
	of, err := e.reach(ctx)
	if err != nil {
		return nil, err
	}
	s := of.session(e.config, p)
	s.started, s.pid, s.tree = &started, started.PID, started.Tree
	p.Event(record.Event{At: time.Now(), Device: new(s.stated())})
	s.watchMetrics(ctx)
	return s, nil
}

// Abilities are what a kind of server, by its title, will be able to do in an API, as far as that is known before it
// runs.
func Abilities(title, version, api string) engine.Caps {
	s := &found{server: server{kind: kind(title), version: version}, api: api}
	return s.caps()
}
