package reports

import (
	"strings"

	"llmparity/compare"
)

// sources are the files and columns of a record that charts are drawn from, by the prefix of their ids.
var sources = []struct{ id, from string }{
	{"memory-", "totals.csv: t_ns, method, pss_mb, rss_sum_mb; samples.csv: t_ns, source, pss_mb, rss_mb; journal.jsonl: source, phase"},
	{"peaks", "totals.csv: t_ns, method, pss_mb; journal.jsonl: phase, end"},
	{"headline-", "totals.csv: t_ns, method, pss_mb; metrics.csv: name, value, edge; tokens.csv: index, t_ns; journal.jsonl: event, phase"},
	{"load", "journal.jsonl: phase (begin_ns, end_ns of load)"},
	{"ttft", "journal.jsonl: request (sent_ns); tokens.csv: t_ns of index 0"},
	{"decode", "tokens.csv: index, t_ns"},
	{"prefill", "journal.jsonl: request (sent_ns, prompt_ids), span (prefill)"},
	{"growth-", "tokens.csv: index, t_ns; totals.csv, samples.csv, metrics.csv: t_ns and the quantity's column; journal.jsonl: cell (model), source"},
	{"latency_vs_", "tokens.csv: index, t_ns; journal.jsonl: cell (traffic), request (due_ns, sent_ns, returned_ns, kind)"},
	{"latency-", "tokens.csv: index, t_ns; journal.jsonl: request (sent_ns, returned_ns)"},
	{"fig1_", "totals.csv: t_ns, method, pss_mb; journal.jsonl: cell, phase"},
	{"fig2_", "tokens.csv: index, t_ns; journal.jsonl: cell (traffic), request (due_ns, sent_ns, returned_ns)"},
	{"fig3_", "tokens.csv: index, t_ns; journal.jsonl: request (sent_ns, returned_ns, prompt_ids)"},
	{"fig4_", "totals.csv: t_ns, method, pss_mb, rss_sum_mb; metrics.csv: name, value, edge; journal.jsonl: request (prompt_ids)"},
	{"fig5_", "tokens.csv: index, t_ns; journal.jsonl: request (due_ns, sent_ns, returned_ns, kind)"},
	{"tokens-", "tokens.csv: index, t_ns; totals.csv, samples.csv, metrics.csv: t_ns and the quantity's column; journal.jsonl: source, event (clocks)"},
}

// foreignSource names the file and columns of another program.
func foreignSource(c *compare.Cell) string {
	if c.Engine == nil {
		return ""
	}
	return line(c.Engine.Version) + ": timestamp, label, pid, rss_mb, heap_used_mb"
}

// sourceOf says what a chart is drawn from.
func sourceOf(c *chart) string {
	from := "the run folder's CSV files and journal.jsonl, as the report says under “How each number was got”"
	for _, s := range sources {
		if strings.HasPrefix(c.ID, s.id) {
			from = s.from
			break
		}
	}
	return from
}
