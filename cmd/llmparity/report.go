package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"llmparity/compare"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/reports"
)

func reportCommand() *cobra.Command {
	var out string
	var profile, json bool
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "Render a run again: the table, report.html, profiles",
		Args:  arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := record.Open(args[0])
			if err != nil {
				return err
			}
			result := compare.Runs(r)
			if json {
				return reports.JSON(c.OutOrStdout(), result)
			}
			if err := reports.Table(c.OutOrStdout(), result); err != nil {
				return err
			}
			if out == "" {
				out = filepath.Join(args[0], "report.html")
			}
			if err := writeHTML(out, result, r); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "\nReport: %s\n", out)
			if profile {
				return writeProfiles(c, args[0], r)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "the HTML file (default: DIR/report.html)")
	c.Flags().BoolVar(&profile, "profile", false, "also write DIR/profile-<cell>-<engine>.json, a file a cell (schema_version 2.0)")
	c.Flags().BoolVar(&json, "json", false, "print the result as JSON instead")
	return c
}

func compareCommand() *cobra.Command {
	var json bool
	var html string
	c := &cobra.Command{
		Use:   "compare DIR...",
		Short: "Show one or more runs beside each other",
		Args:  arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var runs []*record.Run
			for _, dir := range args {
				r, err := record.Open(dir)
				if err != nil {
					return err
				}
				runs = append(runs, r)
			}
			result := compare.Runs(runs...)
			if html != "" {
				if err := writeHTML(html, result, runs...); err != nil {
					return err
				}
			}
			if json {
				return reports.JSON(c.OutOrStdout(), result)
			}
			return reports.Table(c.OutOrStdout(), result)
		},
	}
	c.Flags().BoolVar(&json, "json", false, "print the result as JSON, for machines")
	c.Flags().StringVar(&html, "html", "", "also write an HTML report to this file")
	return c
}

func writeHTML(path string, result *compare.Result, runs ...*record.Run) error {
	var page bytes.Buffer
	if err := reports.HTML(&page, result, runs...); err != nil {
		return err
	}
	return writeWhole(path, page.Bytes())
}

func writeProfiles(c *cobra.Command, dir string, r *record.Run) error {
	for _, cell := range r.Cells {
		var text bytes.Buffer
		if err := reports.Profile(&text, r, cell.ID); err != nil {
			return err
		}
		path := filepath.Join(dir, fmt.Sprintf("profile-%d-%s.json", cell.ID, cell.Engine))
		if err := writeWhole(path, text.Bytes()); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "Profile: %s\n", path)
	}
	return nil
}

// writeWhole writes a file aside and renames it, so that no half of one is ever taken for whole.
func writeWhole(path string, data []byte) error {
	tmp := path + ".part"
	err := os.WriteFile(tmp, data, 0o644)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err == nil {
		return nil
	}
	_ = os.Remove(tmp)
	if errors.Is(err, syscall.ENOSPC) {
		return fault.Wrap(fault.DiskFull, err, "free some space; the record itself is whole", "can't write %s", path)
	}
	return fault.Wrap(fault.Unwritable, err, "name another file with -o", "can't write %s", path)
}
