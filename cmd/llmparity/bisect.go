package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/internal/bench/bisect"
	"llmparity/internal/figure"
	"llmparity/internal/kit/fault"
	"llmparity/reports"
)

func bisectCommand() *cobra.Command {
	var good, bad, axis, figureName, out string
	var versions []string
	var asJSON bool
	p, rules := bisect.Program{}, bisect.Defaults()
	c := &cobra.Command{
		Use:   "bisect --good VERSION --bad VERSION --axis AXIS [-- [PLAN] FLAGS]",
		Short: "Find the version that changed a figure", DisableFlagsInUseLine: true,
		Long: `Find the version of WebLLM, a model library, Chrome, llama.cpp or Ollama, or the commit, that changed a
figure. Launches of both ends alternate until they differ, then with versions between them. Noise may
forbid an answer. The same command continues an interrupted search.

What is measured is llmparity run with PLAN and FLAGS: one engine, one model, one prompt.

Exit code 0: found, or no change; 5: inconclusive. Docs: docs/howto/find-the-version.md`,
		Example: `  llmparity bisect --good 0.2.80 --bad 0.2.86 --axis webllm --figure decode_tps
  llmparity bisect --good b4000 --bad b4200 --axis llamacpp --at 'builds/{}/llama-server'
  llmparity bisect --good v1 --bad v2 --axis git --build 'make V={}' --at '{}.js' -- --model a.gguf`,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if len(args) > 0 && c.ArgsLenAtDash() != 0 {
				return fault.New(fault.Usage, "write -- before PLAN and flags of run", "unexpected argument %q",
					args[0])
			}
			row, err := figure.Find(figureName)
			if err != nil {
				return fault.New(fault.Usage, "see docs/reference/figures.md", "--figure: %s", err)
			}
			p.Figure, p.Folder, p.Stderr = row.Name, out, c.ErrOrStderr()
			if p.Axis, err = bisect.AxisNamed(axis); err != nil {
				return err
			}
			if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
				p.Plan, args = args[0], args[1:]
			}
			if err := rules.Check(); err != nil {
				return err
			}
			p.Flags = args
			if p.Path, err = os.Executable(); err != nil {
				return err
			}
			s := bisect.Search{Folder: out, Rules: rules, Measure: p.Measure,
				Say: func(text string) { fmt.Fprintln(c.ErrOrStderr(), text) }}
			if s.Question, err = p.Question(c.Context(), good, bad, versions); err != nil {
				return err
			}
			a, err := s.Do(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				err = reports.JSON(c.OutOrStdout(), a)
			} else {
				_, err = fmt.Fprint(c.OutOrStdout(), a.Text(row.Title, rules.MinEffect))
			}
			return fault.First(err, a.Err())
		},
	}
	f := c.Flags()
	f.StringVar(&good, "good", "", "version before the change")
	f.StringVar(&bad, "bad", "", "version after the change")
	f.StringVar(&axis, "axis", "webllm", "what has versions: "+strings.Join(bisect.Names(), ", "))
	f.StringVar(&figureName, "figure", "decode_tps", "figure that changed")
	f.StringSliceVar(&versions, "versions", nil, "all versions from good to bad (default: those of npm, of git, or of the files of --at)")
	f.StringVar(&p.At, "at", "", "path of a version's file, with {} for the version, e.g. 'builds/{}/llama-server'")
	f.StringVar(&p.Build, "build", "", "command that makes this file if it is missing, with {} for the version")
	f.Var(percentage{&rules.MinEffect}, "min-effect", "smallest change to look for")
	f.Var(percentage{&rules.Sure}, "sure", "probability at which a version is named")
	f.IntVar(&rules.Most, "max-launches", rules.Most, "launches after which the search ends")
	f.StringVar(&out, "out", "bisect", "folder for all that is measured")
	f.BoolVar(&asJSON, "json", false, "print the answer as JSON")
	return c
}
