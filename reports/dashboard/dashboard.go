// Package dashboard writes a history as static pages, which work from a folder and from any web server: a first page
// with the verdict of every figure, and a page that draws one figure, whose link names it.
//
// A page loads what it draws as scripts, because browsers let no page in a folder read a file. Names and subjects come
// from anyone: templates and encoding/json escape them, scripts put them into pages as text, and the content security
// policy allows no script but these files.
package dashboard

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"llmparity/assets/charts"
	"llmparity/internal/history"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/kit/words"
	"llmparity/internal/kit/workers"
	"llmparity/reports"
)

//go:embed page/*
var page embed.FS

// Options are where pages go, and where their links lead.
type Options struct {
	Dir     string
	Reports string // what links to reports begin with; empty: reports on this machine
}

// site is what is written.
type site struct {
	Options
	log    *history.Log
	report *history.Report
	views  []*view
	marks  map[*history.Series][]history.Mark
}

// view is what one chart shows: a figure of a cell, on all machines.
type view struct {
	Key      string
	Cell     string
	Figure   history.Figure
	Series   []*history.Series
	Findings []*history.Finding
}

// Write writes the pages of a checked history.
func Write(ctx context.Context, l *history.Log, r *history.Report, o Options) error {
	s := &site{Options: o, log: l, report: r, views: viewsOf(l, r), marks: map[*history.Series][]history.Mark{}}
	for _, series := range l.Series {
		s.marks[series] = l.Marks(series)
	}
	for _, dir := range []string{"data", "assets"} {
		if err := os.MkdirAll(filepath.Join(o.Dir, dir), 0o755); err != nil {
			return s.unwritten(err)
		}
	}
	library, _, err := charts.Libraries()
	if err != nil {
		return err
	}
	script, err := page.ReadFile("page/chart.js")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"assets/echarts.js": library, "assets/chart.js": string(script)} {
		if err := s.file(name, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			return err
		}
	}
	err = workers.Each(ctx, runtime.NumCPU(), len(s.views), func(_ context.Context, i int) error {
		return s.file("data/"+s.views[i].Key+".js", func(w io.Writer) error { return s.data(w, s.views[i]) })
	})
	for name, write := range map[string]func(io.Writer) error{"runs.js": s.runs, "views.js": s.list,
		"changes.md": r.Markdown,
		"index.html": s.html("index.html"), "chart.html": s.html("chart.html")} {
		if err == nil {
			err = s.file(name, write)
		}
	}
	return err
}

func (s *site) unwritten(err error) error {
	return fault.WriteError(err, s.Dir, "name another folder with -o")
}

func (s *site) file(name string, write func(io.Writer) error) error {
	err := whole.Write(filepath.Join(s.Dir, filepath.FromSlash(name)), write)
	if err != nil {
		return s.unwritten(err)
	}
	return nil
}

// viewsOf puts the series of all machines together, in the order of cells.
func viewsOf(l *history.Log, r *history.Report) (out []*view) {
	by := map[[2]string]*view{}
	for _, s := range l.Series {
		key := [2]string{s.Cell.Key, s.Figure.Name}
		v := by[key]
		if v == nil {
			sum := sha256.Sum256([]byte(s.Cell.Key + "\x00" + s.Figure.Name))
			v = &view{Key: hex.EncodeToString(sum[:5]), Cell: s.Cell.Label, Figure: s.Figure}
			by[key] = v
			out = append(out, v)
		}
		v.Series = append(v.Series, s)
	}
	for _, f := range r.Findings {
		v := by[[2]string{f.Series().Cell.Key, f.Series().Figure.Name}]
		v.Findings = append(v.Findings, f)
	}
	return out
}

// html writes a page from its template.
func (s *site) html(name string) func(io.Writer) error {
	return func(w io.Writer) error {
		t, err := template.New(name).Funcs(template.FuncMap{
			"count": words.Count, "style": func() template.CSS { return template.CSS(reports.Style()) },
			"level": history.Level, "link": s.link,
			"own": func() (template.CSS, error) {
				text, err := page.ReadFile("page/dashboard.css")
				return template.CSS(text), err
			},
		}).ParseFS(page, "page/"+name)
		if err != nil {
			return err
		}
		return t.Execute(w, s)
	}
}

