package engine

// Choice is engines as flags and a plan choose them. The same name gives the same engine: what it finds out about the
// machine it finds out once.
type Choice struct {
	Kinds    Kinds
	Settings Settings

	configs map[string]Config // by section
	made    map[string]Engine
}

// NewChoice chooses nothing yet: all is as it is by default.
func NewChoice(kinds Kinds) *Choice {
	c := &Choice{Kinds: kinds, configs: map[string]Config{}, made: map[string]Engine{}}
	for _, k := range kinds.Sections() {
		c.configs[k.Section] = k.Config()
	}
	return c
}

// Config is that of a kind; nil: it has none.
func (c *Choice) Config(k *Kind) Config { return c.configs[k.Section] }

// With is the same choice, but for what a plan's settings and sections say. It has engines of its own.
func (c *Choice) With(s Settings, said map[string]Section) *Choice {
	out := &Choice{Kinds: c.Kinds, Settings: s, configs: map[string]Config{}, made: map[string]Engine{}}
	for _, k := range c.Kinds.Sections() {
		own := clone(k, c.configs[k.Section])
		Take(own, said[k.Section])
		out.configs[k.Section] = own
	}
	return out
}

// Complete gives the section of an engine with what is chosen by default; nil: nothing is.
func (c *Choice) Complete(k *Kind, m Model) Section {
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

// Engine gives the engine of a name that is known: the same one for the same name.
func (c *Choice) Engine(name string) Engine {
	if e, ok := c.made[name]; ok {
		return e
	}
	k, _ := c.Kinds.Of(name)
	if k == nil {
		panic("an engine that is not known: " + name) // Kinds.Known comes first
	}
	c.made[name] = k.New(name, c.configs[k.Section], c.Settings)
	return c.made[name]
}

// Engines gives those of some names, in their order.
func (c *Choice) Engines(names []string) []Engine {
	var out []Engine
	for _, name := range names {
		out = append(out, c.Engine(name))
	}
	return out
}
