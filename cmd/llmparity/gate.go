package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/compare"
	"llmparity/compare/gate"
	"llmparity/internal/baseline"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/reports"
)

// gateFile is what a run's folder has of its gate, for reports.
const gateFile = "gate.json"

// gateFlags say what a run is held against, in place of its plan's gate or on top of a file.
type gateFlags struct {
	baseline, store, thresholds string
	max, min, changes           []string
	agreement                   string
	format, out                 string
}

func gateCommand() *cobra.Command {
	var f gateFlags
	c := &cobra.Command{
		Use:   "gate DIR",
		Short: "Say whether a run keeps to its limits and is no worse than a baseline",
		Long: `Say whether a run keeps to its limits and is no worse than a baseline, for a CI: the exit code is 0 where the gate holds, 1 where
launches failed and nothing else is wrong, 3 where it does not hold.

What must hold is the section gate of the run's plan, or --thresholds FILE with the same words, or flags, which add to a file and stand for
the plan's section. Figures are called as in summary.csv or in results. Against a baseline a check fails only on a difference that the
statistics support and that is beyond what is let pass; what can't be judged is unknown and never passes silently (docs/ci.md).`,
		Example: `  llmparity gate results/latest --max peak_pss_mb=900 --min decode_tps=20
  llmparity gate results/latest --baseline main --vs-baseline decode_tps=-5% --vs-baseline peak_pss_mb=+3%
  llmparity gate results/latest --thresholds gate.yaml --baseline main --format markdown >> "$GITHUB_STEP_SUMMARY"`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	flags := c.Flags()
	flags.StringVar(&f.baseline, "baseline", "", "what to hold it against: the name of a saved baseline, or a run's folder (default: what the gate names)")
	storeFlag(c, &f.store)
	flags.StringVar(&f.thresholds, "thresholds", "", "a file with what stands below gate: in a plan")
	flags.StringArrayVar(&f.max, "max", nil, "figure=NUMBER: its median may not be more; may be given several times")
	flags.StringArrayVar(&f.min, "min", nil, "figure=NUMBER: its median may not be less; may be given several times")
	flags.StringArrayVar(&f.changes, "vs-baseline", nil, "figure=SHARE: how much worse than the baseline's it may be, such as decode_tps=-5%; may be given several times")
	flags.StringVar(&f.agreement, "min-agreement", "", "the share of tokens in which engines must agree before they first differ, such as 100%")
	flags.StringVar(&f.format, "format", "table", "how to say it: "+strings.Join(gateFormats(), ", "))
	flags.StringVarP(&f.out, "output", "o", "", "a file to write instead of standard output")
	return c
}

func gateFormats() []string { return []string{"table", "json", "markdown", "junit"} }

func gateRenderer(format string) func(io.Writer, *compare.Gate) error {
	return map[string]func(io.Writer, *compare.Gate) error{"table": reports.GateTable, "json": reports.GateJSON, "markdown": reports.GateMarkdown,
		"junit": reports.GateJUnit}[format]
}

func (f *gateFlags) run(c *cobra.Command, dir string) error {
	render := gateRenderer(f.format)
	if render == nil {
		return fault.New(fault.Usage, "there are: "+strings.Join(gateFormats(), ", "), "there is no format %q", f.format)
	}
	g, err := f.gate(dir)
	if err != nil {
		return err
	}
	run, err := record.Open(dir)
	if err != nil {
		return err
	}
	judged, err := judge(run, g, f.baseline, f.store)
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
	return gateFault(judged, g.Unknown)
}

// gate is what must hold: of flags and a file, else of the run's plan.
func (f *gateFlags) gate(dir string) (*plan.Gate, error) {
	g := &plan.Gate{}
	given := len(f.max)+len(f.min)+len(f.changes) > 0 || f.agreement != ""
	if f.thresholds != "" {
		text, err := os.ReadFile(f.thresholds)
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "name a file with what stands below gate: in a plan", "the thresholds can't be read")
		}
		if g, err = plan.ParseGate(text, f.thresholds); err != nil {
			return nil, err
		}
	} else if !given {
		return planGate(dir)
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
		least, err := plan.ParseShare(f.agreement)
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "", "--min-agreement")
		}
		if g.Parity == nil {
			g.Parity = &plan.GateParity{}
		}
		g.Parity.MinAgreement = least
	}
	if err := g.Validate(); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "", "the gate, as the flags made it")
	}
	return g, nil
}