// Report has the verdicts. It and the methods below are for the first page.
func (s *site) Report() *history.Report { return s.report }

// Urgent are the findings that somebody should look at, Others the rest.
func (s *site) Urgent() []*history.Finding { return s.those(true) }
func (s *site) Others() []*history.Finding { return s.those(false) }

func (s *site) those(are bool) (out []*history.Finding) {
	for _, f := range s.report.Findings {
		if f.Urgent() == are {
			out = append(out, f)
		}
	}
	return out
}

// Newest is the last run.
func (s *site) Newest() *history.Head {
	if len(s.log.Runs) == 0 {
		return nil
	}
	return &s.log.Runs[len(s.log.Runs)-1]
}

// Row is a cell with its figures in the order of the columns.
type Row struct {
	Cell    string
	Control bool
	Views   []*Square
}

// Square is a figure of a cell: its newest value, and what was found.
type Square struct {
	Key, Value, Verdict, Change string
}

// Figures are the columns of the grid: the figures that are tested.
func (s *site) Figures() (out []history.Figure) {
	known := map[string]bool{}
	for _, v := range s.views {
		if v.Figure.Tested && !known[v.Figure.Name] {
			known[v.Figure.Name] = true
			out = append(out, v.Figure)
		}
	}
	return out
}

// Rows are the lines of the grid.
func (s *site) Rows() (out []*Row) {
	columns := map[string]int{}
	for i, f := range s.Figures() {
		columns[f.Name] = i
	}
	by := map[string]*Row{}
	for _, v := range s.views {
		at, ok := columns[v.Figure.Name]
		if !ok {
			continue
		}
		row := by[v.Series[0].Cell.Key]
		if row == nil {
			row = &Row{Cell: v.Cell, Control: v.Series[0].Cell.Fixed, Views: make([]*Square, len(columns))}
			by[v.Series[0].Cell.Key] = row
			out = append(out, row)
		}
		row.Views[at] = square(v)
	}
	return out
}

// square shows the most urgent finding that is open.
func square(v *view) *Square {
	newest := v.Series[0]
	for _, s := range v.Series {
		if s.Points[len(s.Points)-1].Run > newest.Points[len(newest.Points)-1].Run {
			newest = s
		}
	}
	out := &Square{Key: v.Key, Value: short(newest.Points[len(newest.Points)-1].Value)}
	for _, f := range v.Findings { // the most urgent first
		if f.Urgent() {
			out.Verdict, out.Change = string(f.Verdict), f.Size()
			break
		}
	}
	return out
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// link is the permanent link of a finding.
func (s *site) link(f *history.Finding) string {
	at := slices.IndexFunc(s.views, func(v *view) bool { return slices.Contains(v.Findings, f) })
	return "chart.html#v=" + s.views[at].Key + "&f=" + f.ID
}

// runs writes what charts say of runs: commits, authors, machines, environments.
func (s *site) runs(w io.Writer) error {
	machines := map[string]int{}
	var names []string
	out := bufio.NewWriterSize(w, 1<<20)
	fmt.Fprint(out, "llmparity.runs([")
	for i := range s.log.Runs {
		h := &s.log.Runs[i]
		at, known := machines[h.Machine]
		if !known {
			at = len(names)
			machines[h.Machine] = at
			names = append(names, h.Machine)
		}
		text, err := json.Marshal([]any{h.Commit.SHA, h.When().Unix(), h.Commit.Author, h.Commit.Subject, at,
			s.reportOf(h), h.ID})
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprint(out, ",\n")
		}
		_, _ = out.Write(text)
	}
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "],%s);\n", text)
	return out.Flush()
}

