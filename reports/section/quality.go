package section

import (
	"fmt"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
)

// qualitySection has how well each cell predicts a given text.
func qualitySection(res *compare.Result) Section {
	head := []string{"cell", "text", "windows", "tokens"}
	rows := figure.Rows(func(r *figure.Row) bool { return r.Optional })
	for _, r := range rows {
		head = append(head, Headed(r.Title, r.Unit), "95% CI")
	}
	var words, made []string
	grid := plain.PerCell(res, head, func(c *compare.Cell, add func(...string)) {
		q := c.Quality
		if q == nil {
			return
		}
		words = []string{fmt.Sprintf("Perplexity is lower the better an engine predicts a given text. Each window of the text is "+
			"scored by itself, and the second half of its tokens counts. All other figures are against %s: NLL change and "+
			"perplexity ratio window by window, so their intervals are narrow although windows differ. Top-1 agreement is the share "+
			"of tokens at which both predict the same one. The KL divergence is a lower bound.", plain.Line(q.Reference))}
		if from := c.From() != ""; from && c.LabelReports(axis.DType) {
			made = append(made, plain.Line(c.Label))
		} else if from {
			made = append(made, plain.Line(c.Label+" ("+c.DTypes()+")"))
		}
		tokens := strconv.Itoa(q.Tokens)
		if q.Absent > 0 {
			tokens = fmt.Sprintf("%d, %d absent", q.Tokens, q.Absent)
		}
		row := []string{plain.Line(q.Text), fmt.Sprintf("%d of %d", len(q.Windows), q.Of), tokens}
		for _, r := range rows {
			if f := c.Figure(r.Name); f.Known() {
				row = append(row, plain.Num(f.Center()), plain.IntervalWords(f))
			} else {
				row = append(row, "–", f.Absent)
			}
		}
		add(row...)
	})
	if grid == nil {
		return Section{}
	}
	if len(made) > 0 {
		words = append(words, "Weights that were made from quantised ones have lost what those had lost: "+
			strings.Join(made, "; ")+".")
	}
	return Section{ID: "quality", Title: "Quality", Words: words, Grid: grid, Draw: chart.Quality}
}
