package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"llmparity/internal/bench/watch"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/fault"
)

// watchFlags are the flags of watch.
type watchFlags struct {
	watch.Options
	label, output        string
	container            string
	overwrite, live, gpu bool
}

// seconds is a flag that takes a number of seconds, or a duration with a unit.
type seconds time.Duration

func (s *seconds) Set(text string) error {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		const century = 100 * 365 * 24 * 3600
		if !(n >= 0 && n < century) {
			return fmt.Errorf("%s is not a number of seconds", text)
		}
		*s = seconds(n * float64(time.Second))
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a duration; use seconds such as 0.1, or 100ms, 10s, 2m", text)
	}
	*s = seconds(d)
	return nil
}

func (s *seconds) String() string {
	return strconv.FormatFloat(time.Duration(*s).Seconds(), 'f', -1, 64)
}
func (s *seconds) Type() string { return "seconds" }

func watchCommand() *cobra.Command {
	f := watchFlags{Options: watch.Options{Interval: 100 * time.Millisecond, PSS: 2 * time.Second,
		Wait: 10 * time.Second}}
	c := &cobra.Command{
		Use:   "watch {--name NAME | --pid N | --container NAME | -- COMMAND...}",
		Short: "Record the memory of any processes and their child processes",
		Long: `Record the memory of processes and of all their child processes until the processes end, then print a
summary. Choose processes by name, process id or container, or start a command.

Docs: docs/howto/watch-a-process.md`,
		Example: `  llmparity watch --name ollama --interval 0.1 --output out.csv
  llmparity watch --output out.csv --live -- llama-cli -m my.gguf -p "Once upon a time" -n 50`,
		RunE: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() != 0 && len(args) > 0 {
				return fault.New(fault.Usage, "write -- before a command: llmparity watch -- "+strings.Join(args, " "),
					"unexpected argument %q", args[0])
			}
			if err := f.check(args); err != nil {
				return err
			}
			return f.run(c, args)
		},
	}
	p := c.Flags()
	p.StringVar(&f.Name, "name", "", "part of the process name or command line; case is ignored")
	p.IntSliceVar(&f.PIDs, "pid", nil, "process ids, e.g. 1234,1235")
	p.StringVar(&f.container, "container", "", "name or id of a running container of Docker or Podman")
	p.StringVar(&f.label, "label", "", "label of the rows (default: the name, pid, container or command)")
	p.Var((*seconds)(&f.Interval), "interval", "time between samples of RSS and VMS")
	p.Var((*seconds)(&f.PSS), "pss", "minimum time between readings of PSS and USS, longer if reading would take over 1% of a core; 0: do not read them")
	p.StringVarP(&f.output, "output", "o", "", "CSV file to write; -: standard output (default: only print the summary)")
	p.BoolVar(&f.overwrite, "overwrite", false, "overwrite an existing output file")
	p.Var((*seconds)(&f.Duration), "duration", "maximum time (default: until the last process ends)")
	p.IntVar(&f.MaxSamples, "max-samples", 0, "maximum number of samples; a sample has one row per process (default: no limit)")
	p.Var((*seconds)(&f.Wait), "wait", "maximum time to wait for a process that --name matches")
	p.BoolVar(&f.gpu, "gpu", false, "also record GPU memory of the processes and devices, in a second file (out.gpu.csv)")
	p.BoolVar(&f.live, "live", false, "show a live chart; with a command or without a terminal, print a line every 2 s")
	c.MarkFlagsMutuallyExclusive("name", "pid", "container")
	return c
}

// check refuses wrong flags before anything is started.
func (f *watchFlags) check(command []string) error {
	given := 0
	for _, is := range []bool{f.Name != "", len(f.PIDs) > 0, f.container != "", len(command) > 0} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return fault.New(fault.Usage, "use one of --name NAME, --pid N, --container NAME or -- COMMAND", "no process to watch")
	case f.Interval < time.Millisecond:
		return fault.New(fault.Usage, "use at least 0.001", "--interval %s is too short", (*seconds)(&f.Interval))
	case f.MaxSamples < 0:
		return fault.New(fault.Usage, "", "--max-samples %d is negative", f.MaxSamples)
	case len(command) > 0 && f.output == "-":
		return fault.New(fault.Usage, "name a file", "--output -: the command uses standard output")
	}
	for _, pid := range f.PIDs {
		if pid <= 0 || pid == os.Getpid() {
			return fault.New(fault.Usage, "", "--pid %d: not another process", pid)
		}
	}
	return nil
}

