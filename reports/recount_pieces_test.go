//go:build !race

package reports_test

import (
	"slices"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// inPieces are engines that tell of pieces of text: most tokens in one each, few in one each, and with a cache of which
// they don't tell.
func inPieces() []comparetest.Engine {
	most, few, untold, unread := comparetest.Served(6), comparetest.Served(7), comparetest.Native(6),
		comparetest.Native(7)
	usage := most.Usage
	most.Token, most.Usage = 3*time.Millisecond, func(u *record.Usage) { usage(u); u.Generated = 21 }
	few.Cell.ID, few.Cell.Engine, few.Info.Name = 4, "few", "few"
	untold.Cell.ID, untold.Cell.Engine, untold.Cell.PromptCache, untold.Cell.Isolation = 5, "untold", record.CacheOn,
		record.OfServer
	untold.Usage = func(u *record.Usage) { u.CachedTokens = record.CacheUntold }
	unread.Cell.ID, unread.Cell.Engine, unread.NoPSS = 6, "unread", true
	out := []comparetest.Engine{most, few, untold, unread}
	for i := range out {
		out[i].Vary = 0.05
	}
	return out
}

func TestFiguresOfPiecesAreThoseOfTheRecord(t *testing.T) {
	res := reportAgain(t, comparetest.Write(t, t.TempDir(), "folder", inPieces()...))
	for i, known := range [][2]bool{{true, true}, {false, true}, {true, false}, {true, true}} {
		for k, name := range []string{figure.DecodeTPS, figure.PrefillTPS} {
			if f := res.Cells[i].Figure(name); f.Known() != known[k] {
				t.Errorf("%s: %s is %v (%s)", res.Cells[i].Label, name, f.Values, f.Absent)
			}
		}
	}
}

func TestWrongFiguresOfPiecesAreFound(t *testing.T) {
	folder := workedOut(t, comparetest.Write(t, t.TempDir(), "folder", inPieces()...), compare.Defaults())
	fig := func(r *compare.Result, cell int, name string) *compare.Figure {
		list := r.Cells[cell].Figures
		return &list[slices.IndexFunc(list, func(f compare.Figure) bool { return f.Name == name })]
	}
	v := 100.0
	for says, change := range map[string]func(*compare.Result){
		"served, launch: decode_tps, median": func(
			r *compare.Result) {
			*fig(r, 0, figure.DecodeTPS).Median *= 20. / 21
		},
		"few, launch: decode_tps: median": func(
			r *compare.Result) {
			fig(r, 1, figure.DecodeTPS).Median = &v
		},
		"untold, server: prefill_tps: median": func(
			r *compare.Result) {
			fig(r, 2, figure.PrefillTPS).Median = &v
		},
		"unread, launch: memory_increase_rss_sum, median": func(
			r *compare.Result) {
			*fig(r, 3, figure.IncreaseRSS).Median += 0.001
		},
	} {
		folder.finds(t, says, change, false)
	}
}
