package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"llmparity/browser/chrome"
	"llmparity/browser/find"
	"llmparity/compare"
	"llmparity/compare/gate"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/foreign"
	"llmparity/internal/record/runfolder"
	"llmparity/reports"
	"llmparity/reports/parquet"
	"llmparity/reports/tables"
)

func reportCommand() *cobra.Command {
	var profile, details bool
	var as formatFlags
	var figures figureFlags
	options := comparison()
	c := &cobra.Command{
		Use:   "report {DIR | FILE.csv}",
		Short: "Render a run again: terminal, HTML, CSV, JSON, Parquet",
		Long: `Print the result of a run and write its report.html again. DIR is the run's folder. Each folder of
'run --against' stands for both sides. FILE.csv is a memory log of another program; its report is
FILE.html.

Formats: docs/reference/formats.md. Figures for a paper: docs/howto/draw-figures.md`,
		Example: `  llmparity report results/latest --details
  llmparity report results/latest --figures decode,ttft`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			format, err := as.chosen()
			if err != nil {
				return err
			}
			s, err := openSides(args[0], true)
			if err != nil {
				return err
			}
			if err := options.Check(s.runs...); err != nil {
				return err
			}
			defer frugal()()
			result, folder, page := s.compare(options), args[0], filepath.Join(args[0], "report.html")
			if s.logged() {
				folder, page = filepath.Dir(args[0]), strings.TrimSuffix(args[0], filepath.Ext(args[0]))+".html"
			} else if result.Gate, err = gate.Saved(s.run().Dir, result); err != nil {
				return err
			}
			if slices.Equal(figures.names, []string{"list"}) {
				known, err := colours().Figures(figures.all, result, s.runs...)
				fmt.Fprintln(c.OutOrStdout(), strings.Join(reports.FigureNames(known), "\n"))
				return err
			}
			if format != nil {
				if err := format.write(c.OutOrStdout(), as.out, result, s.runs...); err != nil {
					return err
				}
				return figures.write(c, folder, result, s.runs...)
			}
			show := reports.Table
			if details {
				show = reports.Details
			}
			if err := show(c.OutOrStdout(), result); err != nil {
				return err
			}
			out := cmp.Or(as.out, page)
			if err := writeHTML(out, "name another file with -o", result, s.runs...); err != nil {
				return err
			}
			places(c.OutOrStdout(), args[0], out, result, details)
			if err := figures.write(c, folder, result, s.runs...); err != nil {
				return err
			}
			if profile {
				return writeProfiles(c, folder, compare.With(options, s.run()), s.run())
			}
			return nil
		},
	}
	c.Flags().StringVarP(&as.out, "output", "o", "",
		"HTML file to write (default DIR/report.html, or FILE.html); with --format: file or folder to write")
	c.Flags().BoolVar(&profile, "profile", false, "also write a memory profile of each cell: DIR/profile-CELL-ENGINE.json")
	as.register(c)
	c.Flags().StringToStringVar(&options.Reference, referenceFlag, nil, referenceHelp)
	toleranceFlag(c, &options)
	figures.register(c)
	detailsFlag(c, &details)
	c.MarkFlagsMutuallyExclusive("json", "format", "details")
	c.MarkFlagsMutuallyExclusive("json", "format", "profile")
	return c
}

