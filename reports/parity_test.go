package reports_test

import (
	"bytes"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
	"llmparity/reports"
)

// parted is a run of two engines that part at the seventh token, in which the second one's text was forced on both.
func parted(t *testing.T, pieces map[int]string) *record.Run {
	t.Helper()
	web, llama := comparetest.Browser(1), comparetest.Native(1)
	web.IDs[6] = 511
	scores := func(differs bool) (out []record.Score) {
		sure := -0.25
		if differs {
			sure = -0.28125
		}
		for i, id := range llama.IDs {
			s := record.Score{Position: i, Forced: id, LogProb: sure,
				Top: []record.Candidate{{ID: id, LogProb: sure}, {ID: 900, LogProb: -3}}}
			if i == 6 {
				s.Top = []record.Candidate{{ID: id, LogProb: -0.75}, {ID: 511, LogProb: -0.8125}}
				if differs {
					s.Top = []record.Candidate{{ID: 511, LogProb: -0.75}, {ID: id, LogProb: -0.78125}}
				}
				for _, c := range s.Top {
					if c.ID == id {
						s.LogProb = c.LogProb
					}
				}
			}
			out = append(out, s)
		}
		return out
	}
	text := record.Scoring{Reference: llama.Cell.ID, Attempt: 2, PromptIDs: llama.PromptIDs, Top: 2}
	web.Scored, llama.Scored, web.Scores, llama.Scores = text, text, scores(true), scores(false)
	run := comparetest.Run(t, "parted", web, llama)
	run.Pieces = pieces
	return run
}

// The section has the matrix, the tie, the tokens with their texts, and the strip, and the terminal the same figures.
func TestParityIsShown(t *testing.T) {
	run := parted(t, map[int]string{511: " sky", 199: "\n</script><b>x", 3: "\u202eevil"})
	res := compare.Runs(run)
	var page, table bytes.Buffer
	if err := colours.HTML(&page, res, run); err != nil {
		t.Fatal(err)
	}
	if err := reports.Table(&table, res); err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(page.String(), `<section id="parity"`)
	section, _, _ = strings.Cut(section, "</section>")
	for _, want := range []string{
		`<a class="differs" href="#pair-1">6 of 64, 0.062 apart</a>`, `<small>forced: 63 of 64</small>`, `id="pair-1"`,
		"How near the two were, at token 7", "␣sky (511)", "⏎&lt;/script&gt;&lt;b&gt;x (199)", ">0.031</td>",
		">0.062</td>",
		"At 63 of 64 places of the text of llamacpp (98.44 %) both would have said the same.",
		"would have said what stands there at 63 of them, llamacpp at 64.",
		`<rect class="agrees" width="64" height="10"/><rect class="parts" x="6" width="1" height="10"/>`,
		`aria-label="64 places; different at token 7"`, "rounding is enough",
	} {
		if !strings.Contains(section, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(section, "</script><b>") || strings.Contains(section, "\u202e") {
		t.Error("a token's text is in the page as it is")
	}
	words := strings.Join(strings.Fields(table.String()), " ")
	for _, want := range []string{"there the top two are 0.031 for webllm and 0.062 for llamacpp apart: rounding is enough",
		"At 63 of 64 places of the text of llamacpp (98.44 %) both would have said the same."} {
		if !strings.Contains(words, want) {
			t.Errorf("the terminal lacks %q:\n%s", want, words)
		}
	}
}

// Runs without scores, and without texts of tokens, show what there is and say what is not known.
func TestParityWithoutScores(t *testing.T) {
	web, llama := comparetest.Browser(1), comparetest.Native(1)
	web.IDs[6] = 511
	run := comparetest.Run(t, "plain", web, llama)
	var page bytes.Buffer
	if err := colours.HTML(&page, compare.Runs(run), run); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">6 of 64</a>",
		"How near the two tokens were is not known: neither engine scored a text.",
		"What both would have said of one and the same text is not known: neither scored a text; llmparity run --parity has engines do so"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page.String(), `class="strip"`) || strings.Contains(page.String(), "rounding is enough") {
		t.Error("the page shows what nobody knows")
	}
}
