package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"llmparity/compare"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
	"llmparity/internal/record"
	"llmparity/reports/tables"
)

// Values of --columns that are no column's name.
const (
	allColumns  = "all"
	listColumns = "list"
)

// writeCSV writes summary.csv, or with a folder all tables, with the chosen columns of the summary.
func (f *format) writeCSV(stdout io.Writer, out string, res *compare.Result, runs ...*record.Run) error {
	all := tables.Of(res, runs...)
	if slices.Equal(f.columns, []string{listColumns}) {
		return printColumns(stdout, all[0])
	}
	var err error
	if all[0], err = chosenColumns(all[0], f.columns); err != nil {
		return err
	}
	if out == "" {
		return f.file(stdout, all[0])
	}
	return f.writeTables(out, all)
}

// chosenColumns keeps the columns of these names; of none, those that the cells need.
func chosenColumns(t tables.Table, names []string) (tables.Table, error) {
	switch {
	case len(names) == 0:
		return tables.Needed(t)
	case slices.Equal(names, []string{allColumns}):
		return t, nil
	}
	for _, name := range names {
		if !slices.Contains(t.Names(), name) {
			return t, fault.New(fault.Usage, "the nearest are "+strings.Join(nearest.Of(name, t.Names(), 3), ", ")+
				"; --columns list prints all", "the summary has no column %q", name)
		}
	}
	return t.Choose(names), nil
}

// printColumns lists the columns of a summary with their meanings. A dash marks those that its cells do not need.
func printColumns(w io.Writer, t tables.Table) error {
	needed, err := tables.Needed(t)
	if err != nil {
		return err
	}
	to := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range t.Columns {
		mark := "-"
		if slices.Contains(needed.Names(), c.Name) {
			mark = "+"
		}
		fmt.Fprintf(to, "%s %s\t%s\t%s\n", mark, c.Name, c.Kind, c.What)
	}
	fmt.Fprintln(to, "\n+ columns that --format csv prints of this run\n- columns that say nothing of this run, or what goes without saying")
	return to.Flush()
}

// columnsOf are the columns of the runs that a command line names.
func columnsOf(args []string) []string {
	var runs []*record.Run
	for _, path := range args {
		if r, err := openRun(path, true); err == nil {
			runs = append(runs, r)
		}
	}
	return append(tables.Of(compare.With(comparison(), runs...), runs...)[0].Names(), allColumns, listColumns)
}
