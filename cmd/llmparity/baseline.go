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
	c := &cobra.Command{
		Use:   "baseline",
		Short: "Save, list and remove baseline runs",
		Long: `Save, list and remove baseline runs. A saved one is a copy of what is read of a run's folder, with the
hash of its files. It lies in ` + baseline.Default + ` in the current folder, or where --store says. docs/howto/gate-in-ci.md shows how a CI keeps one.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(baselineSaveCommand(), baselineListCommand(), baselineRemoveCommand())
	return c
}

func storeFlag(c *cobra.Command, store *string) {
	c.Flags().StringVar(store, "store", baseline.Default, "the folder of baselines")
}

func baselineSaveCommand() *cobra.Command {
	var store string
	var replace bool
	c := &cobra.Command{
		Use:     "save NAME DIR",
		Short:   "Keep a run under a name",
		Example: "  llmparity baseline save main results/latest --replace",
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
				return fault.New(fault.Run, "save one whose launches ended well",
					"no launch of %s counts: nothing could be held against it", args[1])
			}
			b, err := baseline.Store{Dir: store}.Save(args[0], run, replace)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "Saved %s: %s, %d launches, %d files, sha256 %.12s\n", b.Name, b.Dir, counted,
				b.Files, b.SHA256)
			if counted < planned {
				fmt.Fprintf(c.ErrOrStderr(), "warning: of %d launches that were planned %d count\n", planned, counted)
			}
			return nil
		},
	}
	storeFlag(c, &store)
	c.Flags().BoolVar(&replace, "replace", false, "take the place of the baseline that has that name")
	return c
}

// countedIn is how many launches of a run count, and how many were planned.
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
		Use:   "list",
		Short: "List the baselines",
		Args:  arguments(cobra.NoArgs),
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
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON, for machines")
	return c
}

func printBaselines(w io.Writer, store string, all []baseline.Baseline) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(w, "There is no baseline in %s.\n", store)
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
		Use:   "remove NAME",
		Short: "Remove a baseline",
		Args:  arguments(cobra.ExactArgs(1)),
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