// planGate is the gate of a run's plan, as the run's folder has it.
func planGate(dir string) (*plan.Gate, error) {
	const do = "give limits such as --max peak_pss_mb=900, or a file with --thresholds"
	path := filepath.Join(dir, "plan.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		if _, open := record.Open(dir); open != nil {
			return nil, open // which says what the folder lacks
		}
		return nil, fault.Wrap(fault.Usage, err, do, "the run's plan can't be read")
	}
	g, err := plan.GateIn(text, path)
	switch {
	case err != nil:
		return nil, err
	case g == nil:
		return nil, fault.New(fault.Usage, do, "the plan of %s has no gate", dir)
	}
	return g, nil
}

// judge holds a run against a gate; name is the baseline's, empty: the gate's own, or none.
func judge(run *record.Run, g *plan.Gate, name, store string) (*compare.Gate, error) {
	if g == nil {
		g = &plan.Gate{}
	}
	if g.Empty() && name == "" && g.Baseline == "" {
		return nil, fault.New(fault.Usage, "give limits such as peak_pss_mb: {max: 900}", "the gate asks for nothing")
	}
	if name == "" {
		name = g.Baseline
	}
	var b against
	if name != "" {
		var err error
		if b, err = openBaseline(name, store); err != nil {
			return nil, err
		}
	}
	judged := gate.Evaluate(g, compare.Runs(run), b.result)
	if b.stored != nil {
		judged.Baseline.Stored, judged.Baseline.SHA256, judged.Baseline.Saved = b.stored.Name, b.stored.SHA256, b.stored.Saved
	}
	return judged, nil
}

// gateFault is the exit code of an outcome: launches that failed are told apart from what the gate asks beside that. What could not be judged
// is beside that where it is an error, or where it is all that was asked and failed launches are not why.
func gateFault(g *compare.Gate, unknown plan.GateLevel) error {
	if g.Status != compare.GateFailed {
		return nil
	}
	failed, judged := map[string]bool{}, false // cells whose launches did; whether anything else was
	for _, c := range g.Checks {
		if c.Kind == compare.GateLaunches {
			failed[c.Cell] = failed[c.Cell] || c.Status == compare.GateFailed
		} else if c.Kind != compare.GateCell {
			judged = judged || c.Status != compare.GateUnknown
		}
	}
	beside := func(c compare.GateCheck) bool {
		switch {
		case c.Kind == compare.GateLaunches:
			return false
		case c.Status == compare.GateUnknown:
			return unknown == plan.GateError || unknown != plan.GateOff && !judged && !failed[c.Cell]
		}
		return c.Status == compare.GateFailed
	}
	if len(failed) > 0 && !slices.ContainsFunc(g.Checks, beside) {
		return fault.New(fault.Run, "", "%s", g.Verdict)
	}
	return fault.New(fault.Gate, "", "%s", g.Verdict)
}

// gateReady says before a run, which may take hours, what would hinder it from being judged at its end.
func gateReady(g *plan.Gate, baselineName string) error {
	if baselineName == "" && g != nil {
		baselineName = g.Baseline
	}
	if baselineName == "" {
		return nil
	}
	_, err := openBaseline(baselineName, baseline.Default)
	return err
}

// gateRun judges a run that has just been recorded and reported by its plan's gate, prints what came of it, and writes it into the run's
// folder, where reports find it: report.html is written anew with it. baseline is a name in the default store or a run's folder; empty: the
// gate's own, or none. Where the gate does not hold it returns a fault of fault.Gate.
func gateRun(dir string, g *plan.Gate, baselineName string, stdout io.Writer) error {
	run, err := record.Open(dir)
	if err != nil {
		return err
	}
	judged, err := judge(run, g, baselineName, baseline.Default)
	if err != nil {
		return err
	}
	const do = "copy the run's folder to where you may write"
	if err := reports.File(filepath.Join(dir, gateFile), do, func(w io.Writer) error { return reports.GateJSON(w, judged) }); err != nil {
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
	if g == nil {
		g = &plan.Gate{}
	}
	return gateFault(judged, g.Unknown)
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// gated is what a run's folder has of its gate; nil where nobody judged it, or where it has gone on since.
func gated(dir string, result *compare.Result) (*compare.Gate, error) {
	path := filepath.Join(dir, gateFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var g compare.Gate
	if err == nil {
		err = json.Unmarshal(text, &g)
	}
	if err == nil && g.Schema != compare.GateSchema {
		err = fmt.Errorf("its schema is %q, this version reads %s", g.Schema, compare.GateSchema)
	}
	if err != nil {
		return nil, fault.Wrap(fault.BadRecord, err, "remove it", "%s can't be read", path)
	}
	if g.Run.Attempts != result.Attempts() {
		return nil, nil
	}
	return &g, nil
}
