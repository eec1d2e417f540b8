package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"llmparity/internal/bench/plan"
	"llmparity/internal/gates"
	"llmparity/internal/kinds"
)

const ciFolder = "../../examples/ci"

// commandLines finds the commands of a script that run llmparity.
func commandLines(script string) [][]string {
	var out [][]string
	for line := range strings.Lines(strings.ReplaceAll(script, "\\\n", " ")) {
		var command []string
		for _, word := range append(shellWords(line), ";") {
			if !slices.Contains([]string{"&&", "||", ";", "|", ">", ">>"}, word) {
				command = append(command, word)
				continue
			}
			if len(command) > 0 && filepath.Base(command[0]) == "llmparity" {
				out = append(out, command[1:])
			}
			command = nil
		}
	}
	return out
}

// shellWords splits a line like a shell, without expansion or comments.
func shellWords(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`"[^"]*"|'[^']*'|(?:[^\s"'#]|"[^"]*"|'[^']*')[^\s"']*|#.*`).FindAllString(
		line, -1) {
		if strings.HasPrefix(m, "#") {
			break
		}
		out = append(out, strings.Trim(m, `"'`))
	}
	return out
}

// accepted parses a command line without running it.
func accepted(t *testing.T, where string, words []string) {
	t.Helper()
	c, rest, err := root().Find(joinLists(words))
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = errors.Join(c.ValidateArgs(c.Flags().Args()), c.ValidateFlagGroups())
	}
	if err != nil || !c.Runnable() || c == c.Root() {
		t.Errorf("%s: llmparity %s: no such command, or %v", where, strings.Join(words, " "), err)
		return
	}
	flagsMakeSense(t, where, c)
}

// flagsMakeSense checks the values of gate flags, which the parser accepts as text.
func flagsMakeSense(t *testing.T, where string, c *cobra.Command) {
	t.Helper()
	g := &gates.Gate{}
	for flag, add := range map[string]func(string) error{"max": g.MaxFlag, "min": g.MinFlag,
		"vs-baseline": g.ChangeFlag} {
		values, err := c.Flags().GetStringArray(flag)
		if err != nil && c.Name() == "gate" { // others lack them
			t.Error(err)
		}
		for _, v := range values {
			if err := add(v); err != nil && !strings.Contains(v, "FIGURE") {
				t.Errorf("%s: --%s %s: %v", where, flag, v, err)
			}
		}
	}
}

// The example workflows have the form that GitHub Actions expects, and their commands are valid.
func TestExampleWorkflowsAreValid(t *testing.T) {
	lightTest(t)
	for file, want := range map[string][]string{
		"workflow.yml": {"baseline", "doctor", "report", "report", "run", "run"},
		"builds.yml":   {"compare-builds", "gate"},
		"comment.yml":  nil,
	} {
		if got := workflowCommands(t, file); !slices.Equal(got, want) {
			t.Errorf("%s runs %q, want %q", file, got, want)
		}
	}
	p, err := plan.Parse([]byte(readFile(t, filepath.Join(ciFolder, "plan.yaml"))), "plan.yaml", kinds.All...)
	if err != nil || p.Gate == nil || len(p.Gate.Limits) != 3 || len(p.Gate.Changes) != 3 || p.Gate.Parity == nil {
		t.Errorf("%v %+v", err, p.Gate)
	}
}

