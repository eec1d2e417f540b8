package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"llmparity/internal/fault"
)

// formerCodes are the exit codes of classes before 0.1. They are named until the release after it.
var formerCodes = map[fault.Kind]int{
	fault.NoChrome: 10, fault.NoLlamaServer: 11, fault.NoEmscripten: 12, fault.NoPython: 13, fault.NoBundle: 14,
	fault.NoAdapter: 15, fault.BadModel: 16, fault.UnknownArch: 17, fault.PromptTooLong: 18, fault.Unwritable: 19,
	fault.NotSupported: 2, fault.DiskFull: 20, fault.UnknownEngine: 21, fault.NoProgram: 21, fault.BadRecord: 22,
	fault.NoF16:      23,
	fault.BadLibrary: 24, fault.UnknownModel: 25, fault.Download: 26, fault.NoDisplay: 27, fault.NoOllama: 28,
	fault.ServerUnreachable: 29, fault.BadProtocol: 30, fault.NothingToWatch: 31, fault.WontFit: 32,
}

// formerly names the exit code that a class had.
func formerly(class fault.Kind) string {
	if was, ok := formerCodes[class]; ok {
		return fmt.Sprintf(" (exit code %d, formerly %d)", class.ExitCode(), was)
	}
	return ""
}

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
