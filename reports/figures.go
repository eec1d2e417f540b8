package reports

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"llmparity/assets/charts"
	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/explain"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/safe"
	"llmparity/internal/record"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
	"llmparity/reports/section"
)

// Draw evaluates a script in an empty page of a browser, and gives the text that its promise comes to.
type Draw func(ctx context.Context, script string) (string, error)

// Figure is a figure for a paper. The same data on the same machine give the same bytes.
type Figure struct {
	Name     string // of its files, without their ends
	Title    string
	Subtitle string // model and numbers
	Caption  string
	Source   string // the record's files and columns that it is drawn from
	Width    float64
	Height   float64 // in inches
	SVG, PNG []byte  // once it is drawn
	chart    *chart.Chart
	drawing  chart.Drawing
	names    *names
}

// Sizes on paper, in inches: one column, or both of a page with two.
const (
	oneColumn   = 3.5
	bothColumns = 7
	dpi         = 300
)

// Figures lists the figures of a result, which are not drawn yet. Of a chart with a drawing for each launch it lists
// the one that the report shows first, or all; other drawings of a chart are figures of their own.
func (own Colours) Figures(all bool, res *compare.Result, runs ...*record.Run) ([]Figure, error) {
	if len(runs) != len(res.Runs) {
		return nil, fmt.Errorf("the result was made of %d runs, not %d", len(res.Runs), len(runs))
	}
	v := &chart.View{Res: res, Runs: runs, Own: own, Paper: true}
	taken, cut := map[string]int{}, newNames(res)
	var out []Figure
	charted := append(section.All(v), section.Section{Title: "Summary",
		Draw: func(v *chart.View) []chart.Chart { return chart.Pictures(v, answer.Of(res).Compared) }})
	eachChart(section.Drawn(v, charted), "", func(heading string, c *chart.Chart) {
		for n, d := range c.Drawings {
			if n != c.Chosen && !all && d.OfOneLaunch {
				continue
			}
			f := newFigure(v, heading, c, n)
			f.names, f.Title = cut, plain.Shorten(cut.plain(f.Title), titleLimit)
			if taken[f.Name]++; taken[f.Name] > 1 {
				f.Name += "-" + strconv.Itoa(taken[f.Name])
			}
			out = append(out, f)
		}
	})
	late := func(f Figure) int { // what a run over contexts is for comes first
		if strings.HasPrefix(f.chart.ID, "growth-") {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b Figure) int { return late(a) - late(b) })
	return out, nil
}

// FigureNames are the names of figures, without the beginning that files have.
func FigureNames(figures []Figure) []string {
	out := make([]string, len(figures))
	for i, f := range figures {
		out[i] = strings.TrimPrefix(f.Name, "fig-")
	}
	return out
}

// DrawFigures draws figures for paper.
func DrawFigures(ctx context.Context, draw Draw, figures []Figure) error {
	if err := prepareFigures(ctx, draw); err != nil {
		return err
	}
	for i := range figures {
		if err := figures[i].draw(ctx, draw); err != nil {
			return fmt.Errorf("%s: %w", figures[i].Name, err)
		}
	}
	return nil
}

// eachChart goes through the charts of sections in order, with the headings above them.
func eachChart(all []section.Section, heading string, do func(heading string, c *chart.Chart)) {
	for i := range all {
		above := cmp.Or(all[i].Title, heading)
		for n := range all[i].Charts {
			do(above, &all[i].Charts[n])
		}
		eachChart(all[i].Parts, above, do)
	}
}

// prepareFigures gives the page what draws.
func prepareFigures(ctx context.Context, draw Draw) error {
	library, _, err := charts.Libraries()
	if err != nil {
		return err
	}
	args, err := json.Marshal([]any{library, reportCSS})
	if err != nil {
		return err
	}
	script := strings.TrimSuffix(strings.TrimSpace(figuresJS), ";")
	_, body, _ := strings.Cut(script, `"use strict";`)
	if _, err = draw(ctx, "(async () => { \"use strict\";\n"+marksJS+"return (\n"+body+"\n)(..."+string(args)+
		"); })()"); err != nil {
		return fmt.Errorf("preparing the figures: %w", err)
	}
	return nil
}

