package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"llmparity/browser"
	"llmparity/internal/fault"
	"llmparity/internal/machine"
	"llmparity/internal/regular"
	"llmparity/internal/truth"
	"llmparity/internal/whole"
)

// truthFlags are the flags of truth.
type truthFlags struct {
	webllmFlags
	size           mebibytes
	repeats        int
	only           string
	json, markdown bool
	update         string
	quiet          bool
}

// mebibytes is a flag: a size that all kinds of memory can be taken in, in bytes.
type mebibytes int64

// The sizes that can be taken. A smaller one is lost in what moves by itself; a larger one is over WebGPU's limit for a buffer.
const (
	leastTaken = 32 << 20
	mostTaken  = 1 << 30
	takenBy    = 16 << 20
)

func (m *mebibytes) Set(text string) error {
	number, factor := strings.TrimSuffix(text, "MiB"), int64(1<<20)
	if n, ok := strings.CutSuffix(text, "GiB"); ok {
		number, factor = n, 1<<30
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32)
	if err != nil {
		return fmt.Errorf("%q is no size: write one as 64MiB", text)
	}
	if n *= factor; n < leastTaken || n > mostTaken || n%takenBy != 0 {
		return fmt.Errorf("%s can't be taken: give a multiple of 16MiB from 32MiB to 1GiB", text)
	}
	*m = mebibytes(n)
	return nil
}

func (m *mebibytes) String() string { return fmt.Sprintf("%dMiB", *m>>20) }
func (m *mebibytes) Type() string   { return "size" }

// What of a machine the truth can be found of.
const (
	inBrowser   = "browser"
	inProcesses = "processes"
)

