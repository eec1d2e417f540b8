package llamacpp

import (
	"fmt"

	"llmparity/internal/fault"
	"llmparity/native/program"
)

// Variables of the environment that name programs.
const (
	PathVariable = "LLMPARITY_LLAMA_SERVER"
	CLIVariable  = "LLMPARITY_LLAMA_CLI"
)

func serverProgram() program.Program {
	return llamaProgram([]string{"llama-server"}, "--llama-server", PathVariable, "make setup")
}

// completionProgram was llama-cli, and main before that; llama-cli is a chat client now, which is told when it is asked
// what it can do.
func completionProgram() program.Program {
	return llamaProgram([]string{"llama-completion", "llama-cli"}, "--llamacpp-cli", CLIVariable,
		"scripts/setup llamacpp-tools")
}

func llamaProgram(names []string, flag, variable, build string) program.Program {
	return program.Program{Names: names, Build: "llamacpp/current/bin", Flag: flag, Variable: variable,
		Kind: fault.NoLlamaServer,
		Do:   fmt.Sprintf("run `%s` to build one, put one on PATH, or give its path with %s", build, flag)}
}

// Find looks for llama-server where it was named, then on PATH, then in the cache.
func Find(c Config) (string, error) { return serverProgram().Find(c.Path, c.Cache) }

// FindCLI looks for the one-shot program in the same places.
func FindCLI(c Config) (string, error) { return completionProgram().Find(c.CLI, c.Cache) }