// newFigure is a drawing's words.
func newFigure(v *chart.View, heading string, c *chart.Chart, n int) Figure {
	cells := shownBy(v, c)
	d := c.Drawings[n]
	f := Figure{Name: "fig-" + fileName(c.ID), Title: c.Title, Subtitle: models(cells), Width: oneColumn,
		Source: sourceOf(c, d, cells), chart: c, drawing: d}
	if strings.HasPrefix(c.ID, "fig") {
		f.Name = fileName(c.ID)
	}
	// its title tells it from others
	if what, numbered := strings.CutSuffix(strings.TrimRight(c.ID, "0123456789"), "-"); numbered {
		f.Name = "fig-" + fileName(what) + "-" + cmp.Or(fileName(c.Title), c.ID[len(what)+1:])
		f.Title = heading + ": " + c.Title
	}
	if n != c.Chosen {
		f.Name += "-" + cmp.Or(fileName(d.Name), strconv.Itoa(n+1))
	}
	if len(c.Drawings) > 1 && d.Name != "" {
		name := ", " + d.Name
		if c.Unit == "" { // it stands at the axis
			name, _, _ = strings.Cut(": "+d.Name, " (")
		}
		f.Title += name
	}
	note := plain.Joined(" ", append([]string{plain.Line(c.Note)}, c.More...)...)
	f.Caption = plain.Shorten(plain.Joined(" ", plain.Shorten(f.Title, titleLimit)+".", note,
		sentence(plain.Line(d.Caption)), cmp.Or(c.Setup, chart.Setup(cells))), 2000)
	if c.Wide {
		f.Width = bothColumns
	}
	return f
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// shownBy are the cells that a chart shows: one, or all whose models are known.
func shownBy(v *chart.View, c *chart.Chart) []*compare.Cell {
	if c.Cell > 0 {
		return v.Res.Cells[c.Cell-1 : c.Cell]
	}
	return slices.DeleteFunc(slices.Clone(v.Res.Cells), (*compare.Cell).Foreign)
}

// models names the models of cells and the dtypes of their weights.
func models(cells []*compare.Cell) string {
	var out []string
	for _, c := range cells {
		words, dtype := cmp.Or(plain.Line(axis.Called(&c.Spec.Model)), "model not known"), c.Spec.Model.DType
		if c.Engine != nil {
			dtype = cmp.Or(c.Engine.Policy["weights_dtype"], dtype)
		}
		if dtype != "" {
			words += ", weights " + plain.Line(dtype)
		}
		out = explain.AppendNew(out, plain.Shorten(words, 80))
	}
	return plain.Shorten(strings.Join(out, "; "), 500)
}

// fileName is a text as a part of a name that every system takes.
func fileName(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s),
		func(r rune) bool { return !(r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')) })
	return strings.Trim(fmt.Sprintf("%.60s", strings.Join(words, "-")), "-")
}

// axisTitle says what stands at the axis of a figure's quantity, with its unit. Where drawings have units of their own,
// their names do.
func axisTitle(c *chart.Chart, d chart.Drawing) string {
	switch c.Unit {
	case "MiB":
		return "Memory (MiB)"
	case "":
		return plain.Line(d.Name)
	}
	return c.Title + " (" + c.Unit + ")"
}

// draw has the page draw the figure.
func (f *Figure) draw(ctx context.Context, draw Draw) error {
	c, d := f.chart, f.drawing
	own, err := rewritten(d.Options, func(s string) string {
		return plain.Shorten(f.names.cut.Replace(s), 120)
	})
	if err != nil {
		return err
	}
	plot := 1.75
	if f.Width == bothColumns {
		plot = 2.4
	}
	if c.Height > 0 { // rows of bars
		plot = max(1, float64(c.Height)/96)
	}
	asked, err := json.Marshal(map[string]any{"title": f.Title, "subtitle": f.Subtitle, "caption": f.Caption,
		"unit": axisTitle(c, d), "raw": c.Unit, "quantity": c.Title, "width": f.Width, "widest": bothColumns,
		"plot": plot, "dpi": dpi, "options": own, "labels": f.names.short()})
	if err != nil {
		return err
	}
	answer, err := draw(ctx, "llmparityFigure("+string(asked)+")")
	if err != nil {
		return err
	}
	var drawn struct {
		SVG           string
		PNG           []byte
		Width, Height float64
	}
	if err := json.Unmarshal([]byte(answer), &drawn); err != nil {
		return fmt.Errorf("what the browser drew: %w", err)
	}
	f.Width, f.Height, f.SVG = drawn.Width, math.Round(drawn.Height*100)/100, []byte(drawn.SVG)
	f.PNG, err = printable(drawn.PNG)
	return err
}

// printable says in a picture how large it is on paper.
func printable(picture []byte) ([]byte, error) {
	const header = 8 + 4 + 4 + 13 + 4 // the signature and the first chunk, behind which sizes may stand
	if len(picture) < header || string(picture[12:16]) != "IHDR" || bytes.Contains(picture, []byte("pHYs")) {
		return nil, errors.New("what the browser drew is no picture as browsers make them")
	}
	perMetre := uint32(math.Round(dpi / 0.0254))
	chunk := binary.BigEndian.AppendUint32(nil, 9)
	chunk = append(chunk, "pHYs"...)
	chunk = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(chunk, perMetre), perMetre)
	chunk = append(chunk, 1) // of a metre
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	return slices.Concat(picture[:header], chunk, picture[header:]), nil
}

// FigureIndex is the name of the file that lists figures.
const FigureIndex = "figures.md"

// WriteFigures writes the files of figures into a folder, which is made, and last of all the list of them. What else is
// there stays.
func WriteFigures(dir string, figures []Figure) error {
	const do = "name another folder with --figures-dir"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Wrap(fault.Unwritable, err, do, "can't make %s", dir)
	}
	write := func(name string, text []byte) error {
		return File(filepath.Join(dir, name), do, func(w io.Writer) error { _, err := w.Write(text); return err })
	}
	for _, f := range figures {
		if err := errors.Join(write(f.Name+".svg", f.SVG), write(f.Name+".png", f.PNG)); err != nil {
			return err
		}
	}
	return write(FigureIndex, figureIndex(figures))
}

