package main

import (
	"cmp"
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
is excluded. All else is inconclusive (docs/ci.md). On machines that others share, measure both sides in turns:
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
	return gateFault(judged)
}

// gate is what must hold: of flags and a file, else of the run's plan.
func (f *gateFlags) gate(dir string) (*plan.Gate, error) {
	g := &plan.Gate{}
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
		if s, err := record.Scan(dir); err == nil && s.Meta.Against != "" {
			return &plan.Gate{}, nil // what is held against the other side goes without saying
		}
		return nil, fault.New(fault.Usage, do, "the plan of %s has no gate", dir)
	}
	return g, nil
}

// judge holds a run against a gate; name is the baseline run's, empty: the gate's own, or the run whose launches took
// turns with this one's, or none.
func judge(run *record.Run, g *plan.Gate, name, store string) (*compare.Gate, error) {
	if name == "" && run.Meta.Against != "" {
		name = filepath.Join(filepath.Dir(filepath.Clean(run.Dir)), run.Meta.Against)
		if len(g.Changes) == 0 {
			with := *g
			with.Changes = usualChanges()
			g = &with
		}
	}
	name = cmp.Or(name, g.Baseline)
	if g.Empty() && name == "" {
		return nil, fault.New(fault.Usage, "give limits such as peak_pss_mb: {max: 900}", "the gate has no checks")
	}
	if name == "" {
		return gate.Evaluate(g, compare.Runs(run), nil), nil
	}
	b, err := openBaseline(name, store)
	if missing := (*missingBaseline)(nil); errors.As(err, &missing) {
		judged := gate.Without(g, compare.Runs(run), name)
		judged.Notes = append(judged.Notes, fault.OneLine(err.Error()))
		return judged, nil
	}
	if err != nil {
		return nil, err
	}
	judged := gate.Evaluate(g, compare.Runs(run), b.result)
	if b.stored != nil {
		judged.Baseline.Stored, judged.Baseline.SHA256, judged.Baseline.Saved = b.stored.Name, b.stored.SHA256,
			b.stored.Saved
	}
	return judged, nil
}

// gateFault is the exit code of an outcome: launches that failed are told apart from all else that fails.
func gateFault(g *compare.Gate) error {
	kind := fault.Run
	switch {
	case g.Status == compare.GateInconclusive:
		kind = fault.Inconclusive
	case g.Status != compare.GateFailed:
		return nil
	case slices.ContainsFunc(g.Checks, func(c compare.GateCheck) bool {
		return c.Status == compare.GateFailed && c.Kind != compare.GateLaunches
	}):
		kind = fault.Gate
	}
	return fault.New(kind, "", "%s", g.Verdict)
}

// gateReady says before a run, which may take hours, what would keep it from being judged at its end. A baseline run
// that is not there yet does not: the run may be meant to become it.
func gateReady(g *plan.Gate, baselineName string, show *progress) error {
	name := cmp.Or(baselineName, g.Baseline)
	if name == "" {
		return nil
	}
	_, err := openBaseline(name, baseline.Default)
	if missing := (*missingBaseline)(nil); !errors.As(err, &missing) {
		return err
	}
	if g.NoBaseline != plan.BaselineOptional {
		show.note(fmt.Sprintf("the gate will be inconclusive: %v (--no-baseline ok passes without)", err))
	}
	return nil
}

// gateRun judges a run that has just been recorded and reported, prints what came of it, and writes it into the run's
// folder, where reports find it: report.html is written anew with it. baseline is a name in the default store or a
// run's folder; empty: the gate's own, or none. Where the gate does not pass it returns a fault.
func gateRun(dir string, g *plan.Gate, baselineName string, stdout io.Writer, notes ...string) error {
	run, err := record.Open(dir)
	if err != nil {
		return err
	}
	judged, err := judge(run, g, baselineName, baseline.Default)
	if err != nil {
		return err
	}
	judged.Notes = append(judged.Notes, notes...)
	const do = "copy the run's folder to where you may write"
	if err := reports.File(filepath.Join(dir, gateFile), do,
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
	return gateFault(judged)
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
