package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/assets/plans"
	"llmparity/compare"
	"llmparity/internal/baseline"
	"llmparity/internal/engine"
	"llmparity/internal/figure"
	"llmparity/internal/kinds"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/runfolder"
	"llmparity/reports"
)

// figureName is what a figure may be called: not a path, as of a run's folder.
var figureName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// listFlags are the flags of a command that take several values, with the form of a value. It distinguishes a value
// from the argument that may follow.
func listFlags(command string) map[string]*regexp.Regexp {
	switch command {
	case "report", "compare":
		return map[string]*regexp.Regexp{"figures": figureName}
	case "run":
	default:
		return nil
	}
	number, word := regexp.MustCompile(`^[0-9]+$`), regexp.MustCompile(`^[a-z]+[0-9]+(_[0-9a-z]+)?$`)
	out := map[string]*regexp.Regexp{"dtype": word, "kv-cache-dtype": word, "models": regexp.MustCompile(`^.+$`),
		"weights": regexp.MustCompile(`^(` + strings.Join(engine.WeightForms, "|") + `)$`),
		"start":   regexp.MustCompile(`^(cold|warm)$`),
		"engines": regexp.MustCompile(`^(` + strings.Join(kinds.All.Names(), "|") + `)$`)}
	const numbers = "input-len output-len batch-size concurrency contexts thread-counts prompt-toks gen-toks seqlens"
	for name := range strings.FieldsSeq(numbers) {
		out[name] = number
	}
	for _, name := range kinds.All.VersionAxes() {
		out[strings.ReplaceAll(name, "_", "-")] = regexp.MustCompile(`^[0-9]+(\.[0-9]+)+\S*$`)
	}
	return out
}

// planFile is the name of a plan, which is never a value of a list.
var planFile = regexp.MustCompile(`(?i)\.ya?ml$`)

// joinLists replaces the blanks of lists such as --concurrency 1 2 4 by commas, which the flags understand. An argument
// that has another form, or the name of a plan, ends a list. --figures without a value gets one.
func joinLists(args []string) []string {
	if len(args) == 0 {
		return args
	}
	lists := listFlags(args[0])
	var out []string
	for len(args) > 0 && args[0] != "--" {
		arg := args[0]
		args = args[1:]
		name, value, has := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		form := lists[name]
		switch {
		case form == nil || !strings.HasPrefix(arg, "--"):
			out = append(out, arg)
		case form == figureName && !has && (len(args) == 0 || strings.HasPrefix(args[0], "-") || runfolder.Is(args[0])):
			out = append(out, arg+"="+allFigures)
		case !has && len(args) == 0:
			out = append(out, arg)
		default:
			if !has { // the next argument is the value, whatever its form
				value, args = args[0], args[1:]
			}
			for len(args) > 0 && isElement(form, args[0]) {
				value = strings.Trim(value, ",") + "," + strings.Trim(args[0], ",")
				args = args[1:]
			}
			out = append(out, "--"+name+"="+value)
		}
	}
	return append(out, args...)
}

// isElement reports whether an argument is a value of a list, or several with commas.
func isElement(form *regexp.Regexp, arg string) bool {
	if strings.HasPrefix(arg, "-") || planFile.MatchString(arg) || form == figureName && runfolder.Is(arg) {
		return false
	}
	parts := slices.DeleteFunc(strings.Split(arg, ","), func(s string) bool { return s == "" })
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(s string) bool { return !form.MatchString(s) })
}

// complete lets the shell complete flags of a command and of those below it.
func complete(c *cobra.Command) {
	always := func(list func() []string) func([]string) []string {
		return func([]string) []string { return list() }
	}
	const no, file, number = cobra.ShellCompDirectiveNoFileComp, cobra.ShellCompDirectiveDefault,
		cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	for _, values := range []struct {
		flags string
		list  func([]string) []string // after these arguments
		then  cobra.ShellCompDirective
	}{
		{"engines engine", always(kinds.All.Names), no}, {"preset", always(plans.Names), no},
		{"model models", always(modelNames), file}, {"format", always(formatNames), no},
		{"until-figure", always(figure.Typed), no}, {"by", always(compare.Fields), no},
		{"max min vs-baseline detect", always(limits), number},
		{"baseline", always(baseline.Store{Dir: baseline.Default}.Names), file}, {"figures", figuresOf, no},
		{"columns", columnsOf, no},
	} {
		for flag := range strings.FieldsSeq(values.flags) {
			if c.Flags().Lookup(flag) == nil {
				continue
			}
			err := c.RegisterFlagCompletionFunc(flag,
				func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
					// Values follow those of a list that are typed already.
					before, out := typed[:strings.LastIndexByte(typed, ',')+1], []string{}
					for _, v := range values.list(args) {
						out = append(out, before+v)
					}
					return out, values.then
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

// modelNames are the built-in models, and those of WebLLM's catalogue that can be run; the catalogue may be missing.
func modelNames() []string {
	names := append(models.Tinies(), models.SmolLM2)
	known, _ := builtInCatalogue()
	for _, e := range known.Models {
		if e.Writes() {
			names = append(names, e.ID)
		}
	}
	return names
}

// limits are figures, before a number.
func limits() (out []string) {
	for _, name := range figure.Typed() {
		out = append(out, name+"=")
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
	figures, _ := colours().Figures(false, compare.Runs(runs...), runs...)
	names := reports.FigureNames(figures)
	return append(names, allFigures)
}
