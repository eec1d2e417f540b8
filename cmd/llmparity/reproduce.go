package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"llmparity/compare/explain"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/machine"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
)

// reproduceSchema names the shape of what --json prints. Fields are added under the same name; none is taken away or
// given another meaning.
const reproduceSchema = "llmparity.reproduce/1"

// reproduction is what must be known to run a run again; docs/reproducibility.md describes it.
type reproduction struct {
	Schema      string               `json:"schema"`
	Record      string               `json:"record"`
	Plan        string               `json:"plan"` // a plan's text
	Differences []machine.Difference `json:"differences"`
	Unknown     []string             `json:"not_looked_at"` // what may differ too, and shows only when it runs
	Checklist   []explain.Check      `json:"checklist"`
	ExitCode    int                  `json:"exit_code"`
}

// reproduceFlags is what a user may say.
type reproduceFlags struct {
	engineFlags
	out  string
	json bool
}

func reproduceCommand() *cobra.Command {
	var f reproduceFlags
	c := &cobra.Command{
		Use:   "reproduce DIR",
		Short: "Write the plan that would run a run again, and say what differs here",
		Long: `Write the plan that would run the run in a folder again: the plan that it was run by, in which everything is said that was chosen by
default, below a list of what it was run with (versions, sums, arguments). And say what differs here: the machine, the programs by their
versions and sums, the model. Nothing is launched or fetched but programs that tell their version.

The exit code is 0 where nothing that changes figures differs, else 1.`,
		Example: "  llmparity reproduce results/latest --out again.yaml && llmparity run again.yaml",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.valid(c.Flags().Changed); err != nil {
				return err
			}
			return f.reproduce(c.Context(), args[0], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.register(c.Flags(), ofParts)
	c.Flags().StringVar(&f.out, "out", "", "the file that the plan is written to (default: standard output)")
	c.Flags().BoolVar(&f.json, "json", false, "print all of it as JSON, for machines (docs/reproducibility.md)")
	return c
}

func (f *reproduceFlags) reproduce(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	was, err := record.Open(dir)
	if err != nil {
		return err
	}
	planned, p, err := recordedPlan(was)
	if err != nil {
		return err
	}
	r := &reproduction{Schema: reproduceSchema, Record: was.Dir, Differences: []machine.Difference{},
		Unknown: []string{}, Checklist: explain.Checklist(was)}
	r.Plan = again(was, planned)
	differences, unknown := machine.Diff(was.Environment, hereNow(ctx))
	r.Differences, r.Unknown = append(r.Differences, differences...), append(r.Unknown, unknown...)
	r.program(was, tool())
	f.follow(p)
	r.engines(ctx, f, was, p)
	r.models(was, p)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	r.sort()
	different := r.changing()
	if different > 0 {
		r.ExitCode = fault.Run.ExitCode()
	}
	if err := f.write(r, stdout, stderr); err != nil {
		return err
	}
	if different > 0 {
		return fault.New(fault.Run, "a run here will be another measurement",
			"what changes figures is not as it was: %d things", different)
	}
	return nil
}

// hereNow is the machine as it is now, with its GPUs.
func hereNow(ctx context.Context) record.Environment {
	here := machine.Describe(ctx, machine.Options{})
	here.GPUs, _, _ = findGPUs(ctx, gpu.Options{})
	return here
}

// recordedPlan is the plan of a run as it was written, and as it is understood.
func recordedPlan(was *record.Run) ([]byte, plan.Plan, error) {
	s, err := record.Scan(was.Dir)
	if err != nil {
		return nil, plan.Plan{}, err
	}
	p, err := plan.Parse(s.Plan, "plan.yaml", kinds.All...)
	if err != nil {
		return nil, p, fault.Wrap(fault.BadRecord, err, "run it with llmparity "+was.Meta.Tool.Version+
			", which wrote it", "the plan of %s is not one of this version's",
			was.Dir)
	}
	return s.Plan, p, nil
}

// write gives the plan and what differs to whoever asked.
func (f *reproduceFlags) write(r *reproduction, stdout, stderr io.Writer) error {
	if f.out != "" {
		if err := os.WriteFile(f.out, []byte(r.Plan), 0o644); err != nil {
			return fault.Wrap(fault.Unwritable, err, "name another file with --out", "the plan can't be written")
		}
	}
	if f.json {
		return writeIndented(stdout, r)
	}
	if f.out == "" {
		if _, err := io.WriteString(stdout, r.Plan); err != nil {
			return fmt.Errorf("writing the plan: %w", err)
		}
	}
	r.print(stderr)
	return nil
}

// print says for people what differs. That it can't be written is the terminal's own trouble.
func (r *reproduction) print(w io.Writer) {
	fmt.Fprintf(w, "What differs here from %s\n", r.Record)
	if len(r.Differences) == 0 {
		fmt.Fprintln(w, "  nothing that was looked at")
	}
	for _, d := range r.Differences {
		mark := "state  "
		if d.Figures {
			mark = "FIGURES"
		}
		fmt.Fprintf(w, "  %s  %s: it was %s, here %s\n", mark, d.What, cmp.Or(d.Was, "unknown"),
			cmp.Or(d.Is, "unknown"))
	}
	if len(r.Unknown) > 0 {
		fmt.Fprintln(w, "\nNot looked at")
	}
	for _, u := range r.Unknown {
		fmt.Fprintf(w, "  %s\n", u)
	}
	fmt.Fprintln(w, "\nWhether that run can be repeated and believed")
	for _, c := range r.Checklist {
		fmt.Fprintf(w, "  %-7s  %s: %s\n", c.Answer, c.Item, c.Why)
	}
}

// differ notes what is not as it was.
func (r *reproduction) differ(what, was, is string, figures bool) {
	if was != is {
		d := record.Difference{What: what, Was: was, Is: is}
		r.Differences = append(r.Differences, machine.Difference{Difference: d, Figures: figures})
	}
}

func (r *reproduction) unknown(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.Unknown, text) {
		r.Unknown = append(r.Unknown, text)
	}
}

// sort puts first what changes figures, and says each once.
func (r *reproduction) sort() {
	slices.SortStableFunc(r.Differences, func(a, b machine.Difference) int {
		switch {
		case a.Figures == b.Figures:
			return 0
		case a.Figures:
			return -1
		}
		return 1
	})
	var once []machine.Difference
	for _, d := range r.Differences {
		if !slices.Contains(once, d) {
			once = append(once, d)
		}
	}
	r.Differences = append([]machine.Difference{}, once...)
}

func (r *reproduction) changing() (n int) {
	for _, d := range r.Differences {
		if d.Figures {
			n++
		}
	}
	return n
}

// printable keeps out of a comment what YAML does not allow in one.
func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return '?'
	}
	return r
}

