package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"llmparity/assets/profiler"
	"llmparity/browser/webllm"
	"llmparity/internal/kit/fault"
	"llmparity/reports"
)

func profilerCommand() *cobra.Command {
	var out string
	var overwrite bool
	c := &cobra.Command{
		Use:   "profiler -o DIR",
		Short: "Write a JavaScript module with which your own app measures WebLLM",
		Long: `Write WebLLMProfiler: an ES module without dependencies, with types, instructions and an example app. An
app that uses WebLLM imports it and measures itself: memory over time, WebGPU memory, tokens, speed,
and how long the page was blocked. Its CSV is for report and compare.

Docs: docs/howto/profile-your-app.md`,
		Example: "  llmparity profiler -o profiler\n  llmparity profiler -o web/profiler --overwrite",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if out == "" {
				return fault.New(fault.Usage, "name a folder: llmparity profiler -o profiler", "-o DIR is missing")
			}
			return writeProfiler(c.OutOrStdout(), out, overwrite)
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "folder to write, which is made")
	c.Flags().BoolVar(&overwrite, "overwrite", false, "overwrite existing files")
	return c
}

// writeProfiler writes all files, or none if one exists.
func writeProfiler(w io.Writer, dir string, overwrite bool) error {
	files, err := profiler.Files(webllm.Scripts())
	if err != nil {
		return err
	}
	for _, f := range files {
		if path := filepath.Join(dir, f.Name); !overwrite && there(path) {
			return fault.New(fault.Usage, "name another folder, or use --overwrite", "%s exists", path)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Wrap(fault.Unwritable, err, "name another folder with -o", "can't write into %s", dir)
	}
	for _, f := range files {
		err := reports.File(filepath.Join(dir, f.Name), "name another folder with -o", func(w io.Writer) error {
			_, err := w.Write(f.Text)
			return err
		})
		if err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "%d files in %s: begin with README.md\n", len(files), dir)
	return err
}
