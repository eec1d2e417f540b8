//go:build slow

package llamacpp

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/models/tiny"
	"llmparity/native/program"
	"llmparity/reports"
)

// Our rows of llama-bench have its fields, in their order, and no others but our own; so has the table its columns.
func TestRowsOfLlamaBench(t *testing.T) {
	path, err := program.Program{Names: []string{"llama-bench"}, Build: "llamacpp/current/bin",
		Do: "run scripts/setup llamacpp-tools"}.Find("", cache.Dir(os.Getenv))
	check.Err(t, err)
	model := t.TempDir() + "/tiny.gguf"
	check.Err(t, tiny.WriteFile(model))
	theirs := func(format string) []byte {
		cmd := exec.CommandContext(t.Context(), path, "-m", model, "-p", "8", "-n", "4", "-d", "16", "-r", "1",
			"-t", "1", "-o", format)
		cmd.Env = Config{}.environment("")
		out, err := cmd.Output()
		check.Err(t, err)
		return out
	}
	res := compare.Runs(comparetest.Run(t, "rows", comparetest.Native(6)))
	var rows, table bytes.Buffer
	check.Err(t, reports.LlamaBenchJSONL(&rows, res))
	check.Err(t, reports.LlamaBench(&table, res))
	own := func(name string) bool { return strings.HasPrefix(name, "llmparity_") }
	if got, want := slices.DeleteFunc(keys(t, rows.Bytes()), own), keys(t, theirs("jsonl")); !slices.Equal(got, want) {
		t.Errorf("fields\n%q, llama-bench has\n%q", got, want)
	}
	head := func(text []byte) string { return strings.Join(strings.SplitAfter(string(text), "\n")[:2], "") }
	if got, want := head(table.Bytes()), head(theirs("md")); got != want {
		t.Errorf("the table begins\n%s, llama-bench's\n%s", got, want)
	}
	check.Has(t, string(theirs("md")), " pp8 @ d16 |", " tg4 @ d16 |")
	check.Has(t, table.String(), " pp4 |", " tg63 @ d4 |")
}

// keys are the fields of the first line of JSON, in order.
func keys(t *testing.T, lines []byte) (out []string) {
	t.Helper()
	in := json.NewDecoder(bytes.NewReader(lines))
	_, err := in.Token()
	for check.Err(t, err); in.More(); {
		key, err := in.Token()
		check.Err(t, err)
		out = append(out, key.(string))
		var value json.RawMessage
		check.Err(t, in.Decode(&value))
	}
	return out
}
