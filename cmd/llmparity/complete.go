package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/assets/plans"
	"llmparity/compare"
	"llmparity/internal/baseline"
	"llmparity/internal/figure"
	"llmparity/internal/kinds"
	"llmparity/internal/record"
)

// values lists the values of a flag. args are the command's arguments so far.
type values func(args []string) []string

// always lists values that do not depend on arguments.
func always(list func() []string) values { return func([]string) []string { return list() } }

// complete lets the shell complete flags of a command and of those below it.
func complete(c *cobra.Command) {
	for flag, list := range map[string]values{
		"engines": always(kinds.All.Names), "engine": always(kinds.All.Names), "preset": always(plans.Names),
		"model": always(modelNames), "models": always(modelNames), "format": always(formatNames),
		"until-figure": always(figure.Typed), "by": always(compare.Fields), "figures": figuresOf,
		"max": always(limits), "min": always(limits), "vs-baseline": always(limits), "detect": always(limits),
		"baseline": always(baselines),
	} {
		if c.Flags().Lookup(flag) == nil {
			continue
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		switch flag {
		case "model", "models", "baseline":
			directive = cobra.ShellCompDirectiveDefault // or a file
		case "max", "min", "vs-baseline", "detect":
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		err := c.RegisterFlagCompletionFunc(flag,
			func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
				return withList(list(args), typed), directive
			})
		if err != nil {
			panic(err) // it is registered twice
		}
	}
	for _, sub := range c.Commands() {
		complete(sub)
	}
}

// withList offers values behind those of a list that are typed already.
func withList(values []string, typed string) []string {
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = before + v
	}
	return out
}

// modelNames are the built-in models and those of WebLLM's catalogue.
func modelNames() []string {
	out := []string{"tiny", "smollm2"}
	known, err := builtInCatalogue()
	if err != nil {
		return out
	}
	return append(out, known.IDs()...)
}

// limits are figures, before a number.
func limits() []string {
	out := slices.Clone(figure.Typed())
	for i := range out {
		out[i] += "="
	}
	return out
}

// baselines are the saved baseline runs.
func baselines() (out []string) {
	all, _ := baseline.Store{Dir: baseline.Default}.List()
	for _, b := range all {
		out = append(out, b.Name)
	}
	return out
}

// figuresOf are the figures of the runs that a command line names.
func figuresOf(args []string) []string {
	var runs []*record.Run
	for _, path := range args {
		if r, err := openRun(path); err == nil {
			runs = append(runs, r)
		}
	}
	names, _ := colours().FigureNames(false, compare.Runs(runs...), runs...)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], "fig-")
	}
	return append(names, allFigures)
}
