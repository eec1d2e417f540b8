package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"llmparity/internal/baseline"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

func baselineCommand() *cobra.Command {
	c := parent("baseline", "Save, list and remove baseline runs", baselineSaveCommand(), baselineListCommand(),
		baselineRemoveCommand())
	c.Long = `Save, list and remove baseline runs. A gate compares a run with a baseline run.

A saved baseline run is a copy of the run's data in ` + baseline.Default + `, or in the folder of --store.
In CI: ` + docsGate
	c.Example = `  llmparity baseline save main results/latest --replace
  llmparity baseline list`
	return c
}

func storeFlag(c *cobra.Command, store *string) {
	c.Flags().StringVar(store, "store", baseline.Default, "folder of baseline runs")
}

func baselineSaveCommand() *cobra.Command {
	var store string
	var replace bool
	c := &cobra.Command{
		Use:     "save NAME DIR",
		Short:   "Save a run under a name",
		Example: "  llmparity baseline save main results/latest\n  llmparity baseline save main results/latest --replace",
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := baseline.CheckName(args[0]); err != nil {
				return err
			}
			run, err := record.Open(args[1])
			if err != nil {
				return err
			}
			counted, planned := countedIn(run)
			if counted == 0 {
				return fault.New(fault.Run, "save a run with successful launches", "%s has no successful launch",
					args[1])
			}
			b, err := baseline.Store{Dir: store}.Save(args[0], run, replace)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "Saved %s: %s, %d launches, %d files, sha256 %.12s\n", b.Name, b.Dir, counted,
				b.Files, b.SHA256)
			if counted < planned {
				fmt.Fprintf(c.ErrOrStderr(), "warning: %d of %d launches succeeded\n", counted, planned)
			}
			return nil
		},
	}
	storeFlag(c, &store)
	c.Flags().BoolVar(&replace, "replace", false, "replace a baseline run of that name")
	return c
}

// countedIn is the number of successful launches of a run, and of planned ones.
func countedIn(run *record.Run) (counted, planned int) {
	for _, cell := range run.Cells {
		planned += cell.Repetitions
	}
	for _, a := range run.Attempts {
		if a.Counted() {
			counted++
		}
	}
	return counted, planned
}

func baselineListCommand() *cobra.Command {
	var store string
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List baseline runs",
		Example: "  llmparity baseline list\n  llmparity baseline list --json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := baseline.Store{Dir: store}.List()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), all)
			}
			return printBaselines(c.OutOrStdout(), store, all)
		},
	}
	storeFlag(c, &store)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printBaselines(w io.Writer, store string, all []baseline.Baseline) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(w, "No baseline runs in %s.\n", store)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tRUN\tMEASURED\tSAVED\tMIB\tSHA256")
	for _, b := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.1f\t%.12s\n", b.Name, b.Run, b.Started.Format("2006-01-02 15:04"),
			b.Saved.Format("2006-01-02 15:04"),
			float64(b.Bytes)/record.MiB, b.SHA256)
	}
	return t.Flush()
}

func baselineRemoveCommand() *cobra.Command {
	var store string
	c := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a baseline run",
		Example: "  llmparity baseline remove main\n  llmparity baseline remove main --store ci/baselines",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := (baseline.Store{Dir: store}).Remove(args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "Removed %s.\n", args[0])
			return err
		},
	}
	storeFlag(c, &store)
	return c
}