// openRun reads a run's folder, or if logs is set also a memory log (CSV) of another program.
func openRun(path string, logs bool) (*record.Run, error) {
	info, err := os.Stat(path)
	isFile := err == nil && !info.IsDir()
	if folder := filepath.Dir(path); isFile && runfolder.Is(folder) {
		return nil, fault.New(fault.Usage, "use the folder "+folder, "%s is a file in a run's folder", path)
	}
	if logs && (isFile || err != nil && strings.EqualFold(filepath.Ext(path), ".csv")) {
		return foreign.Open(path)
	}
	if isFile {
		return nil, fault.New(fault.Usage,
			"name a run's folder; for a CSV file of another program use llmparity report "+path,
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
	if slices.ContainsFunc(result.Cells, func(c *compare.Cell) bool { return len(c.Failures) > 0 }) {
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

// format is a way to write a result. One text goes to standard output or to the file that -o names, several files go
// into the folder that -o names.
type format struct {
	name   string
	text   func(io.Writer, *compare.Result, ...*record.Run) error
	file   func(io.Writer, tables.Table) error // of each table
	suffix string
	// columns are those of summary.csv that were chosen; nil: those that the run needs.
	columns []string
}

// formats are those of report and compare. docs/reference/formats.md describes them.
func formats() []format {
	alone := func(f func(io.Writer, *compare.Result) error) func(io.Writer, *compare.Result, ...*record.Run) error {
		return func(w io.Writer, res *compare.Result, _ ...*record.Run) error { return f(w, res) }
	}
	return []format{
		{name: "table", text: alone(reports.Table)},
		{name: "json", text: alone(reports.ResultJSON)},
		{name: "markdown", text: alone(reports.Markdown)},
		{name: "methods", text: alone(reports.Methods)},
		{name: "bibtex", text: alone(reports.BibTeX)},
		{name: "benchstat", text: alone(reports.Benchstat)},
		{name: "junit", text: alone(reports.JUnit)},
		{name: "bencher", text: alone(reports.Bencher)},
		{name: "customSmallerIsBetter", text: alone(reports.SmallerIsBetter)},
		{name: "customBiggerIsBetter", text: alone(reports.BiggerIsBetter)},
		{name: "llama-bench", text: alone(reports.LlamaBench)},
		{name: "llama-bench-jsonl", text: alone(reports.LlamaBenchJSONL)},
		{name: "html", text: colours().HTML},
		{name: csvFormat, text: alone(tables.Summary), file: tables.CSV, suffix: ".csv"},
		{name: "parquet", file: parquet.Write, suffix: ".parquet"},
	}
}

// colours are the engines' colours in charts.
func colours() reports.Colours { return kinds.All.Colours() }

// comparison are the options of comparing, with the engines' names for people.
func comparison() compare.Rules {
	o := compare.Defaults()
	o.Titles = kinds.All.Titles()
	return o
}

// toleranceFlag sets how much perplexity a form of a model may lose.
func toleranceFlag(c *cobra.Command, options *compare.Rules) {
	c.Flags().Var(percentage{&options.Perplexity}, "perplexity-tolerance",
		"how much perplexity may rise in a form of a model to ship, e.g. 5%")
}

// percentage is a share, which flags have in percent.
type percentage struct{ share *float64 }

func (p percentage) Type() string { return "percent" }

func (p percentage) String() string {
	if p.share == nil {
		return ""
	}
	return strconv.FormatFloat(100**p.share, 'g', 4, 64) + "%"
}

func (p percentage) Set(text string) error {
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	*p.share = v / 100
	return err
}

func formatNames() (names []string) {
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

const csvFormat = "csv"

// formatFlags choose the format of a result, and where it goes.
type formatFlags struct {
	name, out string
	columns   []string
	json      bool
}

func (f *formatFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "format", "", "print the result as "+strings.Join(formatNames(), ", ")+
		"; csv and parquet write several files and need -o DIR (docs/reference/formats.md)")
	c.Flags().BoolVar(&f.json, "json", false, "the same as --format json")
	c.Flags().StringSliceVar(&f.columns, "columns", nil, "print these columns of summary.csv, e.g. label,peak_pss_mb; "+
		"all: every column; list: print their names and meanings (default with --format csv: those that the run needs)")
}

// chosen returns the format; nil if none is chosen. It refuses an impossible one before anything is read.
func (f *formatFlags) chosen() (*format, error) {
	if f.json {
		f.name = "json"
	}
	if f.columns != nil {
		if f.name = cmp.Or(f.name, csvFormat); f.name != csvFormat {
			return nil, fault.New(fault.Usage, "", "--columns requires --format csv")
		}
	}
	if f.name == "" {
		return nil, nil
	}
	at := slices.IndexFunc(formats(), func(known format) bool { return known.name == f.name })
	if at < 0 {
		return nil, fault.New(fault.Usage, didYouMean(f.name, formatNames()), "unknown format %q", f.name)
	}
	known := &formats()[at]
	if known.text == nil && f.out == "" {
		return nil, fault.New(fault.Usage, "name a folder with -o", "--format %s writes several files", known.name)
	}
	known.columns = f.columns
	return known, nil
}

// write writes a result to standard output, or to the file or folder out. A table can be long, so it is streamed to a
// temporary name.
func (f *format) write(stdout io.Writer, out string, res *compare.Result, runs ...*record.Run) error {
	if f.name == csvFormat {
		return f.writeCSV(stdout, out, res, runs...)
	}
	if out == "" || f.file == nil {
		return toFile(stdout, out, func(w io.Writer) error { return f.text(w, res, runs...) })
	}
	return f.writeTables(out, tables.Of(res, runs...))
}

// writeTables writes a file a table.
func (f *format) writeTables(out string, all []tables.Table) error {
	const do = "name another folder with -o"
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fault.Wrap(fault.Unwritable, err, do, "can't write into %s", out)
	}
	for _, t := range all {
		path := filepath.Join(out, t.Name+f.suffix)
		if err := reports.Stream(path, do, func(w io.Writer) error { return f.file(w, t) }); err != nil {
			return err
		}
	}
	return nil
}

// toFile writes to the file that -o names, or without one to standard output.
func toFile(stdout io.Writer, out string, render func(io.Writer) error) error {
	if out == "" {
		return render(stdout)
	}
	return reports.File(out, "name another file with -o", render)
}

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
		"draw these figures, or all, as SVG and 300 dpi PNG, e.g. decode,ttft; needs Chrome or Chromium; list: print the names")
	flags.StringVar(&f.dir, "figures-dir", "", "folder for figures (default \"figures\" in the run's folder)")
	flags.BoolVar(&f.all, "all-launches", false, "draw memory over time for each launch, not only for the launch nearest to the median")
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
	figures, err := colours().Figures(f.all, result, runs...)
	if err != nil {
		return err
	}
	known := reports.FigureNames(figures)
	for _, name := range chosen {
		if !slices.ContainsFunc(known, func(of string) bool { return isFigure(of, name) }) {
			return fault.New(fault.Usage, "it has "+strings.Join(known, ", "), "the run has no figure %q", name)
		}
	}
	f.dir = cmp.Or(f.dir, filepath.Join(dir, "figures"))
	begin := time.Now()
	sheet, err := chrome.OpenSheet(c.Context(), f.chrome)
	if missing, ok := errors.AsType[*fault.Error](err); ok && missing.Kind == fault.NoChrome {
		return &fault.Error{Kind: fault.NoChrome, Err: err, What: "figures need a browser: " + missing.What,
			Do: missing.Do}
	}
	if err != nil {
		return err
	}
	figures = slices.DeleteFunc(figures, func(of reports.Figure) bool {
		is := func(name string) bool { return isFigure(of.Name, name) }
		return len(chosen) > 0 && !slices.ContainsFunc(chosen, is)
	})
	err = errors.Join(reports.DrawFigures(c.Context(), sheet.Run, figures), sheet.Close())
	if err != nil {
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
	return strings.HasPrefix(strings.TrimPrefix(figure, "fig-")+"-", strings.TrimPrefix(name, "fig-")+"-")
}
