package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/internal/figure"
	"llmparity/internal/warning"
	"llmparity/reports/tables"
)

// figuresPage lists every figure, in the order of results.
func figuresPage() []byte {
	var b bytes.Buffer
	b.WriteString(`# Figures

This page lists every figure that llmparity computes, from the table in ` + "`internal/figure`" + `.
Reports show the median over launches with its 95% confidence interval.
Gates, ` + "`--until-figure`" + ` and JSON use the name; summary.csv uses the column.
` + "`_mb`" + ` columns are in MiB.
[Memory](../explanation/memory.md) explains the memory figures, [Statistics](../explanation/statistics.md) the intervals.

| name | title | unit | better | column of summary.csv | definition |
|---|---|---|---|---|---|
`)
	for _, row := range figure.Rows(figure.Any) {
		r := *row
		column := ""
		if r.Column.Name != "" {
			column = "`" + r.Column.Name + "`"
		}
		if r.Inside != nil && r.Inside.Logged != "" {
			r.How = "WebLLM: " + r.How + ". llama.cpp and Ollama: " + r.Inside.Logged
		}
		how := strings.ReplaceAll(r.How, "(%s)", "(`goal` in the plan)")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", r.Name, r.Title, r.Unit, r.Better, column, cell(how))
	}
	return b.Bytes()
}

// cell is a text in a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// formatsPage lists the columns of every exported table.
func formatsPage() []byte {
	var b bytes.Buffer
	b.WriteString(`# Formats

What llmparity writes, column by column. [Read a run's files](../howto/read-a-run.md) has examples.

    llmparity report DIR --format NAME [-o PATH]
    llmparity compare A B … --format NAME [-o PATH]

| format | content | goes to |
|---|---|---|
| ` + "`table`" + ` | the terminal's table | standard output, or the file of ` + "`-o`" + ` |
| ` + "`json`" + ` | the result; [schema](schemas/result.schema.json) | the same |
| ` + "`markdown`" + ` | answer, table, ratios, parity and warnings, for GitHub | the same |
| ` + "`methods`" + ` | how the figures were measured, in paragraphs [for a paper](../howto/draw-figures.md#describe-the-method) | the same |
| ` + "`bibtex`" + ` | BibTeX entries of the runs and of llmparity | the same |
| ` + "`benchstat`" + ` | Go's benchmark format, one line a launch | the same |
| ` + "`junit`" + ` | test cases: launches, repeatability, parity, predictions | the same |
| ` + "`bencher`" + ` | Bencher's Metric Format: medians and intervals; it has no place for warnings | the same |
| ` + "`customSmallerIsBetter`" + ` | for github-action-benchmark: the figures of which less is better | the same |
| ` + "`customBiggerIsBetter`" + ` | those of which more is better | the same |
| ` + "`llama-bench`" + ` | llama-bench's table: ` + "`pp512`" + ` is the prefill, ` + "`tg127 @ d512`" + ` the decode of 128 tokens after 512 | the same |
| ` + "`llama-bench-jsonl`" + ` | its rows; a sample is a launch, and what the record lacks is null | the same |
| ` + "`html`" + ` | the report, one file | the same |
| ` + "`csv`" + ` | ` + "`summary.csv`" + `; with ` + "`-o`" + ` all six tables | standard output, or the folder of ` + "`-o`" + ` |
| ` + "`parquet`" + ` | all six tables, typed | the folder of ` + "`-o`" + ` |

Units: ` + "`_mb`" + ` is MiB, ` + "`_gb`" + ` is GiB, ` + "`_tokens_per_s`" + ` tokens per second, ` +
		"`_percent`" + ` of processor time is percent of one core.
A value that was not measured is absent: an empty field in CSV, null in Parquet, no field in JSON. Zero is zero.
Times are RFC 3339 with microseconds in CSV, and UTC timestamps in Parquet.

## Versions

- The field ` + "`schema`" + ` names a document's layout, such as ` + "`llmparity.run/2.0`" + `.
- Within a major version, fields and columns are added, never removed, renamed or given another meaning.
- Ignore fields that you don't know, and find columns by name.
- llmparity reads run folders that version 0.1 or a later one wrote. It reads what it knows of a newer minor version,
  with a warning, and refuses another major version.
- ` + "`llmparity schema NAME`" + ` prints a strict JSON Schema; ` + "`llmparity schema`" + ` lists the names.
`)
	for _, t := range tables.Of(&compare.Result{}) {
		fmt.Fprintf(&b, "\n## %s: one row a %s\n\n", t.Name, rowOf[t.Name])
		if t.Name == "summary" {
			b.WriteString(summaryColumns)
		}
		b.WriteString("| column | type | meaning |\n|---|---|---|\n")
		for _, c := range t.Columns {
			if t.Name == "summary" && suffixed(c.Name) {
				continue
			}
			what := c.What
			if left := tables.Left(c.Name); t.Name == "summary" && left != "" {
				what += "; " + left
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Name, c.Kind, cell(what))
		}
	}
	return b.Bytes()
}

// summaryColumns say which columns a summary has.
const summaryColumns = "Each figure has four more columns: `X_lo` and `X_hi`, the 95% confidence interval of the median " +
	"(absent below six launches);\n`X_n`, the number of launches; " +
	"and `X_from`, [where it comes from](../explanation/memory.md#where-a-figure-comes-from).\n\n" +
	"summary.csv has the columns that the run needs. Left out are columns that are empty in every row, `X_lo` and `X_hi` if " +
	"both are `X` in every row,\n`X_n` if it is `launches_counted` in every row, and what the table says of a column. " +
	"A part or setting in which cells of one engine differ has a column of its own, the last ones.\n" +
	"`--columns label,peak_pss_mb` chooses columns, `--columns all` prints every column, and `--columns list` their names and " +
	"meanings.\nThe Parquet file has every column.\n\n"

var rowOf = map[string]string{"summary": "cell", "samples": "process and reading", "totals": "tick", "tokens": "token",
	"metrics": "value of any other source", "scores": "candidate at a position of a scored text"}

// suffixed tells whether a column of the summary goes with the column of a figure.
func suffixed(name string) bool {
	return slices.ContainsFunc([]string{"_lo", "_hi", "_n", "_from"},
		func(s string) bool { return strings.HasSuffix(name, s) })
}

// warningsPage is the page of warnings.
func warningsPage() []byte {
	var b bytes.Buffer
	b.WriteString("# Warnings\n\n" +
		"A warning is a remark that may change a conclusion; everything else is a note.\n" +
		"At its top, a report says how many warnings there are, and lists them. `llmparity report DIR --details` also prints the notes.\n\n" +
		"| code | what it means | what to do |\n|---|---|---|\n")
	for _, r := range warning.Table {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Code, r.Means, r.Do)
	}
	b.WriteString("\nThe record (`journal.jsonl`) holds finer codes than these. Reports show each of them as one of the warnings above:\n\n" +
		"| warning | codes in records |\n|---|---|\n")
	for _, r := range warning.Table {
		if len(r.Records) > 0 {
			fmt.Fprintf(&b, "| `%s` | `%s` |\n", r.Code, strings.Join(r.Records, "`, `"))
		}
	}
	fmt.Fprintf(&b, "\nThese codes are notes: `%s`.\n", strings.Join(warning.Notes, "`, `"))
	return b.Bytes()
}
