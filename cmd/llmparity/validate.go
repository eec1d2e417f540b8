package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"llmparity/compare"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/reports"
)

func validateCommand() *cobra.Command {
	var asJSON, markdown bool
	c := &cobra.Command{
		Use:   "validate DIR",
		Short: "Hold what was foretold of memory against what was measured, over all runs below a folder",
		Long: `Hold what was foretold of memory against what was measured, over all runs below a folder, or of a single one: median error, bias, largest error
and the share within the range that was foretold, for each component, by engine and by context; then the cells, the worst first.

Runs of before there were forecasts count as runs without. A folder that can't be read is said and left out; the exit code is 22 then.`,
		Example: `  llmparity validate results
  llmparity validate results --markdown > table.md`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			v, err := validation(c.Context(), args[0])
			if err != nil {
				return err
			}
			render := reports.ValidationTable
			if asJSON {
				render = reports.ValidationJSON
			} else if markdown {
				render = reports.ValidationMarkdown
			}
			if err := render(c.OutOrStdout(), v); err != nil {
				return err
			}
			if n := len(v.Broken); n > 0 {
				return fault.New(fault.BadRecord, "read them with the version that wrote them, or remove them",
					"%d of %d run folders can't be read", n, n+v.Runs)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON, for machines")
	c.Flags().BoolVar(&markdown, "markdown", false, "print the tables as Markdown, for a document")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	return c
}

// validation reads every run below a folder, one at a time: their samples are many.
func validation(ctx context.Context, root string) (*compare.Validation, error) {
	dirs, err := runFolders(root)
	if err != nil {
		return nil, err
	}
	v := compare.NewValidation()
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		run, err := record.Open(dir)
		if err != nil {
			v.Broken = append(v.Broken, compare.BrokenRun{Dir: dir, Error: fault.OneLine(err.Error())})
			continue
		}
		v.Add(run)
	}
	v.Close()
	if len(v.Cells) > 0 {
		return v, nil
	}
	return nil, nothingPredicted(root, v)
}

// nothingPredicted says why there is nothing to hold against anything.
func nothingPredicted(root string, v *compare.Validation) error {
	why := ""
	if len(v.Absent) > 0 {
		why = " (" + v.Absent[0] + ")"
	}
	if v.Runs == 0 {
		return fault.New(fault.BadRecord, "name a folder that `llmparity run` wrote into",
			"none of the %d run folders below %s can be read: %s", len(v.Broken), root, v.Broken[0].Error)
	}
	broken := ""
	if len(v.Broken) > 0 {
		broken = fmt.Sprintf(", and %d can't be read", len(v.Broken))
	}
	return fault.New(fault.BadRecord, "`llmparity run` foretells and measures",
		"none of the %d runs below %s has a cell whose memory was both foretold and measured%s%s",
		v.Runs, root, why, broken)
}

// runFolders finds every run below a folder, or the folder itself, in the order of names. Links are not followed: the
// latest run would count twice.
func runFolders(root string) ([]string, error) {
	const do = "name a folder that `llmparity run` wrote, or one with such folders in it"
	at, err := filepath.EvalSymlinks(root)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(at); err == nil && !info.IsDir() {
			err = errors.New("it is no folder")
		}
	}
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, fault.Wrap(fault.BadRecord, err, do, "%s can't be read", root)
	}
	var out []string
	err = filepath.WalkDir(at, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && path == at:
			return err
		case err != nil:
			return nil // not ours to read
		case !entry.IsDir():
			return nil
		case path != at && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir // one that is being made
		case isRun(path):
			out = append(out, path)
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, fault.Wrap(fault.BadRecord, err, do, "%s can't be read", root)
	}
	if len(out) == 0 {
		return nil, fault.New(fault.BadRecord, do, "there is no run folder below %s", root)
	}
	slices.Sort(out)
	return out, nil
}

// isRun tells a run folder, whole or not.
func isRun(dir string) bool {
	for _, name := range []string{"run.json", "journal.jsonl"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
