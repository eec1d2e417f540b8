package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"llmparity/assets/plans"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
	"llmparity/internal/words"
)

func planCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "Begin a plan, or look whether one makes sense",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a commented plan to begin with: into FILE, which must not be there yet, or to standard output",
		Args:  arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := c.OutOrStdout().Write(plans.Init)
				return err
			}
			if err := beginPlan(args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s: edit it; llmparity run %s --dry-run shows what comes of it\n",
				args[0], args[0])
			return err
		},
	}, &cobra.Command{
		Use:   "check FILE",
		Short: "Read a plan and say how many setups and cells it has, or which line is wrong",
		Long: `Read a plan and say how many setups and cells it has, or which line is wrong. Nothing is looked for on this machine:
that is what llmparity run FILE --dry-run does.`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return checkPlan(c, args[0]) },
	})
	return c
}

// beginPlan writes a plan where there is no file.
func beginPlan(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Usage, "name another file", "%s is there already", path)
	}
	if err != nil {
		return writeFault(err, path)
	}
	if _, err = f.Write(plans.Init); err == nil {
		err = f.Close()
	}
	if err != nil {
		return writeFault(err, path)
	}
	return nil
}

func checkPlan(c *cobra.Command, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fault.Wrap(fault.Usage, err, "", "the plan can't be read")
	}
	p, err := plan.Parse(text, path, kinds.All...)
	if err != nil {
		return err
	}
	if err := kinds.All.Known(enginesIn(p)); err != nil {
		return err
	}
	setups, cells, err := p.Count()
	if err != nil {
		return fault.Wrap(fault.Usage, err, "", "%s", path)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s in %s\n", p.Name, words.Count(cells, "cell"),
		words.Count(setups, "setup"))
	return err
}
