package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"llmparity/compare"
	"llmparity/compare/gate"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/reports"
)

func reportCommand() *cobra.Command {
	var out string
	var profile, details bool
	var as formatFlags
	var figures figureFlags
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "Render a run again: the table, report.html, profiles",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := as.check(out); err != nil {
				return err
			}
			if err := isFolder(args[0]); err != nil {
				return err
			}
			r, err := record.Open(args[0])
			if err != nil {
				return err
			}
			defer frugal()()
			result := compare.Runs(r)
			if result.Gate, err = gate.Saved(args[0], result); err != nil {
				return err
			}
			if as.given() {
				if err := as.write(c, out, result, r); err != nil {
					return err
				}
				return figures.write(c, result, r)
			}
			if err := terminal(details)(c.OutOrStdout(), result); err != nil {
				return err
			}
			if out == "" {
				out = filepath.Join(args[0], "report.html")
			}
			if err := writeHTML(out, "name another file with -o", result, r); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "\nReport: %s\n", out)
			if err := figures.write(c, result, r); err != nil {
				return err
			}
			if profile {
				return writeProfiles(c, args[0], result, r)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "",
		"the HTML file (default: DIR/report.html); with --format the file or folder to write instead of standard output")
	c.Flags().BoolVar(&profile, "profile", false,
		"also write DIR/profile-<cell>-<engine>.json, a file a cell (schema_version 2.0)")
	as.register(c)
	figures.register(c)
	detailsFlag(c, &details)
	c.MarkFlagsMutuallyExclusive("json", "details")
	c.MarkFlagsMutuallyExclusive("json", "profile")
	c.MarkFlagsMutuallyExclusive("format", "details")
	c.MarkFlagsMutuallyExclusive("format", "profile")
	return c
}

// isFolder turns down a file before it is looked into: of a run's folder any file may be meant, and rows of another
// program are for compare.
func isFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return nil // what is not there is the reader's to say
	}
	folder := filepath.Dir(path)
	if record.IsRun(folder) {
		return fault.New(fault.Usage, "name the folder: llmparity report "+folder, "%s is a file of a run's folder",
			path)
	}
	return fault.New(fault.Usage, "name a run's folder; for rows of another program there is llmparity compare "+path,
		"%s is a file, not a run's folder", path)
}

func detailsFlag(c *cobra.Command, details *bool) {
	c.Flags().BoolVar(details, "details", false,
		"print memory in full: methods, ranges of forecasts, where it is by part and process")
}

// terminal is what is printed of a result.
func terminal(details bool) func(io.Writer, *compare.Result) error {
	if details {
		return reports.Details
	}
	return reports.Table
}

// writeHTML writes the report; where it can't, do is what to do about it.
func writeHTML(path, do string, result *compare.Result, runs ...*record.Run) error {
	return reports.File(path, do, func(w io.Writer) error { return colours().HTML(w, result, runs...) })
}

func writeProfiles(c *cobra.Command, dir string, result *compare.Result, r *record.Run) error {
	for _, cell := range r.Cells {
		path := filepath.Join(dir, profileName(cell))
		err := reports.File(path, "copy the run's folder to where you may write",
			func(w io.Writer) error { return reports.Profile(w, result, cell.ID) })
		if err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "Profile: %s\n", path)
	}
	return nil
}

// profileName keeps within the folder, and to what every system takes: a record is made by others, and engines are
// named as they like.
func profileName(cell record.Cell) string {
	engine := strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, cell.Engine)
	return fmt.Sprintf("profile-%d-%.60s.json", cell.ID, engine)
}
