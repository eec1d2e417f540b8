package compare

import (
	"llmparity/compare/evidence"
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
