package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"llmparity/compare"
	"llmparity/internal/baseline"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/warning"
)

func baselineCommand() *cobra.Command {
	var store baseline.Store
	var replace, asJSON bool
	save := &cobra.Command{
		Use:     "save NAME DIR",
		Short:   "Save a run under a name",
		Example: "  llmparity baseline save main results/latest\n  llmparity baseline save main results/latest --replace",
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return saveBaseline(c, store, args[0], args[1], replace)
		},
	}
	list := &cobra.Command{
		Use:     "list",
		Short:   "List baseline runs",
		Example: "  llmparity baseline list\n  llmparity baseline list --json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := store.List()
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(c.OutOrStdout(), all)
			case len(all) == 0:
				_, err := fmt.Fprintf(c.OutOrStdout(), "No baseline runs in %s.\n", store.Dir)
				return err
			}
			const minutes = "2006-01-02 15:04"
			t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "NAME\tRUN\tMEASURED\tSAVED\tMIB\tSHA256")
			for _, b := range all {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.1f\t%.12s\n", b.Name, b.Run, b.Started.Format(minutes),
					b.Saved.Format(minutes), float64(b.Bytes)/record.MiB, b.SHA256)
			}
			return t.Flush()
		},
	}
	remove := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a baseline run",
		Example: "  llmparity baseline remove main\n  llmparity baseline remove main --store ci/baselines",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := store.Remove(args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "Removed %s.\n", args[0])
			return err
		},
	}
	for _, c := range []*cobra.Command{save, list, remove} {
		storeFlag(c, &store.Dir)
	}
	save.Flags().BoolVar(&replace, "replace", false, "replace a baseline run of that name")
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c := parent("baseline", "Save, list and remove baseline runs", save, list, remove)
	c.Long = `Save, list and remove baseline runs. A gate compares a run with a baseline run.

A saved baseline run is a copy of the run's data in ` + baseline.Default + `, or in the folder of --store.
In CI: docs/howto/gate-in-ci.md`
	c.Example = `  llmparity baseline save main results/latest --replace
  llmparity baseline list`
	return c
}

func storeFlag(c *cobra.Command, store *string) {
	c.Flags().StringVar(store, "store", baseline.Default, "folder of baseline runs")
}

// saveBaseline saves a run that has successful launches, and warns if it lacks some.
func saveBaseline(c *cobra.Command, store baseline.Store, name, dir string, replace bool) error {
	if err := baseline.CheckName(name); err != nil {
		return err
	}
	run, err := record.Open(dir)
	if err != nil {
		return err
	}
	counted, planned := 0, 0
	for _, cell := range run.Cells {
		planned += cell.Repetitions
	}
	for _, a := range run.Attempts {
		if a.Counted() {
			counted++
		}
	}
	if run.Running > 0 {
		return fault.New(fault.Usage, "save it when it has ended", "%s is still running (process %d)", dir, run.Running)
	}
	if counted == 0 {
		return fault.New(fault.Run, "save a run with successful launches", "%s has no successful launch", dir)
	}
	b, err := store.Save(name, run, replace)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "Saved %s: %s, %d launches, %d files, sha256 %.12s\n", b.Name, b.Dir, counted,
		b.Files, b.SHA256)
	if counted < planned {
		fmt.Fprintf(c.ErrOrStderr(), "warning: %d of %d launches succeeded\n", counted, planned)
	}
	for _, w := range compare.With(comparison(), run).Warnings {
		if w.Code == warning.MemoryShared {
			fmt.Fprintf(c.ErrOrStderr(), "warning: memory may be too low: %s: %s\n", w.Where, w.Text)
			break
		}
	}
	return nil
}
