package main

import "testing"

// The command that continues an interrupted run names what its plan does not have, quoted for a shell.
func TestCommandThatContinues(t *testing.T) {
	lightTest(t)
	c := runCommand()
	check(t, c.ParseFlags([]string{"--model", "my.gguf", "--llama-server", "/opt/my server/llama-server", "--baseline",
		"main", "--strict", "--out", "runs"}))
	const want = ` --baseline=main --llama-server='/opt/my server/llama-server' --strict`
	if got := again(c.Flags()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for word, want := range map[string]string{
		"results/a-1": "results/a-1", "it's": `'it'\''s'`, "": "''", "$x": "'$x'"} {
		if got := inShell(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