// reportOf is a link to a run's report; empty: there is none that a page may lead to.
func (s *site) reportOf(h *history.Head) string {
	if h.Folder == "" {
		return ""
	}
	if s.Reports != "" {
		return strings.TrimSuffix(s.Reports, "/") + "/" + strings.TrimPrefix(h.Folder, "/") + "/report.html"
	}
	to := filepath.Join(filepath.FromSlash(h.Folder), "report.html")
	if _, err := os.Stat(to); err != nil {
		return ""
	}
	from, err := filepath.Abs(s.Dir)
	if err == nil {
		to, err = filepath.Abs(to)
	}
	if err == nil {
		to, err = filepath.Rel(from, to)
	}
	if err != nil {
		return ""
	}
	return "./" + filepath.ToSlash(to)
}

// list writes the names of all views, for choosing one.
func (s *site) list(w io.Writer) error {
	type entry struct {
		Key    string `json:"k"`
		Cell   string `json:"c"`
		Title  string `json:"t"`
		Tested bool   `json:"x,omitempty"`
	}
	all := []entry{}
	for _, v := range s.views {
		all = append(all, entry{v.Key, v.Cell, v.Figure.Title, v.Figure.Tested})
	}
	return call(w, "views", all)
}

// call writes a call of the page's script.
func call(w io.Writer, name string, args ...any) error {
	if _, err := fmt.Fprintf(w, "llmparity.%s(", name); err != nil {
		return err
	}
	for i, a := range args {
		text, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append([]byte(","), text...)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, ");\n")
	return err
}

// head is what the script knows of a view beside its points.
type head struct {
	Key     string `json:"key"`
	Cell    string `json:"cell"`
	Name    string `json:"name"`
	Title   string `json:"title"`
	Unit    string `json:"unit"`
	Better  string `json:"better"`
	Machine []line `json:"machines"`
}

// line is a machine's series.
type line struct {
	Machine string         `json:"machine"`
	Changes []mark         `json:"changes"`
	Marks   []history.Mark `json:"marks"`
	Control bool           `json:"control"`
}

// mark is a change in a chart.
type mark struct {
	ID      string `json:"id"`
	At      int    `json:"at"`
	Verdict string `json:"verdict"`
	Size    string `json:"size"`
	Words   string `json:"words"`
}

// data writes the points of a view. There may be a million in all, so they are written by hand: run, launches, median,
// interval, and the ratio to the control cell.
func (s *site) data(w io.Writer, v *view) error {
	h := head{Key: v.Key, Cell: v.Cell, Name: v.Figure.Name, Title: v.Figure.Title, Unit: v.Figure.Unit,
		Better: v.Figure.Better}
	for _, series := range v.Series {
		l := line{Machine: series.Machine, Changes: []mark{}, Marks: s.marks[series],
			Control: series.Cell.Control != nil}
		if l.Marks == nil {
			l.Marks = []history.Mark{}
		}
		for _, f := range v.Findings {
			if f.Series() == series {
				text := f.Size() + " (95% CI " + f.Interval() + "), " + f.Sure() + "; " + f.From()
				if f.Why != "" {
					text += "; " + f.Why
				}
				l.Changes = append(l.Changes, mark{f.ID, f.At(), string(f.Verdict), f.Size(), text})
			}
		}
		slices.SortFunc(l.Changes, func(a, b mark) int { return cmp.Compare(a.At, b.At) })
		h.Machine = append(h.Machine, l)
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<18)
	fmt.Fprintf(out, "llmparity.view(%s,[", text)
	b := make([]byte, 0, 64)
	number := func(v float64) {
		if math.IsNaN(v) {
			b = append(b, 'n') // a constant of the script, shorter than null
			return
		}
		b = strconv.AppendFloat(b, v, 'g', 5, 64)
	}
	for i, series := range v.Series {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('[')
		for j, p := range series.Points {
			b = b[:0]
			if j > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(p.Run), 10)
			b = append(b, ',')
			b = strconv.AppendInt(b, int64(p.N), 10)
			for _, v := range []float64{p.Value, float64(p.Low), float64(p.High), p.Middle / p.Control} {
				b = append(b, ',')
				number(v)
			}
			_, _ = out.Write(b)
		}
		out.WriteByte(']')
	}
	fmt.Fprint(out, "]);\n")
	return out.Flush()
}
