package protocol

import (
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
)

// Kind is the kind of external engines: exec:PATH, exec:PATH ARGUMENTS… or exec:NAME=PATH ARGUMENTS….
var Kind = &engine.Kind{
	Name: Prefix, Title: "external engine", Shared: []string{"watchdog"},
	Axes: []string{engine.AxisThreads}, Asks: true,
	Found: func(engine.Here) engine.Finding {
		return engine.Finding{Name: Prefix + "PATH", Can: "run your own program as an engine (docs/howto/add-an-engine.md)"}
	},
	Called: func(rest string) (string, error) {
		c, err := ParseCommand(rest)
		if err != nil {
			return "", fault.New(fault.Usage, "write exec:./my-engine or 'exec:./my-engine --its-flag'",
				"engine %q: %v", Prefix+rest, err)
		}
		return Prefix + c.Name, nil
	},
	New: func(name string, _ engine.Config, s engine.Settings) engine.Engine {
		c, _ := ParseCommand(strings.TrimPrefix(name, Prefix)) // validated by Called
		return New(Config{Command: c, Silence: s.Watchdog})
	},
}
