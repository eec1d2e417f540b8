package reports

import (
	"fmt"
	"io"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/kit/words"
	"llmparity/internal/stats"
	"llmparity/reports/plain"
	"llmparity/reports/section"
)

// tracked are the figures that dashboards get: those of benchstat for which one direction is better.
func tracked() []*figure.Row {
	return figure.Columns(func(r *figure.Row) bool { return r.Bench != "" && r.Better != figure.Neither })
}

// trackedNames are the names of cells over time: those of benchstat, which stay the same in another run. With several
// runs each name has its run.
func trackedNames(res *compare.Result) []string {
	names := benchNames(res)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], "Generate/")
		if len(res.Runs) > 1 {
			names[i] = fmt.Sprintf("run=%d/%s", res.Cells[i].Run+1, names[i])
		}
	}
	return names
}

// bencherMeasure is a figure in Bencher's format; bounds are absent below six launches.
type bencherMeasure struct {
	Value float64  `json:"value"`
	Lower *float64 `json:"lower_value,omitempty"`
	Upper *float64 `json:"upper_value,omitempty"`
}

// Bencher writes Bencher's Metric Format: medians with their intervals, by cell and figure. The format has no place for
// warnings.
func Bencher(w io.Writer, res *compare.Result) error {
	doc := map[string]map[string]bencherMeasure{}
	names := trackedNames(res)
	for i, c := range res.Cells {
		of := map[string]bencherMeasure{}
		for _, row := range tracked() {
			f := c.Figure(row.Name)
			if !f.Known() {
				continue
			}
			m := bencherMeasure{Value: stats.Round(f.Center(), 6)}
			if f.Interval != nil {
				m.Lower, m.Upper = &f.Interval.Lo, &f.Interval.Hi
			}
			of[row.Asked()] = m
		}
		if len(of) > 0 {
			doc[names[i]] = of
		}
	}
	return JSON(w, doc)
}

// githubEntry is a result of github-action-benchmark's custom tools.
type githubEntry struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Range string  `json:"range,omitempty"`
	Extra string  `json:"extra,omitempty"`
}

// SmallerIsBetter writes the figures of which less is better, for github-action-benchmark's customSmallerIsBetter.
func SmallerIsBetter(w io.Writer, res *compare.Result) error { return github(w, res, figure.Lower) }

// BiggerIsBetter writes the figures of which more is better, for customBiggerIsBetter.
func BiggerIsBetter(w io.Writer, res *compare.Result) error { return github(w, res, figure.Higher) }

// github writes figures of one direction, because a file of github-action-benchmark has only one. Its text "extra" has
// the launches of a cell, and once the warnings.
func github(w io.Writer, res *compare.Result, better figure.Better) error {
	out := []githubEntry{}
	names := trackedNames(res)
	for i, c := range res.Cells {
		for _, row := range tracked() {
			f := c.Figure(row.Name)
			if row.Better != better || !f.Known() {
				continue
			}
			e := githubEntry{Name: names[i] + "/" + row.Asked(), Unit: row.Unit, Value: stats.Round(f.Center(), 6),
				Range: ranged(f), Extra: plain.Line(fmt.Sprintf("%s: %s, %s", c.Label, row.Title,
					words.Count(len(f.Values), "launch")))}
			if len(out) == 0 {
				for _, text := range section.WarningLines(res.Warnings, res) {
					e.Extra += "\nwarning: " + plain.Line(text)
				}
			}
			out = append(out, e)
		}
	}
	return JSON(w, out)
}

// ranged is the 95% confidence interval; empty below six launches.
func ranged(f evidence.Figure) string {
	if f.Interval == nil {
		return ""
	}
	return fmt.Sprintf("%s to %s", plain.Num(f.Interval.Lo), plain.Num(f.Interval.Hi))
}
