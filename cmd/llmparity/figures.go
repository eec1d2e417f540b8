package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"llmparity/browser"
	"llmparity/browser/find"
	"llmparity/compare"
	"llmparity/internal/fault"
	"llmparity/internal/nearest"
	"llmparity/internal/record"
	"llmparity/reports"
)

// figureFlags choose the figures to draw for a paper, and their folder.
type figureFlags struct {
	names       []string // as they are typed; a value with a slash is the folder
	dir, chrome string
	all         bool
}

// allFigures is the value of --figures without one.
const allFigures = "all"

func (f *figureFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.names, "figures", nil,
		"draw these figures, or all, as SVG and 300 dpi PNG, e.g. decode,ttft; needs Chrome or Chromium")
	flags.StringVar(&f.dir, "figures-dir", "", "folder for figures (default \"figures\" in the run's folder)")
	flags.BoolVar(&f.all, "all-launches", false, "draw each launch, not only the one nearest to the median")
	flags.StringVar(&f.chrome, "chrome", "", "browser to draw figures with: a path or "+strings.Join(find.Brands, ", ")+
		" (default $LLMPARITY_CHROME, else Chrome, Chromium or Edge)")
	under(flags, "Figures", "figures figures-dir all-launches chrome")
}

// write draws the chosen figures in one browser. It writes nothing unless all can be drawn.
func (f *figureFlags) write(c *cobra.Command, dir string, result *compare.Result, runs ...*record.Run) (err error) {
	if f.names == nil {
		if f.all || f.dir != "" || f.chrome != "" {
			return fault.New(fault.Usage, "", "--figures-dir, --all-launches and --chrome require --figures")
		}
		return nil
	}
	chosen := slices.DeleteFunc(slices.Clone(f.names), func(name string) bool {
		if strings.Contains(name, "/") {
			f.dir = name
		}
		return strings.Contains(name, "/") || name == allFigures
	})
	known, err := colours().FigureNames(f.all, result, runs...)
	if err != nil {
		return err
	}
	for _, name := range chosen {
		if !slices.ContainsFunc(known, func(of string) bool { return isFigure(of, name) }) {
			for i := range known {
				known[i] = strings.TrimPrefix(known[i], "fig-")
			}
			return fault.New(fault.Usage, "the nearest are "+strings.Join(nearest.Of(name, known, 3), ", ")+
				"; name a folder with --figures-dir", "unknown figure %q", name)
		}
	}
	f.dir = cmp.Or(f.dir, filepath.Join(dir, "figures"))
	begin := time.Now()
	sheet, err := browser.OpenSheet(c.Context(), f.chrome)
	if missing, ok := errors.AsType[*fault.Error](err); ok && missing.Kind == fault.NoChrome {
		return &fault.Error{Kind: fault.NoChrome, Err: err, What: "figures need a browser: " + missing.What,
			Do: missing.Do}
	}
	if err != nil {
		return err
	}
	figures, err := colours().Figures(c.Context(), sheet.Run, f.all, func(of string) bool {
		return len(chosen) == 0 || slices.ContainsFunc(chosen, func(name string) bool { return isFigure(of, name) })
	}, result, runs...)
	if err = errors.Join(err, sheet.Close()); err != nil {
		return err
	}
	if err := reports.WriteFigures(f.dir, figures); err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "Figures: %d in %s, listed in %s; drawn in %.1f s\n", len(figures), f.dir,
		reports.FigureIndex, time.Since(begin).Seconds())
	return nil
}

// isFigure reports whether a name stands for a figure. "memory" stands for fig-memory and fig-memory-webllm.
func isFigure(figure, name string) bool {
	short := strings.TrimPrefix(figure, "fig-")
	return figure == name || short == name || strings.HasPrefix(short, strings.TrimPrefix(name, "fig-")+"-")
}
