package tables_test

import (
	"bytes"
	"encoding/csv"
	"slices"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/reports/tables"
)

// table is a summary as a program reads it: the columns, and the rows by their names.
func table(t *testing.T, run *record.Run) (columns []string, all []map[string]string) {
	t.Helper()
	var b bytes.Buffer
	check.Err(t, tables.Summary(&b, compare.Runs(run)))
	head, err := csv.NewReader(bytes.NewReader(b.Bytes())).Read()
	check.Err(t, err)
	return head, rows(t, b.Bytes())
}

// A column is there if a run needs it, and what identifies a row always is.
func TestSummaryHasWhatARunNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(web, llama *comparetest.Engine)
		with, not []string
	}{
		"usual": {func(_, _ *comparetest.Engine) {}, []string{"run_name", "cell", "label", "model_sha256",
			"temperature",
			"launches_counted", "peak_pss_mb", "peak_pss_mb_lo", "decode_tokens_per_s", "decode_tokens_per_s_from",
			"kernels", "model_library", "browser", "output"},
			[]string{"isolation", "reused", "prompt_cache", "launches_failed", "refused", "peak_pss_mb_n", "perplexity",
				"perplexity_n", "goodput_from", "traffic", "turns", "engine_commit", "input_tokens",
				"output_differs_at",
				"tokens_generated_lo"}},
		"few": {func(web, llama *comparetest.Engine) { few(web); few(llama) }, []string{"peak_pss_mb"},
			[]string{"peak_pss_mb_lo", "peak_pss_mb_hi"}},
		"a failed launch": {func(web, _ *comparetest.Engine) { web.Failing = map[int]record.Class{2: record.OOM} },
			[]string{"launches_failed", "failures"}, nil},
		"an axis": {func(_, llama *comparetest.Engine) { llama.Cell.Threads = 2 }, []string{"threads"}, nil},
		"reused":  {func(web, _ *comparetest.Engine) { web.Cell.Reused = true }, []string{"reused"}, nil},
		"a prompt cache": {func(_, llama *comparetest.Engine) { llama.Cell.PromptCache = "on" },
			[]string{"prompt_cache"}, nil},
		"a commit": {func(_, llama *comparetest.Engine) { llama.Info.Commit = "0badcafe" },
			[]string{"engine_commit"}, nil},
		"outputs that part": {func(web, _ *comparetest.Engine) { web.IDs[6] = 511 }, []string{"output_differs_at"},
			nil},
	} {
		web, llama := comparetest.Browser(6), comparetest.Native(6)
		c.change(&web, &llama)
		_, run := opened(t, web, llama)
		columns, _ := table(t, run)
		for _, column := range c.with {
			if !slices.Contains(columns, column) {
				t.Errorf("%s: no column %s", name, column)
			}
		}
		for _, column := range c.not {
			if slices.Contains(columns, column) {
				t.Errorf("%s: a column %s, which says nothing", name, column)
			}
		}
	}
}

// Parts and settings that differ between cells of one engine have columns; names of others' records have none.
func TestSummaryHasPartsThatDiffer(t *testing.T) {
	one, other := comparetest.Browser(6), comparetest.Browser(6)
	other.Cell.ID, other.Cell.PromptID, other.Cell.Prompt = 2, 2, "There was"
	one.Info.Parts = map[string]string{"bundle_sha256": "aa", "page_sha256": "cc", "Evil\n,name": "1"}
	other.Info.Parts = map[string]string{"bundle_sha256": "bb", "page_sha256": "cc", "Evil\n,name": "2"}
	one.Info.Policy = map[string]string{"flash_attention": "on"}
	other.Info.Policy = map[string]string{"flash_attention": "off"}
	_, run := opened(t, one, other)
	columns, all := table(t, run)
	if last := columns[len(columns)-2:]; !slices.Equal(last, []string{"bundle_sha256", "flash_attention"}) ||
		all[0]["bundle_sha256"] != "aa" || all[1]["bundle_sha256"] != "bb" || all[1]["flash_attention"] != "off" ||
		slices.Contains(columns, "page_sha256") {
		t.Errorf("columns %v of %v", columns, all)
	}
}

// Chosen columns stand in the order in which they are named, with the values of the whole table.
func TestChoose(t *testing.T) {
	_, run := opened(t, comparetest.Browser(6), comparetest.Native(6))
	whole := tables.Of(compare.Runs(run), run)[0]
	var b bytes.Buffer
	check.Err(t, tables.CSV(&b, whole.Choose([]string{"peak_pss_mb", "label", "no_such"})))
	var all bytes.Buffer
	check.Err(t, tables.CSV(&all, whole))
	want := rows(t, all.Bytes())
	got, err := csv.NewReader(&b).ReadAll()
	check.Err(t, err)
	if !slices.Equal(got[0], []string{"peak_pss_mb", "label"}) || len(got) != 3 ||
		!slices.Equal(got[2], []string{want[1]["peak_pss_mb"], "llamacpp"}) {
		t.Errorf("%q", got)
	}
}

func few(e *comparetest.Engine) { e.Cell.Repetitions = 2 }
