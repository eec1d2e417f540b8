package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"llmparity/internal/history"
	"llmparity/internal/history/collect"
	"llmparity/internal/history/foreign"
	"llmparity/internal/kit/fault"
)

// historyFlags are those of all subcommands of history.
type historyFlags struct {
	store, commit, time, machine, control, better string
	reason, by                                    string
	json, markdown                                bool
}

func historyCommand() *cobra.Command {
	var f historyFlags
	add := &cobra.Command{Use: "add DIR", Short: "Add a run", Args: arguments(cobra.ExactArgs(1)),
		Example: "  llmparity history add results/latest --commit HEAD\n" +
			"  llmparity history add results/latest --commit HEAD --control engine=llamacpp",
		RunE: func(c *cobra.Command, args []string) error { return f.add(c, args[0]) }}
	add.Flags().StringVar(&f.control, "control", "",
		"control cell, by AXIS=VALUE[,AXIS=VALUE]; ratios to it are tested (default: the cell of 'run --against')")
	load := &cobra.Command{Use: "import FILE", Short: "Add runs that another tool measured, or another store",
		Args:    arguments(cobra.ExactArgs(1)),
		Example: "  llmparity history import bench.txt --commit 1a2b3c4\n  llmparity history import data.js",
		RunE: func(c *cobra.Command, args []string) error {
			commit, err := history.Describe(c.Context(), f.commit, f.time)
			if err != nil {
				return err
			}
			return foreign.Import(c.Context(), c.OutOrStdout(), history.Open(f.store), args[0],
				foreign.Options{Commit: commit, Machine: f.machine, Better: f.better})
		}}
	load.Long = load.Short + `: Go's benchmark format, JSON of github-action-benchmark (its
data.js has a whole history), or the folder or git:BRANCH of another store.`
	load.Flags().StringVar(&f.better, "better", "", "which way is better: higher, lower (default: by the unit)")
	for _, c := range []*cobra.Command{add, load} {
		c.Flags().StringVar(&f.commit, "commit", "", "commit that was measured")
		c.Flags().StringVar(&f.time, "time", "", "time of the commit, if git does not know it: 2026-03-14T09:26:53Z")
		c.Flags().StringVar(&f.machine, "machine", "", "name of the machine (default: its processor and GPUs)")
	}
	list := &cobra.Command{Use: "list", Short: "List runs", Args: arguments(cobra.NoArgs),
		Example: "  llmparity history list\n  llmparity history list --store git:llmparity-history",
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := history.Open(f.store).Read(c.Context())
			if err == nil && f.json {
				return printJSON(c.OutOrStdout(), l.Runs)
			} else if err == nil {
				err = l.List(c.OutOrStdout(), f.store)
			}
			return err
		}}
	list.Flags().BoolVar(&f.json, "json", false, "print JSON")
	show := &cobra.Command{Use: "show COMMIT", Short: "Show the figures of a run", Args: arguments(cobra.ExactArgs(1)),
		Example: "  llmparity history show 1a2b3c4\n  llmparity history show HEAD",
		RunE: func(c *cobra.Command, args []string) error {
			l, err := history.Open(f.store).Read(c.Context())
			if err == nil {
				err = l.Show(c.Context(), c.OutOrStdout(), args[0])
			}
			return err
		}}
	all := []*cobra.Command{add, load, list, show, f.checkCommand(), f.ackCommand(), f.siteCommand()}
	for _, c := range all {
		c.Flags().StringVar(&f.store, "store", history.Default, "folder of the history, or git:BRANCH")
	}
	c := parent("history", "Keep the figures of many commits, and name where they changed", all...)
	c.Long = c.Short + `.

A history is a folder with a file a run, or a branch of a git repository. Stores merge without conflicts.

Docs: docs/explanation/history.md`
	c.Example = `  llmparity history add results/latest --commit HEAD
  llmparity history check`
	return c
}

// add adds a run, or all sides of an interleaved one.
func (f *historyFlags) add(c *cobra.Command, dir string) error {
	if f.commit == "" {
		return fault.New(fault.Usage, "use --commit HEAD, or another commit", "which commit was measured is not known")
	}
	commit, err := history.Describe(c.Context(), f.commit, f.time)
	if err != nil {
		return err
	}
	s, err := openSides(dir, false)
	if err != nil {
		return err
	}
	if s.run().Running > 0 {
		return fault.New(fault.Usage, "add it when it has ended", "%s is still running (process %d)", dir,
			s.run().Running)
	}
	run, err := collect.Run(s.compare(comparison()), s.runs, collect.Options{Commit: commit, Machine: f.machine,
		Control: f.control, Folder: filepath.ToSlash(s.run().Dir)})
	if err != nil {
		return err
	}
	return history.Open(f.store).Put(c.Context(), c.OutOrStdout(), run)
}
