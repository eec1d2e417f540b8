package main

import (
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

	"llmparity/internal/fault"
	"llmparity/internal/sample/gpu"
	"llmparity/internal/watch"
)

// watchFlags are the flags of watch.
type watchFlags struct {
	name, label, output string
	pids                []int
	interval, pss       seconds
	duration, wait      seconds
	maxSamples          int
	overwrite, live     bool
	gpu                 bool
	command             string // the program; empty: none
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
	f := watchFlags{interval: seconds(100 * time.Millisecond), pss: seconds(2 * time.Second),
		wait: seconds(10 * time.Second)}
	c := &cobra.Command{
		Use:   "watch {--name NAME | --pid N | -- COMMAND...}",
		Short: "Record the memory of any process or container",
		Long: `Record the memory of processes and of all processes that they start, and print a summary at the end.
Choose them by name, by process id, or start a command.

Docs: ` + docsWatch,
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
	c.Flags().StringVar(&f.name, "name", "",
		"part of the process name or command line; case is ignored")
	c.Flags().IntSliceVar(&f.pids, "pid", nil, "process ids, e.g. 1234,1235")
	c.Flags().StringVar(&f.label, "label", "", "label of the rows (default: the name, pid or command)")
	c.Flags().Var(&f.interval, "interval", "time between samples of RSS and VMS")
	c.Flags().Var(&f.pss, "pss", "minimum time between readings of PSS and USS, limited to 1% of a core; 0: none")
	c.Flags().StringVarP(&f.output, "output", "o", "", "CSV file to write; -: standard output (default: only print the summary)")
	c.Flags().BoolVar(&f.overwrite, "overwrite", false, "overwrite an existing output file")
	c.Flags().Var(&f.duration, "duration", "maximum time (default: until the last process ends)")
	c.Flags().IntVar(&f.maxSamples, "max-samples",
		0, "maximum number of samples; a sample has a row per process (default: no limit)")
	c.Flags().Var(&f.wait, "wait", "maximum time to wait for a process of that name")
	c.Flags().BoolVar(&f.gpu, "gpu", false,
		"also record GPU memory of the processes and devices, in a second file (out.gpu.csv)")
	c.Flags().BoolVar(&f.live, "live", false, "show a live chart; with a command or without a terminal, a line every 2 s")
	c.MarkFlagsMutuallyExclusive("name", "pid")
	return c
}

// check refuses wrong flags before anything is started.
func (f *watchFlags) check(command []string) error {
	given := 0
	for _, is := range []bool{f.name != "", len(f.pids) > 0, len(command) > 0} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return fault.New(fault.Usage, "use one of --name NAME, --pid N or -- COMMAND", "no process to watch")
	case time.Duration(f.interval) < time.Millisecond:
		return fault.New(fault.Usage, "use at least 0.001", "--interval %s is too short", f.interval.String())
	case f.maxSamples < 0:
		return fault.New(fault.Usage, "", "--max-samples %d is negative", f.maxSamples)
	case len(command) > 0 && f.output == "-":
		return fault.New(fault.Usage, "name a file", "--output -: the command uses standard output")
	}
	for _, pid := range f.pids {
		if pid <= 0 || pid == os.Getpid() {
			return fault.New(fault.Usage, "", "--pid %d: not another process", pid)
		}
	}
	return nil
}

func (f *watchFlags) run(c *cobra.Command, args []string) error {
	errs := c.ErrOrStderr()
	if len(args) > 0 {
		f.command = args[0]
	}
	o := watch.Options{Name: f.name, PIDs: f.pids, Interval: time.Duration(f.interval), PSS: time.Duration(f.pss),
		Duration: time.Duration(f.duration), MaxSamples: f.maxSamples, Wait: time.Duration(f.wait)}
	rows, err := f.rows(c.OutOrStdout())
	if err != nil {
		return err
	}
	o.Rows = rows
	view := watch.NewView(errs, f.live, len(args) > 0, time.Duration(f.interval))
	o.Say, o.Draw = view.Say, view.Draw
	ctx := c.Context()
	if f.gpu {
		o.GPU = gpu.Open(ctx, gpu.Options{})
		defer o.GPU.Close()
		if o.GPURows, err = f.gpuRows(o.GPU, view.Say, rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	if len(args) > 0 {
		var giveBack func()
		ctx, giveBack = watch.TakeSignals(ctx, view.Say)
		defer giveBack()
		o.Command, err = watch.Start(args, c.InOrStdin(), c.OutOrStdout(), errs)
	}
	var sum watch.Summary
	if err == nil {
		sum, err = watch.Run(ctx, o)
	}
	view.Close()
	if closing := errors.Join(rows.Close(), o.GPURows.Close()); err == nil {
		err = closing
	}
	if sum.Length > 0 {
		f.summarize(ctx, errs, sum)
	}
	if err == nil && o.Command != nil && ctx.Err() == nil {
		if code, how := o.Command.Exit(); code != 0 {
			return &fault.Error{What: args[0] + " " + how, Exit: code}
		}
	}
	return err
}

// rows opens the output; nil if there is none.
func (f *watchFlags) rows(stdout io.Writer) (*watch.Rows, error) {
	switch f.output {
	case "":
		return nil, nil
	case "-":
		return watch.To(stdout, f.labelled()), nil
	}
	return watch.Create(f.output, f.labelled(), f.overwrite)
}

// labelled is the label of the rows.
func (f *watchFlags) labelled() string {
	switch {
	case f.label != "":
		return f.label
	case f.name != "":
		return f.name
	case f.command != "":
		return filepath.Base(f.command)
	}
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(f.pids)), "+"), "[]")
}

// gpuRows opens the output for GPUs; nil if there is none.
func (f *watchFlags) gpuRows(gpus *gpu.Monitor, say func(string), beside *watch.Rows) (*watch.Rows, error) {
	for _, w := range gpus.Warnings() {
		if w.Code == "unreadable-gpu" {
			say(w.Text)
		}
	}
	switch {
	case len(gpus.GPUs()) == 0:
		if none := gpus.None(); none != "" {
			say("no GPU memory is recorded: " + none)
		}
		return nil, nil
	case f.output == "-":
		say("--gpu needs a file: use --output FILE")
		return nil, nil
	case beside == nil:
		return nil, nil
	}
	return watch.CreateGPU(gpuPath(f.output), f.labelled(), f.overwrite)
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