// again is the plan with what it was run with above it.
func again(was *record.Run, planned []byte) string {
	var out bytes.Buffer
	line := func(begin, format string, args ...any) {
		text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
		fmt.Fprintf(&out, "%s%s\n", begin, strings.Map(printable, text))
	}
	say := func(format string, args ...any) { line("# ", format, args...) }
	part := func(format string, args ...any) { line("#   ", format, args...) }
	say("The plan of the run %q of %s, with what was chosen by default.", was.Meta.Name,
		was.Meta.Started.Format("2006-01-02 15:04:05 MST"))
	say("llmparity %s, sha256 %s, %s/%s", was.Meta.Tool.Version, was.Meta.Tool.SHA256, was.Meta.Tool.GoOS,
		was.Meta.Tool.GoArch)
	e := was.Environment
	say("Machine: %s, %d cores, %.1f GiB, %s, kernel %s", e.CPU, e.Cores, float64(e.MemoryB)/(1<<30), e.OS, e.Kernel)
	for _, m := range modelsOf(was) {
		say("Model: %s (%s, %s, %d bytes), sha256 %s", m.Name, m.Format, m.DType, m.FileB, m.SHA256)
	}
	for _, info := range enginesOf(was) {
		say("Engine: %s %s at %s, sha256 %s", info.Name, info.Version, cmp.Or(info.Path, "no path"),
			cmp.Or(info.SHA256, "not taken"))
		for _, name := range sortedKeys(info.Parts) {
			part("%s: %s", name, info.Parts[name])
		}
		for _, policy := range info.policies() {
			part("%s: %s", policy[0], policy[1])
		}
		for _, line := range info.arguments() {
			part("%s", line)
		}
	}
	out.Write(planned)
	return out.String()
}
