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
	c := parent("plan", "Create or check a plan", &cobra.Command{
		Use:     "init [FILE]",
		Short:   "Write a commented plan to a new file, or print it",
		Example: "  llmparity plan init my-plan.yaml\n  llmparity plan init",
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := c.OutOrStdout().Write(plans.Init)
				return err
			}
			if err := beginPlan(args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "Wrote %s. Edit it, then: llmparity run %s --dry-run\n",
				args[0], args[0])
			return err
		},
	}, &cobra.Command{
		Use:   "check FILE",
		Short: "Check a plan: count its cells, or name the line that is wrong",
		Long: `Check a plan: count its cells, or name the line that is wrong. To check also what can run on this machine,
use llmparity run FILE --dry-run. Fields: ` + docsPlans,
		Example: "  llmparity plan check my-plan.yaml\n  llmparity plan check results/latest/plan.yaml",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE:    func(c *cobra.Command, args []string) error { return checkPlan(c, args[0]) },
	})
	c.Example = "  llmparity plan init my-plan.yaml\n  llmparity plan check my-plan.yaml"
	return c
}

// beginPlan writes a plan to a new file.
func beginPlan(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Usage, "choose another name", "%s exists", path)
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

// readPlan reads the plan in a file.
func readPlan(path string) (plan.Plan, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return plan.Plan{}, fault.Wrap(fault.Usage, err, "", "cannot read the plan")
	}
	return plan.Parse(text, path, kinds.All...)
}

func checkPlan(c *cobra.Command, path string) error {
	p, err := readPlan(path)
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
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s, %s\n", p.Name, words.Count(cells, "cell"),
		words.Count(setups, "start setting"))
	return err
}
