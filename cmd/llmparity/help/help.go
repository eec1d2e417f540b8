// Package help prints the help of commands, and suggests the flag or command that was meant.
//
// It knows no command itself: everything comes from cobra.
package help

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmparity/assets/plans"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
	"llmparity/reports/plain"
)

// Width is the number of columns that help keeps to.
const Width = 100

// Common is the annotation of flags that a short help shows, and heading that of the heading a flag stands under.
const heading, Common = "heading", "common"

// Under puts flags, whose names are separated by blanks, under a heading of the command's help.
func Under(flags *pflag.FlagSet, title, names string) { Annotate(flags, heading, title, names) }

// Annotate panics for a flag that does not exist: the command's definition contradicts itself.
func Annotate(flags *pflag.FlagSet, key, value, names string) {
	for name := range strings.FieldsSeq(names) {
		if err := flags.SetAnnotation(name, key, []string{value}); err != nil {
			panic(err)
		}
	}
}

// HeadingOf returns the heading that a flag stands under.
func HeadingOf(f *pflag.Flag) string {
	if title := f.Annotations[heading]; title != nil {
		return title[0]
	}
	return "Flags"
}

// shownAs is a flag's value under another type name.
type shownAs struct {
	pflag.Value
	name string
}

func (v shownAs) Type() string { return v.name }

// Sorted returns the flags that help shows, by heading: the command's own headings in the order in which they were
// first used, then those of engines.
func Sorted(flags *pflag.FlagSet, only func(*pflag.Flag) bool) (all []*pflag.Flag) {
	titles := []string{"Flags"}
	flags.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || !only(f) {
			return
		}
		shown := *f
		if f.Value.Type() == "stringArray" {
			shown.Value, shown.DefValue = shownAs{f.Value, "string"}, ""
		}
		all = append(all, &shown)
		titles = append(titles, HeadingOf(f))
	})
	ofEngine := func(title string) int {
		return 1 + slices.IndexFunc(kinds.All.Sections(), func(k *engine.Kind) bool { return k.Title == title })
	}
	slices.SortStableFunc(titles, func(a, b string) int { return ofEngine(a) - ofEngine(b) })
	slices.SortStableFunc(all, func(a, b *pflag.Flag) int {
		return slices.Index(titles, HeadingOf(a)) - slices.Index(titles, HeadingOf(b))
	})
	return all
}

// printFlags prints flags in aligned columns below their headings.
func printFlags(w io.Writer, all []*pflag.Flag) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	for _, f := range all {
		set.AddFlag(f)
	}
	title, n := "", 0
	for line := range strings.Lines(set.FlagUsagesWrapped(Width)) {
		if strings.HasPrefix(line, "  -") || strings.HasPrefix(line, "      --") { // a flag begins
			if next := HeadingOf(all[n]); next != title {
				title = next
				fmt.Fprintf(w, "\n%s:\n", title)
			}
			n++
		}
		fmt.Fprint(w, line)
	}
}

// Print is the help of every command.
func Print(c *cobra.Command, _ []string) {
	Of(c, c.OutOrStdout(), func(f *pflag.Flag) bool {
		return f.Annotations[Common] != nil || c.Flags().Lookup("help-all") == nil
	})
}

// Of prints a command's help with some of its flags.
func Of(c *cobra.Command, w io.Writer, only func(*pflag.Flag) bool) {
	fmt.Fprintln(w, filled(Description(c)))
	if c.Runnable() && c.HasParent() && !c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nUsage:\n  %s\n", c.UseLine())
		if c.Flags().Lookup("help-all") != nil {
			fmt.Fprintf(w, "  %s --help-all    all flags\n", c.CommandPath())
		}
	}
	printCommands(c, w)
	if c.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	if c.HasParent() {
		printFlags(w, Sorted(c.Flags(), func(f *pflag.Flag) bool { return f.Name != "help" && only(f) }))
		return
	}
	fmt.Fprint(w, "\nTry:  llmparity run\nHelp: llmparity COMMAND --help, llmparity help exit-codes|presets\n"+
		"Docs: docs/README.md\n")
}