// figureIndex lists figures with what an author needs of them.
func figureIndex(figures []Figure) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Figures\n\nEach as SVG and as PNG of %d dots an inch. Widths are those of a column (%g in) or of both columns of a page (%g in).\n",
		dpi, oneColumn, float64(bothColumns))
	if len(figures) == 0 {
		b.WriteString("\nThere is nothing to draw.\n")
	}
	for _, f := range figures {
		fmt.Fprintf(&b, "\n## %s\n\n![%s](%s.svg)\n\n", f.Name, safe.Markdown(plain.Line(f.Title)), f.Name)
		for _, row := range [][2]string{{"Title", f.Title}, {"Model", f.Subtitle}, {"Caption", f.Caption},
			{"Drawn from", f.Source}} {
			if row[1] != "" {
				fmt.Fprintf(&b, "- %s: %s\n", row[0], safe.Markdown(plain.Line(row[1])))
			}
		}
		fmt.Fprintf(&b, "- Size: %g × %g in; files: %s.svg, %s.png\n", f.Width, f.Height, f.Name, f.Name)
	}
	return b.Bytes()
}

// sources are the files and columns of a record that charts are drawn from, by the prefix of their ids.
var sources = []struct{ id, from string }{
	{"memory-", "totals.csv: t_ns, method, pss_mb, rss_sum_mb; samples.csv: t_ns, source, pss_mb, rss_mb; journal.jsonl: source, phase"},
	{"peaks", "totals.csv: t_ns, method, pss_mb; journal.jsonl: phase, end"},
	{"headline-memory", "totals.csv: t_ns, method, pss_mb, or rss_sum_mb if no PSS was read; metrics.csv: name, value, edge; journal.jsonl: event, phase"},
	{"headline-", "totals.csv: t_ns, method, pss_mb; metrics.csv: name, value, edge; tokens.csv: index, t_ns; journal.jsonl: event, phase"},
	{"load", "journal.jsonl: phase (begin_ns, end_ns of load)"},
	{"ttft", "journal.jsonl: request (sent_ns); tokens.csv: t_ns of index 0"},
	{"decode", "tokens.csv: index, t_ns"},
	{"prefill", "journal.jsonl: request (sent_ns, prompt_ids), span (prefill)"},
	{"latency-", "tokens.csv: index, t_ns; journal.jsonl: request (sent_ns, returned_ns)"},
	{"fig5_", "tokens.csv: index, t_ns; journal.jsonl: request (due_ns, sent_ns, returned_ns, kind)"},
	{"tokens-", "tokens.csv: index, t_ns; totals.csv: t_ns, rss_sum_mb, pss_mb; samples.csv: t_ns, source, rss_mb; metrics.csv: t_ns, name, value; journal.jsonl: source, event (clocks)"},
}

// sourceOf says what a chart of some cells is drawn from.
func sourceOf(c *chart.Chart, d chart.Drawing, cells []*compare.Cell) string {
	if len(cells) == 1 && cells[0].Foreign() && cells[0].Engine != nil {
		return plain.Line(cells[0].Engine.Version) + ": timestamp, label, pid, rss_mb, heap_used_mb"
	}
	if row := figure.Of(d.Figure); row != nil { // a chart along an axis has a drawing a figure
		return plain.Joined(", ", row.Source(), c.Along)
	}
	for _, s := range sources {
		if strings.HasPrefix(c.ID, s.id) {
			return s.from
		}
	}
	return "the run folder's CSV files and journal.jsonl, as the report says under “How each figure was obtained”"
}
