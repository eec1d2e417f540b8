package main

import (
	"bytes"

	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmparity/compare/comparetest"
	"llmparity/internal/fault"
)

// commands are all commands that help lists.
func commands() []*cobra.Command {
	var out []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				out = append(out, sub)
				walk(sub)
			}
		}
	}
	walk(root())
	return out
}

func every(*pflag.Flag) bool { return true }

func helpText(c *cobra.Command) string {
	var b bytes.Buffer
	helpOf(c, &b, every)
	return b.String()
}

var (
	docsFile   = regexp.MustCompile(`docs/[A-Za-z/-]+\.md`)
	typedFlag  = regexp.MustCompile(`(?:^| )(--?[a-z][a-z-]*)`)
	lowerFirst = regexp.MustCompile(`^([a-z0-9'"]|[A-Z][A-Z]|WebLLM|WebGPU|RoPE|Ollama)`)
)

func TestHelpIsShortAndComplete(t *testing.T) {
	for _, c := range append(commands(), root()) {
		text := helpText(c)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > helpWidth {
				t.Errorf("%s --help: line of %d columns: %s", c.CommandPath(), n, line)
			}
		}
		for _, file := range docsFile.FindAllString(text, -1) {
			if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(file))); err != nil {
				t.Errorf("%s --help: %v", c.CommandPath(), err)
			}
		}
		if strings.HasSuffix(c.Short, ".") || len(c.Short) > 80 {
			t.Errorf("%s: summary %q", c.CommandPath(), c.Short)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !lowerFirst.MatchString(f.Usage) || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: not a lower-case phrase without a full stop: %s", c.CommandPath(), f.Name, f.Usage)
			}
		})
		if !c.HasParent() {
			continue
		}
		examples := strings.Split(strings.TrimRight(c.Example, "\n"), "\n")
		if len(examples) < 2 {
			t.Errorf("%s has %d examples", c.CommandPath(), len(examples))
		}
		for _, line := range examples {
			args, _, _ := strings.Cut(line, " -- ")
			of, _, err := root().Find(strings.Fields(args)[1:])
			if err != nil || !strings.HasPrefix(line, "  "+c.CommandPath()) {
				t.Errorf("%s: example %q: %v", c.CommandPath(), line, err)
			}
			for _, m := range typedFlag.FindAllStringSubmatch(args, -1) {
				if name := strings.TrimLeft(m[1], "-"); of.Flags().Lookup(name) == nil &&
					of.Flags().ShorthandLookup(name[:1]) == nil {
					t.Errorf("%s: example %q: no flag %s", c.CommandPath(), line, m[1])
				}
			}
		}
	}
}

func TestRunHelpShowsCommonFlags(t *testing.T) {
	short, _, _ := called("run", "--help")
	all, _, _ := called("run", "--help-all")
	if n := strings.Count(short, "\n      --") + strings.Count(short, "\n  -q, --"); n != 25 ||
		!strings.Contains(short, "run --help-all") {
		t.Errorf("%d flags in\n%s", n, short)
	}
	root().Commands()[0].Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && !strings.Contains(all, "--"+f.Name+" ") {
			t.Errorf("run --help-all has no --%s", f.Name)
		}
	})
	webllm, ollama, gate := strings.Index(all, "\nWebLLM:\n"), strings.Index(all, "\nOllama:\n"), strings.Index(all,
		"\nGate:\n")
	if chrome, url := strings.Index(all, "--chrome "), strings.Index(all, "--ollama-url "); !(0 < gate &&
		gate < webllm &&
		webllm < chrome && chrome < ollama && ollama < url) {
		t.Error("engine flags are not under the heading of their engine")
	}
}

func TestMistypedNamesAreSuggested(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"run --max-token 5", "unknown flag --max-token; did you mean --max-tokens?"},
		{"run --max_tokens 5", "unknown flag --max_tokens; did you mean --max-tokens?"},
		{"run --n-predict 5", "unknown flag --n-predict; did you mean --max-tokens?"},
		{"run -n 5", "unknown flag -n; did you mean --max-tokens?"},
		{"run -ngl 5", "unknown flag -ngl; did you mean --llamacpp-gpu-layers?"},
		{"run --ctx-size 5", "did you mean --context?"},
		{"generate --temp 1", "did you mean --temperature?"},
		{"estimate -m x", `unknown flag -m; see "llmparity estimate --help"`},
		{"model convert x --too gguf", "did you mean --to?"},
		{"baseline save a b --replce", "did you mean --replace?"},
		{"run --xyzzy", `unknown flag --xyzzy; see "llmparity run --help"`},
		{"rnu", `unknown command "rnu"; did you mean "run"?`},
		{"model lst", `unknown command "model lst"; did you mean "list"?`},
		{"help exit-code", `did you mean "exit-codes"?`},
		{"run --prset smoke", "did you mean --preset?"},
		{"run --max-tokens many", `--max-tokens: must be a whole number, not "many"`},
		{"run --contexts 1,x", `--contexts: must be whole numbers, not "1,x"`},
		{"run --timeout 3", `--timeout: must be a duration such as 90s or 3m, not "3"`},
		{"watch --name a --interval soon", `--interval: "soon" is not a duration; use seconds such as 0.1`},
		{"xyzzy", `unknown command "xyzzy"; see "llmparity --help"`},
		{"run --preset smok", `unknown preset "smok"; did you mean "smoke"?`},
		{"schema plans", `unknown schema "plans"; did you mean "plan"?`},
		{"report x --format jsn", `unknown format "jsn"; did you mean "json"?`},
	} {
		refuses(t, fault.Usage, c.want, strings.Fields(c.args)...)
	}
	for name, ours := range otherTools {
		for flag := range strings.FieldsSeq(ours) {
			if !slices.ContainsFunc(commands(), func(c *cobra.Command) bool { return c.Flags().Lookup(flag) != nil }) {
				t.Errorf("--%s: no command has --%s", name, flag)
			}
		}
	}
}

