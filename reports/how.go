package reports

import (
	"slices"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/internal/figure"
)

// timesSections have the bars of times and rates, and what engines and servers report of themselves.
func timesSections(res *compare.Result) []section {
	s := section{ID: "times", Title: "Time and speed", For: onPage, Across: "quad",
		Words: []string{"Bar: median. Dots: launches. Line: 95% interval of the median, from six launches on."}}
	for _, r := range figure.Columns(func(r *figure.Row) bool { return r.Bar[0] != "" }) {
		s.Draw = append(s.Draw, bars(r.Bar[0], r.Name, r.Bar[1]))
	}
	return []section{s,
		{ID: "reported", Title: "What the engines report of themselves", For: onPage, Grid: reported(res),
			Words: []string{"The engines' own clocks and counts, beside ours."}},
		{ID: "server", Title: "What the server reports of itself", For: onPage, Grid: server(res), Words: []string{
			"Reported while the server worked: the highest value, or for a counter its increase."}}}
}

func reported(res *compare.Result) *grid {
	head := []string{"cell", "name in the engine", "reported by the engine", "measured by llmparity"}
	return perCell(res, head, func(c *compare.Cell, add func(...string)) {
		for _, f := range c.Reported {
			ours := "–"
			if o := c.Figure(f.Beside); f.Beside != "" && o.Known() {
				ours = strings.TrimSpace(num(o.Center()) + " " + o.Unit + " (" + o.Title + ")")
			}
			add(line(f.Name), strings.TrimSpace(known(f)+" "+f.Unit), ours)
		}
	})
}

// server lists what servers report of themselves.
func server(res *compare.Result) *grid {
	head := []string{"cell", "figure", "median", "launches", "what it is", "what the method cannot see"}
	return perCell(res, head, func(c *compare.Cell, add func(...string)) {
		for _, f := range c.Server {
			value := "–"
			if f.Known() {
				value = strings.TrimSpace(num(f.Center()) + " " + f.Unit)
			}
			add(line(f.Title), value, strconv.Itoa(f.N), line(f.Method+": "+f.How), line(f.Blind))
		}
	})
}

// howSections say how each figure was obtained and what measuring cost.
func howSections(res *compare.Result) []section {
	if len(res.Cells) == 0 {
		return nil
	}
	head := []string{"cell"}
	for _, f := range res.Cells[0].Sampler {
		head = append(head, f.Title+" ("+f.Unit+")")
	}
	sampler := perCell(res, head, func(c *compare.Cell, add func(...string)) {
		var row []string
		for _, f := range c.Sampler {
			row = append(row, known(f))
		}
		add(row...)
	})
	return []section{{ID: "how", Title: "How each figure was obtained", For: onPage, View: "how", Data: hows(res)},
		{ID: "sampler", Title: "Cost of measuring", For: onPage, Grid: sampler}}
}

type howRow struct{ Title, Cells, From, How string }

// hows merges equal explanations, in the order of the first cell's figures.
func hows(res *compare.Result) []howRow {
	var rows []howRow
	about := map[howRow][]string{}
	place := map[string]int{}
	for i := range res.Cells {
		c := &res.Cells[i]
		for _, f := range slices.Concat(c.Figures, c.Sampler) {
			if i == 0 {
				place[f.Title] = len(place) - len(res.Cells[0].Figures) - len(res.Cells[0].Sampler)
			}
			row := howRow{Title: f.Title, From: f.From(), How: f.How}
			if about[row] == nil {
				rows = append(rows, row)
			}
			about[row] = append(about[row], c.Label)
		}
	}
	slices.SortStableFunc(rows, func(a, b howRow) int { return place[a.Title] - place[b.Title] })
	for i, row := range rows {
		rows[i].Cells = line(everyCell(res, about[row]))
	}
	return rows
}