// Description is a command's long text, or a sentence of the short one.
func Description(c *cobra.Command) string {
	if c.Long == "" {
		return c.Short + "."
	}
	return strings.TrimSpace(c.Long)
}

// filled breaks the lines of paragraphs anew, except where lines are indented.
func filled(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !strings.Contains(p, "\n  ") {
			paragraphs[i] = strings.Join(plain.Fold(strings.ReplaceAll(p, "\n", " "), Width), "\n")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// printCommands lists Subcommands by group.
func printCommands(c *cobra.Command, w io.Writer) {
	if !c.HasAvailableSubCommands() {
		return
	}
	group := "?"
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if sub.GroupID != group {
			group = sub.GroupID
			title := "Commands"
			if at := slices.IndexFunc(c.Groups(), func(g *cobra.Group) bool { return g.ID == group }); at >= 0 {
				title = c.Groups()[at].Title
			}
			fmt.Fprintf(w, "\n%s\n", title)
		}
		fmt.Fprintf(w, "  %-*s  %s\n", c.NamePadding()-1, sub.Name(), sub.Short)
	}
}

// OtherTools maps our flags to those of other tools (llama.cpp, Ollama, vLLM, hyperfine, k6) that mean the same.
var OtherTools = [][2]string{
	{"model", "m model-id model-path hf hf-repo"}, {"prompt", "p text input file f"},
	{"max-tokens", "n n-predict predict num-predict max-new-tokens max-length max-output-tokens"},
	{"input-len", "n-prompt prompt-len random-input-len"}, {"output-len", "n-gen gen-len random-output-len"},
	{"context", "c ctx-size num-ctx n-ctx max-model-len context-length context-size"},
	{"threads", "t num-thread n-threads"}, {"temperature", "temp"}, {"seed", "s random-seed"},
	{"llamacpp-gpu-layers", "ngl n-gpu-layers num-gpu gpu-layers"}, {"gpu-layers", "ngl n-gpu-layers num-gpu"},
	{"llamacpp-flash-attention", "fa flash-attn"}, {"llamacpp-batch", "b"}, {"llamacpp-ubatch", "ub ubatch-size"},
	{"llamacpp-cache-type-k", "ctk cache-type-k"}, {"llamacpp-cache-type-v", "ctv cache-type-v"},
	{"kv-cache-dtype", "kv-dtype cache-dtype"}, {"dtype", "precision"}, {"quantization", "quant"},
	{"concurrency", "np parallel max-concurrency clients vus u users"}, {"tensor-parallel-size", "tp"},
	{"rate", "request-rate rps"}, {"requests", "num-prompts num-requests"}, {"engines", "e backend runtime"},
	{"repetitions", "r runs repeat iterations reps min-runs launches"}, {"max-repetitions", "max-runs"},
	{"engine", "backend runtime"}, {"out", "o output"}, {"output", "o out output-dir"}, {"format", "export-json csv"},
	{"json", "j"}, {"quiet", "silent"}, {"chrome", "browser chrome-path executable-path"}, {"headed", "headful"},
	{"openai-url", "base-url host url"}, {"ollama-url", "host url"}, {"openai-key-env", "api-key"},
	{"max", "fail-on"}, {"details", "verbose v"}, {"live", "watch"}, {"preset", "plan config"},
}

// Meant suggests a flag of a command for one that it does not have.
func Meant(c *cobra.Command, err *pflag.NotExistError) error {
	name, dashes := err.GetSpecifiedName(), "--"
	if short := err.GetSpecifiedShortnames(); short != "" {
		name, dashes = short, "-"
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	plain := strings.ReplaceAll(strings.ToLower(name), "_", "-")
	all, others, do := append([][2]string{{plain, plain}}, OtherTools...), owners(c, plain), ""
	same := slices.IndexFunc(all, func(same [2]string) bool {
		return slices.Contains(strings.Fields(same[1]), plain) && slices.Contains(names, "--"+same[0])
	})
	switch {
	case same >= 0:
		do = "did you mean --" + all[same][0] + "?"
	case plain == "top-k" || plain == "top-p":
		do = "every engine draws from all tokens; --temperature says how"
	case c.Name() == "run" && slices.Contains(others, "gate"):
		do = "checks are in the plan's gate, or flags of \"llmparity gate\"; --baseline names a run to compare with"
	case len(others) > 0:
		do = fmt.Sprintf("it is a flag of \"llmparity %s\"", others[0])
	default:
		do = fmt.Sprintf("see \"%s --help\"", c.CommandPath())
		if dashes == "-" && len(name) > 1 { // -abc means -a -b -c
			name = err.GetSpecifiedName()
		}
		if near := nearest.Question("--"+plain, names); near != "" && len(plain) > 1 {
			do = strings.ReplaceAll(near, `"`, "")
		}
	}
	return fault.New(fault.Usage, do, "unknown flag %s%s", dashes, name)
}

// owners are the commands that have a flag.
func owners(c *cobra.Command, flag string) (names []string) {
	for _, other := range c.Root().Commands() {
		if f := other.Flags().Lookup(flag); f != nil && !f.Hidden && other.IsAvailableCommand() {
			names = append(names, other.Name())
		}
	}
	return names
}

// Subcommands refuses arguments of a command that only has Subcommands, and suggests one of these.
func Subcommands(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := append([]string{}, c.SuggestionsFor(args[0])...)
	do := ""
	if len(names) > 0 {
		do = fmt.Sprintf("did you mean %q?", names[0])
	} else {
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
				names = append(names, sub.Name())
			}
		}
		if do = nearest.Question(args[0], names); do == "" {
			do = fmt.Sprintf("see \"%s --help\"", c.CommandPath())
		}
	}
	return fault.New(fault.Usage, do, "unknown command %q", strings.TrimPrefix(c.CommandPath()+" "+args[0],
		"llmparity "))
}

