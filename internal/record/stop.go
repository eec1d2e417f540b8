package record

// Stop tells why no repetitions were added to a cell that is repeated until a figure is known well enough. Such a
// figure is looked at several times, at numbers of repetitions that were fixed before; each look has its share of the
// chance to err, so that the interval at the last one is of a higher level than the one that holds.
type Stop struct {
	Cell        int    `json:"cell"`
	Figure      string `json:"figure"`
	Repetitions int    `json:"repetitions"` // that counted, at the last look
	// that there would have been, to the most repetitions; 0: none, for the figure can't be had
	Looks      int     `json:"looks"`
	Look       int     `json:"look"`       // the last one, from 1
	Level      float64 `json:"level"`      // that holds whenever it stops: 0.95
	Confidence float64 `json:"confidence"` // of each look's own interval: 1 − (1 − Level)/Looks, at least
	Median     float64 `json:"median"`
	// Low and High are that interval's; nil: there are too few repetitions for one.
	Low     *float64 `json:"low,omitempty"`
	High    *float64 `json:"high,omitempty"`
	Percent float64  `json:"percent"` // asked for: how far the interval may reach from the median
	Narrow  bool     `json:"narrow"`  // it reaches no further; false: there were as many repetitions as may be
}

// Stop records why a cell is not repeated any more.
func (w *Writer) Stop(s Stop) { w.put(entry{Stop: &s}) }
