package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"llmparity/internal/history"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/reports/dashboard"
)

func (f *historyFlags) checkCommand() *cobra.Command {
	c := &cobra.Command{Use: "check", Short: "Name the changes, and fail if there is a regression",
		Args:    arguments(cobra.NoArgs),
		Example: "  llmparity history check\n  llmparity history check --markdown >> $GITHUB_STEP_SUMMARY",
		RunE:    func(c *cobra.Command, _ []string) error { return f.check(c) }}
	c.Long = c.Short + `. Exit code 3: there is one that nobody
acknowledged.

Of dashboards without a change, at most 5% have an alarm in a month, whatever the number of series and
of runs. What is not sure yet is suspected: the commands that add launches are printed.`
	c.Flags().BoolVar(&f.markdown, "markdown", false, "print Markdown")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	c.MarkFlagsMutuallyExclusive("markdown", "json")
	return c
}

func (f *historyFlags) check(c *cobra.Command) error {
	_, r, err := f.report(c)
	if err != nil {
		return err
	}
	switch {
	case f.json:
		err = printJSON(c.OutOrStdout(), r)
	case f.markdown:
		err = r.Markdown(c.OutOrStdout())
	default:
		err = r.Text(c.OutOrStdout())
	}
	if n := r.Alarms(); err == nil && n > 0 {
		return fault.New(fault.Gate, "fix it, or say why: llmparity history ack ID --reason TEXT", "%s",
			words.Count(n, "regression"))
	}
	return err
}

// report reads a store and checks it.
func (f *historyFlags) report(c *cobra.Command) (*history.Log, *history.Report, error) {
	debug.SetGCPercent(50) // a million launches are 150 MB, and by default as much again would be garbage
	l, err := history.Open(f.store).Read(c.Context())
	if err != nil {
		return nil, nil, err
	}
	r, err := l.Check(c.Context())
	return l, r, err
}

func (f *historyFlags) ackCommand() *cobra.Command {
	c := &cobra.Command{Use: "ack ID", Short: "Acknowledge a change, so that it stays quiet",
		Args: arguments(cobra.ExactArgs(1)),
		Long: `Acknowledge a change, so that it stays quiet: one by its ID, or all of a commit.`,
		Example: "  llmparity history ack 5f0c21d9a3 --reason 'the new tokenizer is slower, and right'\n" +
			"  llmparity history ack 1a2b3c4 --reason 'a debug build by mistake'",
		RunE: func(c *cobra.Command, args []string) error {
			if f.reason == "" {
				return fault.New(fault.Usage, "use --reason TEXT", "a change is acknowledged with a reason")
			}
			_, r, err := f.report(c)
			if err != nil {
				return err
			}
			all := r.Ack(args[0], f.reason, cmp.Or(f.by, os.Getenv("USER")))
			if len(all) == 0 {
				return fault.New(fault.Usage, "see llmparity history check",
					"no change %s that is not acknowledged", args[0])
			}
			if err := history.Open(f.store).Acknowledge(c.Context(), all...); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "Acknowledged %s\n", words.Count(len(all), "change"))
			return err
		}}
	c.Flags().StringVar(&f.reason, "reason", "", "why it is known, or right")
	c.Flags().StringVar(&f.by, "by", "", "who says so (default: $USER)")
	return c
}

func (f *historyFlags) siteCommand() *cobra.Command {
	var o dashboard.Options
	c := &cobra.Command{Use: "site", Short: "Write static pages: verdicts, and a chart of each figure",
		Args: arguments(cobra.NoArgs),
		Example: "  llmparity history site -o public\n" +
			"  llmparity history site -o public --reports https://ci.example/artifacts",
		RunE: func(c *cobra.Command, _ []string) error {
			l, r, err := f.report(c)
			if err == nil {
				err = dashboard.Write(c.Context(), l, r, o)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "Wrote %s: %s\n", filepath.Join(o.Dir, "index.html"), r.Headline())
			return err
		}}
	c.Long = c.Short + `.

The pages work from a folder and from any web server, and load nothing from elsewhere.`
	c.Flags().StringVarP(&o.Dir, "output-dir", "o", "history", "folder to write to")
	c.Flags().StringVar(&o.Reports, "reports", "", "what links to reports begin with (default: reports on this machine)")
	return c
}
