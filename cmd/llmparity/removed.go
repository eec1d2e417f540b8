package main

import (
	"github.com/spf13/cobra"

	"llmparity/internal/kit/fault"
)

// removedCommands name the replacements of removed commands. They are kept until the release after 0.1.
func removedCommands() []*cobra.Command {
	var out []*cobra.Command
	for name, instead := range map[string]string{
		"ollama":   "use \"llmparity generate --engine ollama\"",
		"llamacpp": "use \"llmparity generate --engine llamacpp-oneshot\"",
		"truth":    "see docs/reference/accuracy.md, or run \"go test -tags slow -run Truth ./browser\"",
	} {
		out = append(out, &cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return fault.New(fault.Usage, instead, "the command %s was removed", name)
			}})
	}
	return out
}
