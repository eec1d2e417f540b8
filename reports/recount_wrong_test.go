//go:build !race

// Most of what is worked out again is so without the race detector, which makes it ten times as long and has nothing to
// find in it.

package reports_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/stats"
	"llmparity/internal/record"
	"llmparity/internal/recount"
	"llmparity/reports"
)

// recounted is a folder, what was worked out of it, and its report's page as it is.
type recounted struct {
	run     *record.Run
	work    *recount.Work
	options compare.Options
	page    string
}

func workedOut(t *testing.T, dir string, o compare.Options) *recounted {
	t.Helper()
	run, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := &recounted{run: run, work: recount.From(t, dir), options: o}
	a.page = a.html(t, compare.With(o, run))
	return a
}

func (a *recounted) html(t *testing.T, res *compare.Result) string {
	return rendered(t, func(w io.Writer) error { return reports.HTML(w, res, a.run) })
}

// finds fails where nobody says so of a report that was changed.
func (a *recounted) finds(t *testing.T, says string, change func(*compare.Result), ofPage bool) {
	t.Helper()
	res, page := compare.With(a.options, a.run), a.page
	change(res)
	if ofPage {
		page = a.html(t, res)
	}
	found := &deaf{TB: t}
	a.work.Check(found, []byte(rendered(t, func(w io.Writer) error { return reports.JSON(w, res) })), page)
	found.hears(t, says)
}

// deaf hears of failures and goes on.
type deaf struct {
	testing.TB
	said []string
}

func (d *deaf) Errorf(format string, args ...any) {
	d.said = append(d.said, fmt.Sprintf(format, args...))
}

// A report that says something else than the record is found out.
func TestWhatIsWrongIsFound(t *testing.T) {
	a, b := comparetest.Browser(7), comparetest.Native(6)
	a.Device, a.Vary, b.Vary = b.Device, 0.05, 0.05
	folder := workedOut(t, comparetest.Write(t, t.TempDir(), "folder", a, b), compare.Defaults())
	for what, change := range map[string]func(*compare.Result){
		"median":           func(r *compare.Result) { *r.Cells[0].Figures[0].Median *= 1.0001 },
		"lower end":        func(r *compare.Result) { r.Cells[1].Figures[0].Interval.Lo *= 0.999 },
		"p is":             func(r *compare.Result) { r.Comparisons[0].Ratios[0].Raw *= 2 },
		"p corrected":      func(r *compare.Result) { r.Comparisons[0].Ratios[0].P *= 2 },
		"is called":        func(r *compare.Result) { r.Comparisons[0].Ratios[2].Call = stats.TooSmall },
		"family 0, tests":  func(r *compare.Result) { r.Families[0].Tests-- },
		"over":             func(r *compare.Result) { *r.Comparisons[0].Ratios[1].Ratio += 0.001 },
		"tokens agreed":    func(r *compare.Result) { r.Parity[0].Agreed-- },
		"has no":           func(r *compare.Result) { r.Cells[0].Figures = r.Cells[0].Figures[1:] },
		"the page says":    func(r *compare.Result) { *r.Cells[0].Figures[0].Median *= 1.01 },
		"work it out":      func(r *compare.Result) { r.Cells[0].Figures[0].Name = "speed" },
		"launches counted": func(r *compare.Result) { r.Cells[0].Launches.Counted++ },
	} {
		folder.finds(t, what, change, what == "the page says")
	}
}

// hears fails where nobody said so.
func (d *deaf) hears(t *testing.T, says string) {
	t.Helper()
	if !strings.Contains(strings.Join(d.said, "\n"), says) {
		t.Errorf("nobody says %q: %.2000q", says, d.said)
	}
}
