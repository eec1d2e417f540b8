package llamacpp

import (
	"fmt"

	"llmparity/internal/fault"
	"llmparity/native/program"
)

// Environment variables that name programs.
const (
	PathVariable = "LLMPARITY_LLAMA_SERVER"
	CLIVariable  = "LLMPARITY_LLAMA_CLI"
)

func serverProgram() program.Program {
	return llamaProgram([]string{"llama-server"}, "--llama-server", PathVariable, "make setup")
}

// completionProgram was once llama-cli, and main before that. Newer llama-cli is a chat client, which its help
// reveals.
func completionProgram() program.Program {
	return llamaProgram([]string{"llama-completion", "llama-cli"}, "--llamacpp-cli", CLIVariable,
		"scripts/setup llamacpp-tools")
}

func llamaProgram(names []string, flag, variable, build string) program.Program {
	return program.Program{Names: names, Build: "llamacpp/current/bin", Flag: flag, Variable: variable,
		Kind: fault.NoLlamaServer,
		Do:   fmt.Sprintf("run `%s`, put it on PATH, or set %s", build, flag)}
}

// Find searches for llama-server at the given path, then on PATH, then in the cache.
func Find(c Config) (string, error) { return serverProgram().Find(c.Path, c.Cache) }

// FindCLI searches for the one-shot program in the same places.
func FindCLI(c Config) (string, error) { return completionProgram().Find(c.CLI, c.Cache) }