func truthCommand() *cobra.Command {
	f := truthFlags{size: 64 << 20}
	c := &cobra.Command{
		Use:   "truth",
		Short: "Find out which source of memory sees which kind of it, here",
		Long: `Find out which source of memory sees which kind of it, on this machine and in this browser: memory of every kind is taken, one after
the other, in a page and in processes, and every source that a run reads is read before and after. docs/memory.md says what the figures
mean, and what is expected; the exit code is 33 where a source does not do what is expected of this platform.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	f.webllmFlags.register(flags)
	flags.Var(&f.size, "size", "how much is taken of each kind: a multiple of 16MiB")
	flags.IntVar(&f.repeats, "repeats", 1, "how often each kind is taken; medians are shown")
	flags.StringVar(&f.only, "only", "", "browser or processes (default: both)")
	flags.BoolVar(&f.json, "json", false, "as JSON, with every repeat and what was expected")
	flags.BoolVar(&f.markdown, "markdown", false, "as a block for documentation")
	flags.StringVar(&f.update, "update", "", "with --markdown: put the block into this file, in the place of the one that it has")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress, only the result")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	return c
}

// check finds what makes no sense before anything is started.
func (f *truthFlags) check() error {
	switch {
	case f.repeats < 1:
		return fault.New(fault.Usage, "give at least 1", "--repeats %d", f.repeats)
	case !slices.Contains([]string{"", inBrowser, inProcesses}, f.only):
		return fault.New(fault.Usage, "give browser or processes", "--only %q", f.only)
	case f.update != "" && !f.markdown:
		return fault.New(fault.Usage, "add --markdown", "--update puts a block of Markdown into a file")
	case f.update != "" && f.only != "":
		return fault.New(fault.Usage, "leave out one of them", "--update writes a whole block, and --only asks for a part")
	}
	if f.update != "" {
		if _, err := f.updated(""); err != nil {
			return err
		}
		if err := whole.Writable(f.update); err != nil { // now: what is to be written takes minutes
			return f.unwritable(err)
		}
	}
	return f.webllmFlags.valid()
}

func (f *truthFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	say := func(what string) {
		if !f.quiet {
			fmt.Fprintln(stderr, what)
		}
	}
	report, err := f.find(ctx, say)
	if ctx.Err() != nil {
		return context.Cause(ctx) // whatever could not be done then
	}
	if err != nil {
		return err
	}
	return f.tell(report, stdout)
}

// tell shows a report, or puts it into the file that is to be updated, unless it is not what was expected.
func (f *truthFlags) tell(report truth.Report, stdout io.Writer) error {
	if err := f.show(report, stdout); err != nil {
		return err
	}
	if n := len(report.Contradictions); n > 0 {
		return fault.New(fault.Untrue, "see docs/memory.md for what is expected; end other browsers and try again with --repeats 3",
			"%d of the cells are not what is expected of this platform: %s", n, report.Contradictions[0])
	}
	if f.update == "" {
		return nil
	}
	page, err := f.updated(report.Markdown())
	if err != nil {
		return err
	}
	if err := whole.Write(f.update, func(w io.Writer) error { _, err := io.WriteString(w, page); return err }); err != nil {
		return f.unwritable(err)
	}
	return nil
}

func (f *truthFlags) unwritable(err error) error {
	return fault.Wrap(fault.Unwritable, err, "name another file with --update", "%s can't be written", f.update)
}

// find measures what was asked for.
func (f *truthFlags) find(ctx context.Context, say func(string)) (truth.Report, error) {
	m := machine.Describe(ctx, machine.Options{})
	kernel, _, _ := strings.Cut("kernel "+m.Kernel, "-") // behind it is who built it
	r := truth.Report{At: time.Now(), Size: int64(f.size), Repeats: f.repeats,
		Machine: fmt.Sprintf("%s (%s), %s, %d cores", m.OS, kernel, m.CPU, m.Cores)}
	if f.only != inProcesses {
		part, err := browser.FindTruth(ctx, browser.Config{Chrome: f.chrome, Launch: f.launch, Adapter: browser.Adapter(f.adapter)},
			r.Size, f.repeats, say)
		if err != nil {
			return r, err
		}
		r.Parts = append(r.Parts, part)
	}
	if f.only != inBrowser {
		self, err := os.Executable()
		if err != nil {
			return r, fmt.Errorf("finding this program, which takes memory: %w", err)
		}
		part, err := truth.InProcesses(ctx, func() *exec.Cmd { return exec.Command(self, allocateName) }, r.Size, f.repeats, say)
		if err != nil {
			return r, err
		}
		r.Parts = append(r.Parts, part)
	}
	r.Conclude()
	return r, nil
}

func (f *truthFlags) show(r truth.Report, stdout io.Writer) error {
	var err error
	switch {
	case f.json:
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	case f.markdown:
		if f.update == "" || len(r.Contradictions) > 0 {
			_, err = io.WriteString(stdout, r.Markdown())
		}
	default:
		_, err = io.WriteString(stdout, r.Text())
	}
	return err
}

// pageMost is more than a page of documentation has.
const pageMost = 16 << 20

// updated is the file that is to be updated, with a block in the place of its old one.
func (f *truthFlags) updated(block string) (string, error) {
	old, err := regular.Read(f.update, pageMost)
	if err != nil {
		return "", fault.Wrap(fault.Usage, err, "name a page with such a block with --update", "%s can't be read", f.update)
	}
	page, err := truth.Replace(string(old), block)
	if err != nil {
		return "", fault.Wrap(fault.Usage, err, "name a page with such a block with --update", "%s has no place for the table", f.update)
	}
	return page, nil
}

// allocateName is the command that truth starts twice: the processes that take memory. It is nothing for people, so that it is hidden.
const allocateName = "truth-allocate"

func allocateCommand() *cobra.Command {
	return &cobra.Command{
		Use:    allocateName,
		Short:  "Take memory as standard input says; only truth starts it",
		Hidden: true,
		Args:   arguments(cobra.NoArgs),
		RunE:   func(*cobra.Command, []string) error { return truth.Allocate(os.Stdin, os.Stdout) },
	}
}
