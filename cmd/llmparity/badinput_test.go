package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/internal/kit/fault"
)

// spoiled is a way to damage a run's folder.
type spoiled struct {
	spoil func(t *testing.T, dir string)
	code  int
	say   []string // in what report prints, or in the one line of the fault
}

// Hostile labels.
const script, controls, turned = `</script><script>alert(1)</script>"'&<img src=x onerror=alert(1)>`,
	"a\x1b[31mb\x07\x00c\r\nd\u009b31m", "a\u202eb\u2066c\u200fd"

var long = strings.Repeat("x", 10<<10)

func TestReportOfDamagedRuns(t *testing.T) {
	lightTest(t)
	whole := twoEngines(t)
	bad := fault.BadRecord.ExitCode()
	cases := map[string]spoiled{
		"nothing was begun":  {emptied, 0, []string{"Nothing was measured. This run has no cell."}},
		"the journal is cut": {cut("journal.jsonl"), 0, []string{"journal.jsonl: incomplete last line ignored"}},
		"rows are cut": {all(cut("samples.csv"), cut("tokens.csv")),
			0, []string{"samples.csv: incomplete last line ignored", "tokens.csv: incomplete last line ignored"}},
		"rows run backwards": {all(backwards("samples.csv"), backwards("tokens.csv")), 0, []string{"peak"}},
		"phases run backwards": {replaced("journal.jsonl", `"end_ns":\d+`, `"end_ns":1`),
			0, []string{"it ended before it began (clock)"}},
		"long labels":    {labelled(long, long, long), 0, []string{"peak"}},
		"hostile labels": {labelled(script, controls, turned), 0, []string{"peak"}},
		"NaN in the journal": {replaced("journal.jsonl", `"t_ns":\d+`, `"t_ns":NaN`), bad,
			[]string{"journal.jsonl line 1: invalid character"}},
		"no environment": {func(t *testing.T, dir string) { remove(t, dir, "environment.json") }, bad,
			[]string{"it has no environment.json"}},
		"the journal is no text": {func(t *testing.T, dir string) { put(t, dir, "journal.jsonl", "\x00\xff\n{}\n") },
			bad, []string{"journal.jsonl line 1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, whole)
			c.spoil(t, dir)
			stdout, stderr, code := called("report", "--details", dir)
			c.check(t, "report", stdout, stderr, code)
			if c.code != 0 {
				stdout, stderr, code = called("validate", dir)
				c.check(t, "validate", stdout, stderr, code)
				return
			}
			stdout, stderr, code = called("compare", "--details", whole, dir, "--html",
				filepath.Join(dir, "compare.html"))
			c.check(t, "compare", stdout, stderr, code)
			for _, page := range []string{"report.html", "compare.html"} {
				inert(t, page, readFile(t, filepath.Join(dir, page)))
			}
		})
	}
}

// check expects a report, or one line of error.
func (c spoiled) check(t *testing.T, command, stdout, stderr string, code int) {
	t.Helper()
	said, want := stdout, c.say
	if c.code != 0 {
		said = stderr
	}
	if command == "compare" {
		want = []string{"peak"} // of the whole run at least
	}
	mentions(t, said, want...)
	if code != c.code || code != 0 && strings.Count(stderr, "\n") != 1 {
		t.Errorf("%s: code %d, want %d, and one line of error: %s", command, code, c.code, stderr)
	}
	if odd := unprintable.FindString(stdout + stderr); odd != "" {
		t.Errorf("%s printed %q", command, odd)
	}
	if wrong := noFigure.FindString(stdout); wrong != "" {
		t.Errorf("%s printed %q", command, wrong)
	}
	for line := range strings.Lines(stdout) {
		if len(line) > 2000 {
			t.Errorf("%s printed a line of %d bytes: %.80q…", command, len(line), line)
		}
	}
}

var (
	unprintable = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
	noFigure    = regexp.MustCompile(`\b(NaN|[+-]?Inf)\b`)
	running     = regexp.MustCompile(`(?i)<script>\s*alert|<img src=x|onerror=alert\(1\)>`)
)

