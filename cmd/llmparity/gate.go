package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/compare"
	"llmparity/compare/gate"
	"llmparity/internal/baseline"
	"llmparity/internal/fault"
	"llmparity/internal/gates"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/reports"
)

// gateFlags say what a run is held against, in place of its plan's gate or on top of a file.
type gateFlags struct {
	baseline, store, thresholds string
	max, min, changes           []string
	agreement                   string
	format, out                 string
	judgeFlags
}

func gateCommand() *cobra.Command {
	var f gateFlags
	c := &cobra.Command{
		Use:   "gate DIR",
		Short: "Pass or fail a run against limits or a baseline run",
		Long: `Pass or fail a run against limits or a baseline run, for CI. The exit code is 0 where the gate passes, 1 where
launches failed and nothing else did, 3 where it fails, and 5 where it is inconclusive.

The checks are the section gate of the run's plan, or --thresholds FILE with the same fields, or flags, which add to a
file and replace the plan's section. Figures have their names of summary.csv or of results. A check against the baseline
run fails where the figure is significantly worse than its tolerance, and passes where a regression as large as --detect
is excluded. All else is inconclusive (docs/howto/gate-in-ci.md). On machines that others share, measure both sides in turns:
llmparity run PLAN --against PLAN2.`,
		Example: `  llmparity gate results/latest --max peak_pss_mb=900 --min decode_tps=20
  llmparity gate results/latest --baseline main --vs-baseline decode_tps=-5% --vs-baseline peak_pss_mb=+3%
  llmparity gate results/latest --thresholds gate.yaml --baseline main --format markdown >> "$GITHUB_STEP_SUMMARY"`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	flags := c.Flags()
	flags.StringVar(&f.baseline, "baseline", "",
		"the baseline run: a saved name, or a run's folder (default: the gate's, or the run that it took turns with)")
	storeFlag(c, &f.store)
	flags.StringVar(&f.thresholds, "thresholds", "", "a file with what stands below gate: in a plan")
	flags.StringArrayVar(&f.max, "max", nil, "figure=NUMBER: its median may not be more; may be given several times")
	flags.StringArrayVar(&f.min, "min", nil, "figure=NUMBER: its median may not be less; may be given several times")
	flags.StringArrayVar(&f.changes, "vs-baseline", nil,
		"figure=SHARE: how much worse than the baseline run it may be, such as decode_tps=-5%; may be given several times")
	flags.StringVar(&f.agreement, "min-agreement", "",
		"the share of tokens in which engines must agree before they first differ, such as 100%")
	f.judgeFlags.register(flags)
	flags.StringVar(&f.format, "format", "table", "output format: "+strings.Join(gateFormats(), ", "))
	flags.StringVarP(&f.out, "output", "o", "", "a file to write instead of standard output")
	return c
}

func gateFormats() []string { return []string{"table", "json", "markdown", "junit"} }

func gateRenderer(format string) func(io.Writer, *compare.Gate) error {
	return map[string]func(io.Writer, *compare.Gate) error{"table": reports.GateTable, "json": reports.GateJSON,
		"markdown": reports.GateMarkdown,
		"junit":    reports.GateJUnit}[format]
}

func (f *gateFlags) run(c *cobra.Command, dir string) error {
	render := gateRenderer(f.format)
	if render == nil {
		return fault.New(fault.Usage, "there are: "+strings.Join(gateFormats(), ", "), "there is no format %q",
			f.format)
	}
	g, err := f.gate(dir)
	if err == nil {
		g, err = f.over(g)
	}
	if err != nil {
		return err
	}
	run, err := record.Open(dir)
	if err != nil {
		return err
	}
	judged, err := gate.Judge(run, g, f.baseline, f.store)
	if err != nil {
		return err
	}
	if f.out == "" {
		err = render(c.OutOrStdout(), judged)
	} else {
		err = reports.File(f.out, "name another file with -o", func(w io.Writer) error { return render(w, judged) })
	}
	if err != nil {
		return err
	}
	return gate.Fault(judged)
}

// gate is what must hold: of flags and a file, else of the run's plan.
func (f *gateFlags) gate(dir string) (*gates.Gate, error) {
	g := &gates.Gate{}
	given := len(f.max)+len(f.min)+len(f.changes) > 0 || f.agreement != ""
	if f.thresholds != "" {
		text, err := os.ReadFile(f.thresholds)
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "name a file with what stands below gate: in a plan",
				"the thresholds can't be read")
		}
		if g, err = plan.ParseGate(text, f.thresholds); err != nil {
			return nil, err
		}
	} else if !given {
		return gate.Planned(dir, plan.GateIn)
	}
	for _, flag := range []struct {
		name   string
		values []string
		add    func(string) error
	}{{"max", f.max, g.MaxFlag}, {"min", f.min, g.MinFlag}, {"vs-baseline", f.changes, g.ChangeFlag}} {
		for _, v := range flag.values {
			if err := flag.add(v); err != nil {
				return nil, fault.Wrap(fault.Usage, err, "", "--%s %s", flag.name, v)
			}
		}
	}
	if f.agreement != "" {
		least, err := gates.ParseShare(f.agreement)
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "", "--min-agreement")
		}
		if g.Parity == nil {
			g.Parity = &gates.Parity{}
		}
		g.Parity.MinAgreement = least
	}
	if err := g.Validate(); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "", "the gate, as the flags made it")
	}
	return g, nil
}

// gateRun judges a run that has just been recorded and reported, prints what came of it, and writes it into the run's
// folder, where reports find it: report.html is written anew with it. baseline is a name in the default store or a
// run's folder; empty: the gate's own, or none. Where the gate does not pass it returns a fault.
func gateRun(dir string, g *gates.Gate, baselineName string, stdout io.Writer, notes ...string) error {
	run, err := record.Open(dir)
	if err != nil {
		return err
	}
	judged, err := gate.Judge(run, g, baselineName, baseline.Default)
	if err != nil {
		return err
	}
	judged.Notes = append(judged.Notes, notes...)
	const do = "copy the run's folder to where you may write"
	if err := reports.File(filepath.Join(dir, gate.File), do,
		func(w io.Writer) error { return reports.GateJSON(w, judged) }); err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	if err := reports.GateTable(stdout, judged); err != nil {
		return err
	}
	if page := filepath.Join(dir, "report.html"); there(page) {
		result := compare.Runs(run)
		result.Gate = judged
		if err := writeHTML(page, do, result, run); err != nil {
			return err
		}
	}
	return gate.Fault(judged)
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