// workflowCommands are the llmparity commands of a workflow, sorted.
func workflowCommands(t *testing.T, file string) (commands []string) {
	t.Helper()
	type step struct {
		Name string            `yaml:"name"`
		If   string            `yaml:"if"`
		Uses string            `yaml:"uses"`
		Run  string            `yaml:"run"`
		In   string            `yaml:"working-directory"`
		Env  map[string]string `yaml:"env"`
		With map[string]any    `yaml:"with"`
	}
	var w struct {
		Name        string            `yaml:"name"`
		On          any               `yaml:"on"`
		Permissions map[string]string `yaml:"permissions"`
		Env         map[string]string `yaml:"env"`
		Jobs        map[string]struct {
			If      string `yaml:"if"`
			RunsOn  any    `yaml:"runs-on"`
			Timeout int    `yaml:"timeout-minutes"`
			Steps   []step `yaml:"steps"`
		} `yaml:"jobs"`
	}
	check(t, yaml.UnmarshalWithOptions([]byte(readFile(t, filepath.Join(ciFolder, file))), &w, yaml.Strict()))
	if len(w.Jobs) != 1 || w.On == nil {
		t.Fatalf("%s: %+v", file, w)
	}
	for name, job := range w.Jobs {
		for _, s := range job.Steps {
			if (s.Uses == "") == (s.Run == "") {
				t.Errorf("%s: %s: %q uses something or runs something", file, name, s.Name)
			}
			for _, words := range commandLines(s.Run) {
				commands = append(commands, words[0])
				accepted(t, file, words)
			}
		}
	}
	slices.Sort(commands)
	return commands
}

// The example image is built from existing files and make targets with the Go of go.mod, and its command is valid.
func TestExampleImageIsValid(t *testing.T) {
	lightTest(t)
	text := readFile(t, filepath.Join(ciFolder, "Containerfile"))
	text = strings.ReplaceAll(regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(text, ""), "\\\n", " ")
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readFile(t, "../../go.mod"))[1]
	if !strings.HasPrefix(text, "FROM golang:"+version) {
		t.Errorf("go.mod wants Go %s, and it begins %.40q", version, text)
	}
	for _, copies := range regexp.MustCompile(`(?m)^COPY (.*) \S+$`).FindAllStringSubmatch(text, -1) {
		for from := range strings.FieldsSeq(copies[1]) {
			if !there(filepath.Join("../..", from)) {
				t.Errorf("COPY of %s, which does not exist", from)
			}
		}
	}
	targets := readFile(t, "../../Makefile")
	makes := regexp.MustCompile(`(?m)(?:RUN|&&) make ([a-z -]+)`).FindAllStringSubmatch(text, -1)
	for _, m := range makes {
		for target := range strings.FieldsSeq(m[1]) {
			if !strings.Contains(targets, "\n"+target+":") {
				t.Errorf("make %s: there is no such target", target)
			}
		}
	}
	var words []string
	for _, m := range regexp.MustCompile(`(?m)^(?:ENTRYPOINT|CMD) (.*)$`).FindAllStringSubmatch(text, -1) {
		var part []string
		check(t, json.Unmarshal([]byte(m[1]), &part))
		words = append(words, part...)
	}
	if len(makes) == 0 || len(words) == 0 || words[0] != "llmparity" {
		t.Fatalf("%d calls of make; it runs %q", len(makes), words)
	}
	accepted(t, "Containerfile", words[1:])
}

// All commands in the documentation and the README are valid.
func TestDocumentedCommandsParse(t *testing.T) {
	lightTest(t)
	pages, err := filepath.Glob("../../docs/[eht]*/*.md")
	check(t, err)
	script := regexp.MustCompile("(?ms)^```sh\n.*?^```$|^    [^\n]*$")
	total := 0
	for _, page := range append(pages, "../../README.md") {
		lines := strings.Join(script.FindAllString(readFile(t, page), -1), "\n")
		for _, words := range commandLines(strings.ReplaceAll(lines, "\n    ", "\n")) {
			total++
			accepted(t, filepath.Base(page), words)
		}
	}
	if total < 80 {
		t.Errorf("only %d command lines", total)
	}
}

// The gate that the guide shows is valid.
func TestGuideForCIIsValid(t *testing.T) {
	lightTest(t)
	gates := regexp.MustCompile("(?s)```yaml\n(gate:.*?)```").FindAllStringSubmatch(
		readFile(t, "../../docs/howto/gate-in-ci.md"), -1)
	for _, m := range gates {
		g, err := plan.ParseGate([]byte(m[1]), "docs/howto/gate-in-ci.md")
		if err != nil || len(g.Limits) != 3 || len(g.Changes) != 3 {
			t.Errorf("%v: %+v", err, g)
		}
	}
	if len(gates) != 1 {
		t.Errorf("%d gates", len(gates))
	}
}
