package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/record"
	"llmparity/internal/reproduce"
)

func reproduceCommand() *cobra.Command {
	var f engineFlags
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "reproduce DIR",
		Short: "Write the plan that would run a run again, and say what differs here",
		Long: `Write the plan that would run the run in a folder again: the plan that it was run by, in which everything is said that was chosen by
default, below a list of what it was run with (versions, sums, arguments). And say what differs here: the machine, the programs by their
versions and sums, the model. Nothing is launched or fetched but programs that tell their version.

The exit code is 0 where nothing that changes figures differs, else 1.`,
		Example: "  llmparity reproduce results/latest --out again.yaml && llmparity run again.yaml",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.valid(c.Flags().Changed); err != nil {
				return err
			}
			r, err := f.reproduction(c.Context(), args[0])
			if err != nil {
				return err
			}
			if err := writeReproduction(r, out, asJSON, c.OutOrStdout(), c.ErrOrStderr()); err != nil {
				return err
			}
			return r.Err()
		},
	}
	f.register(c.Flags(), ofParts)
	c.Flags().StringVar(&out, "out", "", "the file that the plan is written to (default: standard output)")
	c.Flags().BoolVar(&asJSON, "json", false, "print all of it as JSON, for machines (docs/howto/reproduce-a-run.md)")
	return c
}

// reproduction compares the run in a folder with what would run it here.
func (f *engineFlags) reproduction(ctx context.Context, dir string) (*reproduce.Reproduction, error) {
	was, err := record.Open(dir)
	if err != nil {
		return nil, err
	}
	planned, p, err := reproduce.Plan(was, kinds.All)
	if err != nil {
		return nil, err
	}
	f.follow(p)
	r := reproduce.Of(ctx, was, planned, p, reproduce.Here{Tool: tool(), Kinds: kinds.All, Choice: f.chosen()})
	return r, context.Cause(ctx)
}

// writeReproduction gives the plan and what differs to whoever asked.
func writeReproduction(r *reproduce.Reproduction, out string, asJSON bool, stdout, stderr io.Writer) error {
	if out != "" {
		if err := os.WriteFile(out, []byte(r.Plan), 0o644); err != nil {
			return fault.Wrap(fault.Unwritable, err, "name another file with --out", "the plan can't be written")
		}
	}
	if asJSON {
		return printJSON(stdout, r)
	}
	if out == "" {
		if _, err := io.WriteString(stdout, r.Plan); err != nil {
			return fmt.Errorf("writing the plan: %w", err)
		}
	}
	r.Print(stderr)
	return nil
}
