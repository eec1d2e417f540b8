package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"llmparity/compare"
	"llmparity/compare/gate"
	"llmparity/internal/fault"
	"llmparity/internal/foreign"
	"llmparity/internal/record"
	"llmparity/reports"
)

func reportCommand() *cobra.Command {
	var profile, details bool
	var as formatFlags
	var figures figureFlags
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "Render a run again: terminal, HTML, CSV, JSON, Parquet",
		Long: `Print the result of a run and write its report.html again. DIR is the run's folder.

Formats: docs/reference/formats.md. Figures for a paper: docs/howto/draw-figures.md`,
		Example: `  llmparity report results/latest --details
  llmparity report results/latest --figures decode,ttft`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			format, err := as.chosen()
			if err != nil {
				return err
			}
			r, err := openRun(args[0], false)
			if err != nil {
				return err
			}
			defer frugal()()
			result := compare.With(comparison(), r)
			if result.Gate, err = gate.Saved(args[0], result); err != nil {
				return err
			}
			if format != nil {
				if err := format.write(c.OutOrStdout(), as.out, result, r); err != nil {
					return err
				}
				return figures.write(c, args[0], result, r)
			}
			show := reports.Table
			if details {
				show = reports.Details
			}
			if err := show(c.OutOrStdout(), result); err != nil {
				return err
			}
			out := cmp.Or(as.out, filepath.Join(args[0], "report.html"))
			if err := writeHTML(out, "name another file with -o", result, r); err != nil {
				return err
			}
			places(c.OutOrStdout(), args[0], out, result, details)
			if err := figures.write(c, args[0], result, r); err != nil {
				return err
			}
			if profile {
				return writeProfiles(c, args[0], result, r)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&as.out, "output", "o", "",
		"HTML file to write (default DIR/report.html); with --format: file or folder to write")
	c.Flags().BoolVar(&profile, "profile", false, "also write a memory profile of each cell: DIR/profile-CELL-ENGINE.json")
	as.register(c)
	figures.register(c)
	detailsFlag(c, &details)
	c.MarkFlagsMutuallyExclusive("json", "format", "details")
	c.MarkFlagsMutuallyExclusive("json", "format", "profile")
	return c
}

// openRun reads a run's folder, or for compare also a memory log (CSV) of another program.
func openRun(path string, logs bool) (*record.Run, error) {
	info, err := os.Stat(path)
	isFile := err == nil && !info.IsDir()
	if folder := filepath.Dir(path); isFile && record.IsRun(folder) {
		return nil, fault.New(fault.Usage, "use the folder "+folder, "%s is a file in a run's folder", path)
	}
	if logs && (isFile || err != nil && strings.EqualFold(filepath.Ext(path), ".csv")) {
		return foreign.Open(path)
	}
	if isFile {
		return nil, fault.New(fault.Usage,
			"name a run's folder; for a CSV file of another program use llmparity compare "+path,
			"%s is not a run's folder", path)
	}
	return record.Open(path)
}

func detailsFlag(c *cobra.Command, details *bool) {
	c.Flags().BoolVar(details, "details", false, "print all tables, methods and warnings")
}

// places says where the report is and, unless that is enough, where logs and details are.
func places(w io.Writer, dir, report string, result *compare.Result, enough bool) {
	fmt.Fprintf(w, "\nreport   %s\n", report)
	if enough {
		return
	}
	if slices.ContainsFunc(result.Cells, func(c compare.Cell) bool { return len(c.Failures) > 0 }) {
		fmt.Fprintf(w, "logs     %s\n", filepath.Join(dir, "logs"))
	}
	fmt.Fprintf(w, "details  llmparity report %s --details\n", dir)
}

// writeHTML writes the report. do is the advice if it cannot be written.
func writeHTML(path, do string, result *compare.Result, runs ...*record.Run) error {
	return reports.File(path, do, func(w io.Writer) error { return colours().HTML(w, result, runs...) })
}

// writeProfiles writes a memory profile of each cell. A record may come from elsewhere, with any engine name.
func writeProfiles(c *cobra.Command, dir string, result *compare.Result, r *record.Run) error {
	for _, cell := range r.Cells {
		engine := strings.Map(func(r rune) rune {
			if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("._-", r) {
				return r
			}
			return '-'
		}, cell.Engine)
		path := filepath.Join(dir, fmt.Sprintf("profile-%d-%.60s.json", cell.ID, engine))
		err := reports.File(path, "copy the run's folder to a writable place",
			func(w io.Writer) error { return reports.Profile(w, result, cell.ID) })
		if err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "Profile: %s\n", path)
	}
	return nil
}

// frugalAbove is the heap size above which garbage is collected more often.
const frugalAbove = 48 << 20

// frugal reduces peak memory after a long run was read. By default, Go lets garbage grow to the size of live data.
// Collections are cheap here because rows hold few pointers. GOGC takes precedence. restore undoes it.
func frugal() (restore func()) {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc < frugalAbove || os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(10)
	return func() { debug.SetGCPercent(was) }
}
