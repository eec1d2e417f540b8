package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"llmparity/internal/bench/reproduce"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

func reproduceCommand() *cobra.Command {
	var f engineFlags
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "reproduce DIR",
		Short: "Write the plan that repeats a run",
		Long: `Write the plan that repeats a run, with all defaults made explicit, and list how this machine differs
from the record: hardware, program versions and hashes, model. Nothing is measured. The exit code is 1
if a difference can change figures.

Docs: docs/howto/reproduce-a-run.md`,
		Example: "  llmparity reproduce results/latest\n  llmparity reproduce results/latest --out again.yaml",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.valid(c.Flags().Changed); err != nil {
				return err
			}
			was, err := record.Open(args[0])
			if err != nil {
				return err
			}
			planned, p, err := reproduce.Plan(was, kinds.All)
			if err != nil {
				return err
			}
			f.follow(p)
			r := reproduce.Of(c.Context(), was, planned, p,
				reproduce.Here{Tool: tool(), Kinds: kinds.All, Choice: f.chosen()})
			if err := context.Cause(c.Context()); err != nil {
				return err
			}
			if err := writePlan(out, r.Plan); err != nil {
				return err
			}
			if asJSON {
				if err := printJSON(c.OutOrStdout(), r); err != nil {
					return err
				}
				return r.Err()
			}
			if out == "" {
				if _, err := io.WriteString(c.OutOrStdout(), r.Plan); err != nil {
					return fmt.Errorf("writing the plan: %w", err)
				}
			}
			r.Print(c.ErrOrStderr())
			return r.Err()
		},
	}
	f.register(c.Flags(), ofParts)
	c.Flags().StringVar(&out, "out", "", "file to write the plan to (default: standard output)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// writePlan writes a plan to a new file. It never replaces another plan, which may be a user's own.
func writePlan(path, text string) error {
	if path == "" {
		return nil
	}
	if was, err := os.ReadFile(path); err == nil {
		if string(was) == text {
			return nil
		}
		return fault.New(fault.Usage, "choose another file with --out", "%s exists and has another plan", path)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fault.Wrap(fault.Unwritable, err, "choose another file with --out", "cannot write the plan")
	}
	return nil
}
