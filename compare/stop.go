package compare

import (
	"fmt"

	"llmparity/compare/stats"
	"llmparity/internal/record"
)

// stopped widens the intervals of a cell that was repeated until a figure was known well enough. It was looked at
// several times, and each look might have been the one at which chance made it narrow: an interval of the ordinary
// level would hold too seldom. Each look has its share of the chance to err, and so has the interval at the last one,
// in the cell's own figures and those of its requests: they share the launches. Parts of memory, and what engines say
// of themselves, keep the ordinary level.
func (c *Cell) stopped(s record.Stop) {
	if s.Looks < 1 || !(s.Confidence > 0 && s.Confidence < 1) {
		return
	}
	c.Stop = &s
	lists := [][]Figure{c.Figures}
	if c.Load != nil {
		lists = append(lists, c.Load.Figures)
		for _, k := range c.Load.Kinds {
			lists = append(lists, k.Figures)
		}
	}
	for _, figures := range lists {
		for i := range figures {
			figures[i].lookedAt(s)
		}
	}
}

// lookedAt is the interval at the last of several looks.
func (f *Figure) lookedAt(s record.Stop) {
	if f.N == 0 {
		return
	}
	f.Interval, f.Note = nil, TooFewRuns
	f.How += fmt.Sprintf("; launches were added until %s was known well enough, with up to %d looks: the interval is one of %s %%, so that it holds in %s %% "+
		"of cases whenever that stops", s.Figure, s.Looks, percent(s.Confidence), percent(s.Level))
	if of := stats.MedianInterval(f.numbers(), s.Confidence); of != nil {
		f.Interval, f.Note = of, ""
		of.Confidence = stats.Round(max(s.Level, 1-float64(s.Looks)*(1-of.Confidence)), 6)
	}
}
