// Command llmparity measures the same language model in the browser and natively.
//
// It parses flags and connects packages: plans are resolved in internal/bench/resolve, executed in
// internal/bench/run, compared in compare and rendered in reports. Each subcommand is a file here.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmparity/cmd/llmparity/help"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs one command line and returns its exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	child.Sweep() // temporary folders of runs that were killed
	root := root()
	root.SetArgs(joinLists(args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	why := deciding(ctx, err)
	if printed, ok := command.OutOrStdout().(*counted); writesJSON(command) && (!ok || printed.bytes == 0) {
		inJSON(command, stdout, err, why)
	}
	if err.Error() != "" { // else its words were printed, such as the verdict of a gate
		fmt.Fprintln(stderr, "llmparity:", message(err, fault.Of(why)))
	}
	return fault.ExitCode(why)
}

// deciding returns the error that decides class and exit code of a command that ended with err. After a signal that is
// the signal, whatever failed because of it.
func deciding(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// message is the last line of a command that failed: the class of the error, what is wrong, and what to do.
func message(err error, class fault.Kind) string {
	line := fault.OneLine(err.Error())
	if word := string(class); class != fault.Run && line != word && !strings.HasPrefix(line, word+":") {
		line = word + ": " + line
	}
	return line
}

func root() *cobra.Command {
	cobra.EnableCommandSorting = false
	c := &cobra.Command{
		Use:           "llmparity",
		Short:         "Measure the same language model in the browser and natively",
		Long:          "llmparity measures the same language model in the browser and natively.",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          help.Subcommands,
		// Before cobra does it itself, whose error would not be one of usage.
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if writesJSON(c) {
				c.SetOut(&counted{Writer: c.OutOrStdout()})
			}
			return usage(c, c.ValidateFlagGroups())
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.SetFlagErrorFunc(usage)
	c.SetHelpFunc(help.Print)
	c.SetUsageFunc(func(c *cobra.Command) error { help.Print(c, nil); return nil })
	c.SetVersionTemplate("llmparity {{.Version}}\n")
	c.SetHelpCommand(help.Command())
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Measure", []*cobra.Command{runCommand(), pageCommand(), watchCommand(), profileCommand(), profilerCommand(),
			estimateCommand()}},
		{"Compare", []*cobra.Command{compareBuildsCommand(), bisectCommand(), reportCommand(), compareCommand(),
			gateCommand(), baselineCommand(), historyCommand(), validateCommand(), compareEstimatesCommand()}},
		{"Models", []*cobra.Command{modelCommand(), generateCommand()}},
		{"Setup", []*cobra.Command{doctorCommand(), noiseCommand(), cacheCommand(), planCommand(), reproduceCommand(),
			schemaCommand()}},
	} {
		c.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, command := range group.commands {
			command.GroupID = group.title
			c.AddCommand(command)
		}
	}
	c.SetHelpCommandGroupID("Setup")
	c.SetCompletionCommandGroupID("Setup")
	c.AddCommand(help.ExitCodes(), help.Presets(), versionCommand())
	complete(c)
	return c
}

// parent is a command that only has subcommands.
func parent(use, short string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: help.Subcommands,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(below...)
	return c
}

// versionCommand does what --version does.
func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Hidden: true, Args: arguments(cobra.NoArgs),
		Run: func(c *cobra.Command, _ []string) { fmt.Fprintln(c.OutOrStdout(), "llmparity", version()) }}
}

// version identifies the build in one line.
func version() string {
	t := identity()
	text := strings.Trim(t.Version, "()")
	if text == "devel" && t.Commit != "" {
		text += "-" + t.Commit[:min(12, len(t.Commit))]
	}
	return fmt.Sprintf("%s %s/%s %s", text, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// identity is the program's version, platform, and the commit that it was built from.
func identity() record.Tool {
	t := record.Tool{Version: "devel", GoOS: runtime.GOOS, GoArch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return t
	}
	t.Version = cmp.Or(info.Main.Version, t.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			t.Commit = s.Value
		case "vcs.modified":
			t.Modified = s.Value == "true"
		}
	}
	return t
}

// tool identifies the program in the record, by its hash too.
func tool() record.Tool {
	t := identity()
	if path, err := os.Executable(); err == nil {
		if sum, err := cache.HashFile(path); err == nil {
			t.SHA256 = sum
		}
	}
	return t
}

// usage makes a usage error of one of cobra's.
func usage(c *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	see := fmt.Sprintf("see \"%s --help\"", c.CommandPath())
	switch exclusive := exclusiveFlags.FindStringSubmatch(err.Error()); {
	case errors.As(err, &unknown):
		return help.Meant(c, unknown)
	case errors.As(err, &empty):
		return fault.New(fault.Usage, see, "--%s needs a value", empty.GetFlag().Name)
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		what, known := map[string]string{"int": "a whole number", "ints": "whole numbers", "intSlice": "whole numbers",
			"uint64": "a whole number of at least 0", "float64": "a number", "bool": "true or false",
			"duration": "a duration such as 90s or 3m"}[f.Value.Type()]
		if !known {
			return fault.New(fault.Usage, "", "--%s: %v", f.Name, errors.Unwrap(err))
		}
		return fault.New(fault.Usage, "", "--%s: must be %s, not %q", f.Name, what, invalid.GetValue())
	case exclusive != nil:
		return fault.New(fault.Usage, "use one of them", "--%s cannot be combined",
			strings.ReplaceAll(exclusive[1], " ", " and --"))
	}
	return fault.New(fault.Usage, see, "%s", err)
}

// exclusiveFlags matches cobra's error about flags that exclude each other.
var exclusiveFlags = regexp.MustCompile(`none of the others can be; \[(.*)\] were all set`)

// arguments makes usage errors of cobra's errors about arguments.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check(c, args) == nil {
			return nil
		}
		return fault.New(fault.Usage, "use: "+strings.TrimSuffix(c.UseLine(), " [flags]"),
			"wrong number of arguments: %d", len(args))
	}
}

// refuseZeros refuses an explicit zero, which would mean the default, except of some flags.
func refuseZeros(flags *pflag.FlagSet, except ...string) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		number := slices.Contains([]string{"int", "uint64", "float64"}, f.Value.Type())
		if number && strings.Trim(f.Value.String(), "0.-") == "" && !slices.Contains(except, f.Name) {
			err = fault.New(fault.Usage, "omit it, or give a number above 0", "--%s is 0", f.Name)
		}
	})
	return err
}

// oneSignal is how long further signals count as the same one: `timeout` signals both the process and its group.
const oneSignal = 2 * time.Second

// untilSignal returns a context that ends with the first SIGINT or SIGTERM; its cause carries the exit code. A later
// signal ends the program at once, with the processes that it started and their temporary folders.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		var first time.Time
		for s := range signals {
			kind, name := fault.Interrupted, "interrupted"
			if s == syscall.SIGTERM {
				kind, name = fault.Terminated, "terminated"
			}
			switch {
			case first.IsZero():
				first = time.Now()
				cancel(fault.New(kind, "", "%s", name))
			case time.Since(first) > oneSignal:
				child.Abandon()
				os.Exit(kind.ExitCode())
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}
