package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"llmparity/browser/chrome"
	"llmparity/internal/history/collect"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/noise"
)

func noiseCommand() *cobra.Command {
	var asJSON bool
	var browser string
	each := 4 * time.Second
	c := &cobra.Command{Use: "noise", Short: "Measure how steady this machine is",
		Long: `Measure how steady this machine is: the same work again and again on the processor, in memory, on the
disk of the cache, and starting a browser. It says which tolerance the machine can hold, with how many
launches. It takes about half a minute.

Docs: docs/explanation/history.md`,
		Example: "  llmparity noise\n  llmparity noise --time 20s --json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			all := append(noise.Machine(cache.Dir(os.Getenv)), noise.Work{Name: "browser, started and ended", Least: 8,
				Do: func(ctx context.Context) error {
					sheet, err := chrome.OpenSheet(ctx, browser)
					if err == nil {
						err = sheet.Close()
					}
					return err
				}})
			name := collect.Machine(machine.Describe(c.Context(), 0))
			r, err := noise.Measure(c.Context(), name, all, each)
			if err != nil {
				return err
			}
			return show(c.OutOrStdout(), r, asJSON)
		}}
	c.Flags().DurationVar(&each, "time", each, "time for each kind of work")
	c.Flags().StringVar(&browser, "chrome", "", "browser to start (default: as for a run)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
