package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmparity/compare"
	"llmparity/compare/gate"
	"llmparity/internal/baseline"
	"llmparity/internal/gates"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/reports"
)

// gateFlags are the checks of a gate, added to those in the run's plan.
type gateFlags struct {
	baseline, store string
	format, out     string
	checkFlags
	judgeFlags
}

func gateCommand() *cobra.Command {
	var f gateFlags
	c := &cobra.Command{
		Use:   "gate DIR",
		Short: "Pass or fail a run against limits or a baseline run",
		Long: `Pass or fail a run against limits or a baseline run, for CI. Exit code 0: passed; 3: failed;
5: inconclusive; 1: launches failed.

The checks come from "gate" in the run's plan, or from --thresholds FILE instead. With a baseline
run and no tolerances there, the default is ` + (*gates.Gate)(nil).Against().Tolerances() + `;
where the engine computes on a CPU, CPU time per token is checked by decode's tolerance, too. Flags
add to these checks; a flag replaces the checks of the same kind and figure.

A check against the baseline run fails if a figure got worse by significantly more than the tolerance.
The check passes if a regression of --detect or more is ruled out. A check that does neither is
inconclusive.

On a shared machine, measure both sides at the same time: llmparity run PLAN --against PLAN2.

Docs: docs/howto/gate-in-ci.md`,
		Example: `  llmparity gate results/latest --max peak_pss_mb=900 --min decode_tps=20
  llmparity gate results/latest --baseline main --vs-baseline decode_tps=-5%`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	flags := c.Flags()
	f.checkFlags.register(flags)
	flags.StringVar(&f.baseline, "baseline", "",
		"baseline run: a saved name or a run's folder (default: the other side of 'run --against', else the plan's gate.baseline)")
	storeFlag(c, &f.store)
	under(flags, "Gate", "baseline store")
	f.judgeFlags.register(flags)
	flags.StringVar(&f.format, "format", "table", "output format: "+strings.Join(gateFormats, ", "))
	flags.StringVarP(&f.out, "output", "o", "", "file to write instead of standard output")
	under(flags, "Output", "format output")
	return c
}

var gateFormats = []string{"table", "json", "markdown", "junit"}

var gateRenderers = map[string]func(io.Writer, *gates.Outcome) error{"table": reports.GateTable,
	"json": reports.JSON[*gates.Outcome], "markdown": reports.GateMarkdown, "junit": reports.GateJUnit}

func (f *gateFlags) run(c *cobra.Command, dir string) error {
	render := gateRenderers[f.format]
	if render == nil {
		return fault.New(fault.Usage, didYouMean(f.format, gateFormats), "unknown format %q", f.format)
	}
	s := &sides{}
	if f.baseline == "" {
		var err error
		if s, err = openSides(dir, false); err != nil {
			return err
		}
		if len(s.runs) > 1 {
			dir = s.run().Dir
		}
	} else if r, err := record.Open(dir); err == nil {
		s.runs = []*record.Run{r}
	} else {
		return err
	}
	run := s.run()
	if run.Running > 0 {
		return fault.New(fault.Inconclusive, "judge it when it has ended", "%s is still running (process %d)", dir,
			run.Running)
	}
	g, err := f.gate(dir)
	if err != nil {
		return err
	}
	name := gate.Named(run, g, f.baseline)
	if g, err = f.over(g, name != ""); err != nil {
		return err
	}
	judged, err := s.judge(g, s.compare(comparison()), f.baseline, f.store)
	if err != nil {
		return err
	}
	err = toFile(c.OutOrStdout(), f.out, func(w io.Writer) error { return render(w, judged) })
	if err != nil {
		return err
	}
	return gate.Fault(judged, f.out == "" && f.format != "json" && f.format != "junit")
}

// gateRun judges a run that was just recorded, prints the verdict, saves it in the run's folder, and adds it to
// report.html. baselineName is a saved name or a run's folder; empty: the gate's own, or none. It returns a fault
// unless the gate passes.
func gateRun(run *record.Run, result *compare.Result, g *gates.Gate, baselineName string, stdout io.Writer) error {
	judged, err := gate.Judge(run, g,
		gate.Against{Name: gate.Named(run, g, baselineName), Store: baseline.Default}, comparison())
	if err != nil {
		return err
	}
	if err := saveGate(run.Dir, judged); err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	if err := reports.GateTable(stdout, judged); err != nil {
		return err
	}
	result.Gate = judged
	if err := writeHTML(filepath.Join(run.Dir, "report.html"), copyFolder, result, run); err != nil {
		return err
	}
	return gate.Fault(judged, stdout != io.Discard)
}

const copyFolder = "copy the run's folder to a writable place"

// saveGate saves the outcome of a gate in the run's folder.
func saveGate(dir string, judged *gates.Outcome) error {
	return reports.File(filepath.Join(dir, gate.File), copyFolder,
		func(w io.Writer) error { return reports.JSON(w, judged) })
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// judgeFlags say how a gate decides. They are not part of the plan, so that a run can be judged again.
type judgeFlags struct {
	detect []string
	judge  gates.Gate
}

func (f *judgeFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.detect, "detect", nil,
		"smallest regression that a pass rules out, e.g. 10% or decode_tps=10%; repeatable "+
			"(default 15% for times and rates, 5% for memory)")
	flags.StringSliceVar(&f.judge.UnderTest, "under-test", nil,
		"what may differ from the baseline run: "+strings.Join(gates.UnderTests(), ", ")+
			" (default all: everything except model and machine)")
	flags.StringVar((*string)(&f.judge.Inconclusive), "inconclusive", "",
		"what an inconclusive gate does: error (exit code 5), warn or off (default error)")
	flags.StringVar(&f.judge.NoBaseline, "no-baseline", "", "ok: pass if there is no baseline run (default: inconclusive)")
	under(flags, "Gate", "detect under-test inconclusive no-baseline")
}

// given tells whether any of the flags was.
func (f *judgeFlags) given() bool {
	return len(f.detect)+len(f.judge.UnderTest) > 0 || string(f.judge.Inconclusive)+f.judge.NoBaseline != ""
}

// over returns a copy of a gate, changed by the flags. With a baseline run, the gate has checks against it.
func (f *judgeFlags) over(g *gates.Gate, baseline bool) (*gates.Gate, error) {
	out := gates.Gate{}
	if baseline || g != nil && g.Baseline != "" {
		out = *g.Against()
	} else if g != nil {
		out = *g
	}
	out.Changes = slices.Clone(out.Changes)
	out.Inconclusive = cmp.Or(f.judge.Inconclusive, out.Inconclusive)
	out.NoBaseline = cmp.Or(f.judge.NoBaseline, out.NoBaseline)
	if len(f.judge.UnderTest) > 0 {
		out.UnderTest = f.judge.UnderTest
	}
	for _, text := range f.detect {
		if err := out.DetectFlag(text); err != nil {
			return nil, fault.Wrap(fault.Usage, err, "", "--detect %s", text)
		}
	}
	if err := out.Validate(); err != nil {
		text := err.Error()
		for _, field := range []string{"inconclusive", "no_baseline", "under_test"} {
			text = strings.Replace(text, "gate."+field, "--"+strings.ReplaceAll(field, "_", "-"), 1)
		}
		return nil, fault.New(fault.Usage, "", "%s", text)
	}
	return &out, nil
}
