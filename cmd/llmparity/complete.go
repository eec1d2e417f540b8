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

// complete lets the shell complete flags of a command and of those below it.
func complete(c *cobra.Command) {
	const no, file, number = cobra.ShellCompDirectiveNoFileComp, cobra.ShellCompDirectiveDefault,
		cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	for _, values := range []struct {
		flags string
		list  func() []string
		then  cobra.ShellCompDirective
	}{
		{"engines engine", kinds.All.Names, no}, {"preset", plans.Names, no}, {"model models", modelNames, file},
		{"format", formatNames, no}, {"until-figure", figure.Typed, no}, {"by", compare.Fields, no},
		{"max min vs-baseline detect", limits, number}, {"baseline", baselines, file}, {"figures", nil, no},
	} {
		for flag := range strings.FieldsSeq(values.flags) {
			if c.Flags().Lookup(flag) == nil {
				continue
			}
			err := c.RegisterFlagCompletionFunc(flag,
				func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
					if values.list == nil {
						return withList(figuresOf(args), typed), values.then
					}
					return withList(values.list(), typed), values.then
				})
			if err != nil {
				panic(err) // it is registered twice
			}
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
		if r, err := openRun(path, true); err == nil {
			runs = append(runs, r)
		}
	}
	names, _ := colours().FigureNames(false, compare.Runs(runs...), runs...)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], "fig-")
	}
	return append(names, allFigures)
}