// Command prints the help of a command or of a topic.
func Command() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Help about a command; topics: exit-codes, presets",
		RunE: func(c *cobra.Command, args []string) error {
			of, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return Subcommands(of, append(rest, args...))
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (out []string, _ cobra.ShellCompDirective) {
			of, _, err := c.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, sub := range of.Commands() {
				if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
					out = append(out, sub.Name()+"\t"+sub.Short)
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// Presets is what `llmparity help presets` prints.
func Presets() *cobra.Command {
	text := "Presets: built-in plans for llmparity run --preset NAME\n"
	for _, name := range plans.Names() {
		what, err := plans.What(name)
		if err != nil {
			panic(err) // it is in Names
		}
		text += plain.Wrap(what, fmt.Sprintf("  %-12s  ", name), strings.Repeat(" ", 16), Width)
	}
	return &cobra.Command{Use: "presets", Short: "Built-in plans", Long: text}
}

// ExitCodes is what `llmparity help exit-codes` prints.
func ExitCodes() *cobra.Command {
	var b strings.Builder
	b.WriteString("Exit codes\n")
	for _, c := range fault.Codes {
		fmt.Fprintf(&b, "  %-3d  %s\n", c.Number, strings.ReplaceAll(c.Meaning, "`", ""))
	}
	fmt.Fprintf(&b, "\nIf several codes apply, the exit code is the first of %s.\n", fault.Precedence())
	b.WriteString("llmparity watch -- COMMAND passes the command's own exit code on.\n\n")
	b.WriteString("An error is one line: its class, what is wrong, and what to do. \"run --json\" and\n" +
		"\"doctor --json\" have the class in a field of its own.\n\nClass                 Exit code\n")
	for _, c := range fault.Classes {
		first := fmt.Sprintf("  %-20s %-3d  ", c.Kind, c.Kind.ExitCode())
		b.WriteString(plain.Wrap(strings.ReplaceAll(c.Meaning, "`", ""), first, strings.Repeat(" ", 28), Width))
	}
	return &cobra.Command{Use: "exit-codes", Short: "Exit codes and classes of errors", Long: b.String()}
}

// DidYouMean suggests one of some names, and lists all.
func DidYouMean(name string, names []string) string {
	return strings.TrimSpace(nearest.Question(name, names) + " available: " + strings.Join(names, ", "))
}
