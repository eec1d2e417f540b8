package compare

import (
	"llmparity/compare/evidence"
	"llmparity/internal/record"
)

// stopped widens the intervals of a cell that was repeated until a figure was precise enough. Each look could end the
// repetitions by chance, so each gets its share of the error, and the last interval holds at the usual level. Memory by
// component and reported figures keep the usual intervals.
func (c *Cell) stopped(s record.Stop) {
	if s.Looks < 1 || !(s.Confidence > 0 && s.Confidence < 1) {
		return
	}
	c.Stop = &s
	lists := [][]evidence.Figure{c.Figures}
	if c.Load != nil {
		lists = append(lists, c.Load.Figures)
		for _, k := range c.Load.Kinds {
			lists = append(lists, k.Figures)
		}
	}
	for _, figures := range lists {
		for i := range figures {
			figures[i].LookedAt(s)
		}
	}
}