func (f *watchFlags) run(c *cobra.Command, command []string) (err error) {
	errs := c.ErrOrStderr()
	in, err := f.inContainer(c.Context())
	if err != nil {
		return err
	}
	if f.label == "" {
		f.label = cmp.Or(f.Name, f.container, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(f.PIDs)), "+"), "[]"))
		if len(command) > 0 {
			f.label = filepath.Base(command[0])
		}
	}
	switch f.output {
	case "":
	case "-":
		f.Rows = watch.To(c.OutOrStdout(), f.label, watch.Columns)
	default:
		if f.Rows, err = watch.Create(f.output, f.label, watch.Columns, f.overwrite); err != nil {
			return err
		}
	}
	view := watch.NewView(errs, f.live, len(command) > 0, f.Interval)
	f.Say, f.Draw = view.Say, view.Draw
	ctx := c.Context()
	if f.gpu {
		f.GPU = gpu.Open(ctx, gpu.Options{})
		defer f.GPU.Close()
		if f.GPURows, err = f.gpuRows(); err != nil {
			return errors.Join(err, f.Rows.Close())
		}
	}
	if len(command) > 0 {
		var giveBack func()
		ctx, giveBack = watch.TakeSignals(ctx, view.Say)
		defer giveBack()
		f.Command, err = watch.Start(command, c.InOrStdin(), c.OutOrStdout(), errs)
	}
	var sum watch.Summary
	if err == nil {
		sum, err = watch.Run(ctx, f.Options)
	}
	view.Close()
	if closing := errors.Join(f.Rows.Close(), f.GPURows.Close()); err == nil {
		err = closing
	}
	if sum.Length > 0 {
		f.summarize(ctx, errs, sum)
		in.summarize(errs, sum)
	}
	if err == nil {
		err = in.ended()
	}
	if err == nil && f.Command != nil && ctx.Err() == nil {
		if code, how := f.Command.Exit(); code != 0 {
			return &fault.Error{What: command[0] + " " + how, Exit: code}
		}
	}
	return err
}

// gpuRows opens the output for GPUs; nil if there is none.
func (f *watchFlags) gpuRows() (*watch.Rows, error) {
	for _, w := range f.GPU.Warnings {
		if w.Code == "unreadable-gpu" {
			f.Say(w.Text)
		}
	}
	switch {
	case len(f.GPU.GPUs) == 0:
		if none := f.GPU.None; none != "" {
			f.Say("no GPU memory is recorded: " + none)
		}
		return nil, nil
	case f.output == "-":
		f.Say("--gpu needs a file: use --output FILE")
		return nil, nil
	case f.output == "":
		return nil, nil
	}
	return watch.Create(gpuPath(f.output), f.label, watch.GPUColumns, f.overwrite)
}

// gpuPath is the name of the file for GPUs.
func gpuPath(output string) string {
	ext := filepath.Ext(output)
	return strings.TrimSuffix(output, ext) + ".gpu" + ext
}

func (f *watchFlags) summarize(ctx context.Context, to io.Writer, sum watch.Summary) {
	if ctx.Err() != nil {
		sum.Why = context.Cause(ctx).Error()
	}
	for _, line := range sum.Lines() {
		fmt.Fprintln(to, line)
	}
	if f.output != "" && f.output != "-" && sum.Rows > 0 {
		fmt.Fprintf(to, "%d rows in %s\n", sum.Rows, f.output)
	}
	if sum.GPURows > 0 {
		fmt.Fprintf(to, "%d rows in %s\n", sum.GPURows, gpuPath(f.output))
	}
}
