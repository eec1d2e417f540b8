package main

import (
	"fmt"

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
