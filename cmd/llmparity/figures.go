package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"llmparity/browser"
	"llmparity/compare"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/reports"
)

// figureFlags say where figures for a paper go.
type figureFlags struct {
	dir, chrome string
	all         bool
}

func (f *figureFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.dir, "figures",
		"", "also draw every figure, as SVG and as PNG of 300 dpi, into this folder; takes a Chromium or Chrome")
	c.Flags().BoolVar(&f.all, "all-launches", false,
		"with --figures: each launch, not only the one nearest to the median")
	c.Flags().StringVar(&f.chrome, "chrome", "", "with --figures: the browser to draw with, by its path or as "+
		strings.Join(browser.Brands, ", ")+
		" (default: $LLMPARITY_CHROME, else Chrome, Chromium or Edge)")
}

// write draws the figures that are asked for, in one browser. Nothing is written before all are drawn.
func (f *figureFlags) write(c *cobra.Command, result *compare.Result, runs ...*record.Run) (err error) {
	switch {
	case f.dir == "" && (f.all || f.chrome != ""):
		return fault.New(fault.Usage, "give --figures DIR", "--all-launches and --chrome are about figures")
	case f.dir == "":
		return nil
	}
	begin := time.Now()
	sheet, err := browser.OpenSheet(c.Context(), f.chrome)
	if err != nil {
		return noFigures(err)
	}
	figures, err := colours().Figures(c.Context(), sheet.Run, f.all, result, runs...)
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

// noFigures says of a missing browser what it is for: who reads records may well have none.
func noFigures(err error) error {
	var missing *fault.Error
	if errors.As(err, &missing) && missing.Kind == fault.NoChrome {
		return &fault.Error{Kind: fault.NoChrome, Err: err, What: "figures can't be drawn, SVG no more than PNG: " +
			missing.What, Do: missing.Do}
	}
	return err
}
