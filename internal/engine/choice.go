package engine

import "llmparity/internal/models"

// Choice holds the engines that flags and a plan select. One name always gives the same engine, so that what it finds
// out about the machine is found out once.
type Choice struct {
	Kinds    Kinds
	Settings Settings

	configs map[string]Config // by section
	made    map[string]Engine
}

// NewChoice returns a Choice with each engine's default configuration.
func NewChoice(kinds Kinds) *Choice { return (&Choice{Kinds: kinds}).With(Settings{}, nil) }

// Config returns the configuration of a kind; nil if it has none.
func (c *Choice) Config(k *Kind) Config { return c.configs[k.Section] }

// With returns a copy with a plan's settings and sections applied. The copy makes engines of its own.
func (c *Choice) With(s Settings, said map[string]Section) *Choice {
	out := &Choice{Kinds: c.Kinds, Settings: s, configs: map[string]Config{}, made: map[string]Engine{}}
	for _, k := range c.Kinds.Sections() {
		own := clone(k, c.configs[k.Section])
		Take(own, said[k.Section])
		out.configs[k.Section] = own
	}
	return out
}

// Complete returns an engine's section with the defaults for a model filled in; nil if there is nothing to fill in.
func (c *Choice) Complete(k *Kind, m models.Model) Section {
	if k.Config == nil {
		return nil
	}
	config := clone(k, c.configs[k.Section])
	completer, ok := config.(Completer)
	if !ok {
		return nil
	}
	completer.Complete(c.Settings, m)
	return Said(config)
}

// Engine returns the engine of a known name, always the same one.
func (c *Choice) Engine(name string) Engine {
	if e, ok := c.made[name]; ok {
		return e
	}
	k, _ := c.Kinds.Of(name)
	if k == nil {
		panic("unknown engine " + name) // Kinds.Known comes first
	}
	c.made[name] = k.New(name, c.configs[k.Section], c.Settings)
	return c.made[name]
}
