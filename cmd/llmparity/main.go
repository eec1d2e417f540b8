// Command llmparity measures how one and the same language model behaves in a browser and natively.
//
// It is the only place that knows every engine: it builds them, hands them to the runner, and renders what was
// recorded. Each subcommand is a file here.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"llmparity/internal/child"
	"llmparity/internal/fault"
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs one command line and gives its exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	child.Sweep() // what a killed run of ours left in the temporary folder
	root := root()
	root.SetArgs(joinLists(args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	why := deciding(ctx, err)
	fmt.Fprintln(stderr, "llmparity:", message(err, fault.Of(why)))
	return fault.ExitCode(why)
}

// deciding is the error of which a command that ended with err has its class and exit code: what broke off because of a
// signal ended by the signal.
func deciding(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// message is the line that a command ends with: the class of the error, and what is wrong.
func message(err error, class fault.Kind) string {
	line := fault.OneLine(err.Error())
	if word := string(class); class != fault.Run && line != word && !strings.HasPrefix(line, word+":") {
		line = word + ": " + line
	}
	return line + formerly(class)
}

func root() *cobra.Command {
	c := &cobra.Command{
		Use:   "llmparity",
		Short: "Measure how one and the same language model behaves in a browser and natively",
		Long: `llmparity runs the same model in WebLLM, in Chrome, and natively, and compares memory, speed and words.

  llmparity run             the tiny built-in model in both engines: measured, compared, reported
  llmparity run PLAN        a plan of your own: models, engines, lengths, clients …; --dry-run shows it, --preset has some
  llmparity run --resume DIR   what is missing of a run that was ended
  llmparity plan            begin a plan, or look whether one makes sense
  llmparity report DIR      render a run again
  llmparity compare DIR...  runs beside each other
  llmparity gate DIR        pass or fail a run against limits or a baseline run
  llmparity baseline        save, list and remove baseline runs
  llmparity watch           the memory of any processes, by name, by pid, or of a command, as rows
  llmparity generate        one text in an engine, and what it took
  llmparity model           list, make, convert and describe models
  llmparity estimate        whether a model fits, and how much memory it takes in an engine, part by part
  llmparity compare-estimates FILE   a calculator's numbers against measured ones
  llmparity validate DIR    what was foretold of memory against what was measured, over many runs
  llmparity reproduce DIR   the plan that would run a run again, and what differs here
  llmparity doctor          what is here, what is missing, how to get it
  llmparity schema NAME     the JSON Schema of what is written

Exit codes: 0 ok, 1 a launch or the run failed, 2 usage, 3 a gate failed, 4 something is missing or not supported here,
5 a gate is inconclusive; 130 interrupted, 143 terminated. An error begins with its class, such as no-browser, which --json
has too. Codes 10 to 32 of earlier versions are 4 now, and 21 for an unknown engine is 2: docs/reference/exit-codes.md.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          arguments(cobra.NoArgs),
		// Before cobra does it itself, whose error would not be one of usage.
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return usage(c, c.ValidateFlagGroups()) },
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.SetFlagErrorFunc(usage)
	c.AddCommand(runCommand(), planCommand(), reportCommand(), compareCommand(), modelCommand(), watchCommand(),
		generateCommand(),
		estimateCommand(), compareEstimatesCommand(), validateCommand(), doctorCommand())
	c.AddCommand(removedCommands()...)
	c.AddCommand(schemaCommand(), gateCommand(), baselineCommand(), reproduceCommand())
	return c
}

// usage turns a complaint of cobra's into a fault.
func usage(c *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Usage, err, fmt.Sprintf("see `%s --help`", c.CommandPath()), "usage")
}

// arguments turns cobra's complaints about arguments into usage faults.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error { return usage(c, check(c, args)) }
}

// oneSignal is how long after a signal others count as the same: `timeout` sends each to the process and to its group.
const oneSignal = 2 * time.Second

// untilSignal gives a context that ends with the first SIGINT or SIGTERM; its cause carries the exit code. A later
// signal ends the program at once, with all that it started and their temporary folders.
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
