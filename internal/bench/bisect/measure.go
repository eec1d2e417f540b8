package bisect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
)

// Program makes launches by this program itself: each is a run of one launch with a record of its own, as anyone can
// repeat it.
type Program struct {
	Path   string // of llmparity
	Axis   Axis
	Figure string // its name in results
	At     string // the path of a version's file; empty: the axis has numbers
	Build  string // a command that makes the file if it is missing; empty: none
	Folder string
	Plan   string   // a plan's file; empty: the built-in one
	Flags  []string // of run
	Stderr io.Writer
}

// plan is what is run without a plan of the user's: as much as the built-in one, but without launches that are not
// counted.
const plan = `name: bisect
engines: [%s]
model: tiny
prompts: [The quick brown fox jumps over the lazy dog.]
max_tokens: 64
warmup: {launches: 0, tokens: 8}
check: false
parity: false
timeout: 3m
`

// Measure makes a launch of a version.
func (p Program) Measure(ctx context.Context, version string) (float64, string, error) {
	chosen, err := p.chosen(ctx, version)
	if err != nil {
		return 0, "", err
	}
	used := p.Plan
	if used == "" {
		used = filepath.Join(p.Folder, "plan.yaml")
		if err := os.WriteFile(used, fmt.Appendf(nil, plan, p.Axis.Engine), 0o644); err != nil {
			return 0, "", err
		}
	}
	args := append([]string{"run", used, "--json", "--repetitions", "1", "--out", filepath.Join(p.Folder, "launches")},
		append(chosen, p.Flags...)...)
	text, err := p.run(ctx, args...)
	var done struct{ Kind, Record, Error string }
	for line := range bytes.Lines(text) {
		if json.Unmarshal(line, &done) == nil && done.Kind == "done" && done.Error != "" {
			return 0, done.Record, fault.New(fault.Run, "", "%s", done.Error)
		}
	}
	if err != nil || done.Record == "" {
		return 0, "", fmt.Errorf("llmparity run: %w", cmp.Or(err, io.ErrUnexpectedEOF))
	}
	value, err := p.value(ctx, done.Record)
	return value, done.Record, err
}

// value reads the figure of a record with one cell.
func (p Program) value(ctx context.Context, record string) (float64, error) {
	text, err := p.run(ctx, "report", record, "--json")
	if err != nil {
		return 0, fmt.Errorf("llmparity report: %w", err)
	}
	var result struct {
		Cells []struct {
			Label   string
			Figures []struct {
				Name   string
				Values []struct{ Value float64 }
			}
		}
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return 0, err
	}
	if n := len(result.Cells); n != 1 {
		return 0, fault.New(fault.Usage, "choose one engine, model and prompt", "the run has %d cells, not one", n)
	}
	for _, f := range result.Cells[0].Figures {
		if f.Name == p.Figure && len(f.Values) == 1 {
			return f.Values[0].Value, nil
		}
	}
	return 0, fault.New(fault.Run, "choose another --figure", "the run has no %s", p.Figure)
}

// chosen are the flags that choose a version, whose file is made if it is missing.
func (p Program) chosen(ctx context.Context, version string) ([]string, error) {
	if p.At == "" {
		return []string{"--" + p.Axis.Number, version}, nil
	}
	path := strings.ReplaceAll(p.At, Place, version)
	if _, err := os.Stat(path); err != nil && p.Build != "" {
		command := strings.ReplaceAll(p.Build, Place, quoted(version))
		cmd := exec.Command("sh", "-c", command)
		cmd.Stdout, cmd.Stderr = p.Stderr, p.Stderr
		if err := ended(ctx, cmd); err != nil {
			return nil, fault.New(fault.Run, "run it to see why", "%s: %s", command, err)
		}
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fault.New(fault.Run, "change --at or --build", "version %s has no file %s", version, path)
	}
	return []string{"--" + p.Axis.Flag, path}, nil
}

// quoted is a word for a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// run runs the program to its end, and returns what it prints.
func (p Program) run(ctx context.Context, args ...string) ([]byte, error) {
	var out, said bytes.Buffer
	cmd := exec.Command(p.Path, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	err := ended(ctx, cmd)
	if err != nil && said.Len() > 0 {
		last := strings.Split(strings.TrimSpace(said.String()), "\n")
		err = fmt.Errorf("%s", strings.TrimPrefix(last[len(last)-1], "llmparity: "))
	}
	return out.Bytes(), err
}

// ended runs a command to its end.
func ended(ctx context.Context, cmd *exec.Cmd) error {
	p, err := child.StartGuarded(ctx, cmd)
	if err != nil {
		return err
	}
	<-p.Done()
	p.Kill() // what it left
	return p.Err()
}

// Question checks what is asked, and lists the versions.
func (p Program) Question(ctx context.Context, good, bad string, versions []string) (q Question, err error) {
	switch {
	case good == "" || bad == "":
		return q, fault.New(fault.Usage, "name the versions before and after the change", "--good or --bad is missing")
	case p.At == "" && p.Axis.Number == "":
		return q, fault.New(fault.Usage, "say where the files are, e.g. --at 'builds/{}/file'", "--axis %s needs --at",
			p.Axis.Name)
	case p.At != "" && !strings.Contains(p.At, Place):
		return q, fault.New(fault.Usage, "write {} in place of the version", "--at %s names one file for all versions", p.At)
	case p.Build != "" && p.At == "":
		return q, fault.New(fault.Usage, "name the file that the command makes with --at", "--build requires --at")
	}
	q = Question{Axis: p.Axis.Name, Figure: p.Figure, How: slices.Concat([]string{p.At, p.Build, p.Plan}, p.Flags)}
	q.Versions, err = p.Axis.Between(ctx, good, bad, p.At, versions)
	if at := slices.IndexFunc(q.Versions, strange); err == nil && at >= 0 {
		err = fault.New(fault.Usage, "use letters, digits and ._+-", "%q is not a version", q.Versions[at])
	}
	return q, err
}

// strange reports whether a version could be an option or lead out of a folder.
func strange(version string) bool {
	return !plainVersion.MatchString(version) || strings.Contains(version, "..")
}

var plainVersion = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+/-]*$`)