func TestVersionIsOneLine(t *testing.T) {
	out, errs, code := called("--version")
	if code != 0 || errs != "" || !regexp.MustCompile(`^llmparity \S+ [a-z]+/\w+ go\S+\n$`).MatchString(out) {
		t.Errorf("%d %q %q", code, out, errs)
	}
}

func TestShellCompletion(t *testing.T) {
	dir := comparetest.Write(t, t.TempDir(), "run", comparetest.Native(1), comparetest.Browser(1))
	for _, c := range []struct{ args, want string }{
		{"run --engines webllm,", "webllm,llamacpp\n"},
		{"run --preset ", "kv-growth\n"},
		{"run --model Llama-3.2", "Llama-3.2-1B-Instruct-q4f16_1-MLC\n"},
		{"gate x --max peak", "peak_pss_mb=\n"},
		{"report " + dir + " --figures ", "decode\n"},
		{"help ", "exit-codes\t"},
		{"schema ", "plan\n"},
	} {
		out, _, code := called(append([]string{cobra.ShellCompRequestCmd}, strings.Split(c.args, " ")...)...)
		if code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: %d\n%s", c.args, code, out)
		}
	}
}

const generated = "<!-- Generated by: go test ./cmd/llmparity -run Reference -update -->\n\n"

// referencePage compares a generated page with the one in docs/reference, or writes it with -update.
func referencePage(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "reference", name)
	if *update {
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(text), 0o644))
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("docs/reference/%s is out of date (%v): go test ./cmd/llmparity -run Reference -update", name, err)
	}
}

func TestReferenceOfCommands(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Commands\n\n" + generated + "| command | |\n|---|---|\n")
	for _, c := range commands() {
		anchor := strings.ReplaceAll(c.CommandPath(), " ", "-")
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", c.CommandPath(), anchor, c.Short)
	}
	b.WriteString("\nExit codes: [exit-codes.md](exit-codes.md).\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "\n## %s\n\n", c.CommandPath())
		text := docsFile.ReplaceAllStringFunc(description(c), func(file string) string {
			rel, err := filepath.Rel("docs/reference", file)
			check(t, err)
			return "[" + file + "](" + filepath.ToSlash(rel) + ")"
		})
		b.WriteString(text + "\n")
		if !c.HasAvailableSubCommands() {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", c.UseLine())
		}
		var examples []string
		for line := range strings.Lines(c.Example) {
			examples = append(examples, strings.TrimSpace(line))
		}
		fmt.Fprintf(&b, "\n```sh\n%s\n```\n", strings.Join(examples, "\n"))
		title := ""
		for _, f := range sorted(c.Flags(), every) {
			if f.Name == "help" {
				continue
			}
			if headingOf(f) != title {
				title = headingOf(f)
				fmt.Fprintf(&b, "\n**%s**\n\n| flag | value | default | |\n|---|---|---|---|\n", title)
			}
			name := "`--" + f.Name + "`"
			if f.Shorthand != "" {
				name = "`-" + f.Shorthand + "`, " + name
			}
			kind, usage := pflag.UnquoteUsage(f)
			value := f.DefValue
			if slices.Contains([]string{"", "[]", "0", "0s", "false"}, value) {
				value = ""
			} else {
				value = "`" + value + "`"
			}
			usage = strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(usage)
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, kind, value, usage)
		}
	}
	referencePage(t, "commands.md", b.String())
}

func TestReferenceOfExitCodes(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Exit codes\n\n" + generated + "| code | meaning |\n|---|---|\n")
	for _, c := range fault.Codes {
		fmt.Fprintf(&b, "| %d | %s |\n", c.Number, c.Meaning)
	}
	fmt.Fprintf(&b, `
If several apply, the first of %s counts.
`+"`llmparity watch -- COMMAND`"+` passes the command's own exit code on.

## Classes

An error is one line: its class, what is wrong, and what to do.
The class is also in `+"`run --json`"+` (field `+"`class`"+` of the last line) and in `+"`doctor --json`"+`.
Errors of class `+"`failed`"+` have no class in the line.
Until the next release, an error message also gives the exit code that this class had before 0.1.

| class | exit code | before 0.1 | meaning |
|---|---|---|---|
`, fault.Precedence())
	for _, c := range fault.Classes {
		was, code := formerCodes[c.Kind], c.Kind.ExitCode()
		if was == 0 {
			was = code
		}
		fmt.Fprintf(&b, "| `%s` | %d | %d | %s |\n", c.Kind, code, was, c.Meaning)
	}
	referencePage(t, "exit-codes.md", b.String())
}