// inert checks that a label is not executed by the page.
func inert(t *testing.T, page, text string) {
	t.Helper()
	if !strings.HasSuffix(strings.TrimSpace(text), "</html>") {
		t.Errorf("%s is no whole page", page)
	}
	if found := running.FindString(text); found != "" {
		t.Errorf("%s runs what a label says: %q", page, found)
	}
}

// twoEngines runs two engines, one of which reports no token ids, and returns the run's folder.
func twoEngines(t *testing.T) string {
	t.Helper()
	cmd := program(t, "run", "-q", "--engines", "llamacpp", "--engine", "exec:./echo.py", "--max-tokens", "8",
		"--repetitions", "2")
	put(t, cmd.Dir, "echo.py", documentsPython(t))
	well(t, cmd)
	mentions(t, details(t, cmd.Dir), "different text after 0 bytes; exec:echo.py reports no token ids", "gave the same text")
	return filepath.Join(cmd.Dir, "results", "latest")
}

// An engine whose tokens have neither ids nor text is warned of; a gate on parity with it is inconclusive.
func TestEngineWithoutOutput(t *testing.T) {
	lightTest(t)
	t.Parallel()
	cmd := program(t, "run", "plan.yaml")
	const text = "text=prompt[i % len(prompt)], "
	echo := documentsPython(t)
	put(t, cmd.Dir, "mute.py", strings.Replace(echo, text, "", 1))
	put(t, cmd.Dir, "plan.yaml", "name: mute\nengines: [llamacpp, exec:./mute.py]\nmodel: tiny\nprompts: [the quick]\n"+
		"max_tokens: 8\nrepetitions: 1\ngate: {parity: {min_agreement: 100%}}\n")
	mentions(t, echo, text)
	ends(t, cmd, fault.Inconclusive, "exec:mute.py reports no token ids and no text", "no-output", "INCONCLUSIVE")
}

func copied(t *testing.T, whole string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	check(t, os.CopyFS(dir, os.DirFS(whole)))
	remove(t, dir, "report.html")
	return dir
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	check(t, os.Remove(filepath.Join(dir, name)))
}

// emptied is a run that was killed before its first cell.
func emptied(t *testing.T, dir string) {
	put(t, dir, "journal.jsonl", "")
	for _, name := range []string{"samples.csv", "totals.csv", "metrics.csv", "tokens.csv"} {
		head, _, _ := strings.Cut(readFile(t, filepath.Join(dir, name)), "\n")
		put(t, dir, name, head+"\n")
	}
}

// cut truncates a file within a line of its last third.
func cut(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		text := readFile(t, filepath.Join(dir, name))
		at := len(text) * 2 / 3
		put(t, dir, name, text[:at+strings.IndexByte(text[at:], '\n')+3])
	}
}

func replaced(name, old, with string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		text := readFile(t, filepath.Join(dir, name))
		changed := regexp.MustCompile(old).ReplaceAllLiteralString(text, with)
		if changed == text {
			t.Fatalf("nothing in %s is %s", name, old)
		}
		put(t, dir, name, changed)
	}
}

// backwards turns the times of a file's rows around.
func backwards(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		rows, err := csv.NewReader(strings.NewReader(readFile(t, filepath.Join(dir, name)))).ReadAll()
		check(t, err)
		at := slices.Index(rows[0], "t_ns")
		for _, row := range rows[1:] {
			n, err := strconv.ParseInt(row[at], 10, 64)
			check(t, err)
			row[at] = strconv.FormatInt(1<<42-n, 10)
		}
		var b strings.Builder
		check(t, csv.NewWriter(&b).WriteAll(rows))
		put(t, dir, name, b.String())
	}
}

// labelled appends texts to the names of the model, an engine and a warning.
func labelled(model, engine, warning string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		journal := readFile(t, filepath.Join(dir, "journal.jsonl"))
		for old, label := range map[string]string{`"name":"tiny-llama-2x128`: model, `"engine":"exec:echo.py`: engine,
			`"text":"`: warning} {
			text, err := json.Marshal(label)
			check(t, err)
			mentions(t, journal, old)
			journal = strings.ReplaceAll(journal, old, old+string(text[1:len(text)-1]))
		}
		put(t, dir, "journal.jsonl", journal)
	}
}

func all(spoil ...func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		for _, f := range spoil {
			f(t, dir)
		}
	}
}
