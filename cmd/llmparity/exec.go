package main

import (
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/native/protocol"
)

// execKind are engines of one's own: exec:PATH, exec:PATH ARGUMENTS… or exec:NAME=PATH ARGUMENTS….
func execKind() engineKind {
	return engineKind{name: protocol.Prefix, flags: []string{"watchdog"}, asks: true,
		wrong: func(rest string) error {
			_, err := protocol.ParseCommand(rest)
			if err == nil {
				return nil
			}
			return fault.New(fault.Usage, "write exec:./my-engine, or 'exec:./my-engine --its-flag'", "engine %q: %v",
				protocol.Prefix+rest, err)
		},
		called: func(rest string) string {
			c, _ := protocol.ParseCommand(rest) // which wrong has looked at
			return protocol.Prefix + c.Name
		},
		make: func(f *engineFlags, name string) engine.Engine {
			c, _ := protocol.ParseCommand(strings.TrimPrefix(name, protocol.Prefix)) // which wrong has looked at
			return protocol.New(protocol.Config{Command: c, Silence: f.place.watchdog})
		}}
}
