package record

// Stop records why a cell with --until-ci gets no more repetitions. The figure is tested at repetition counts fixed in
// advance, and the error probability is divided among these looks. So each look uses a higher confidence level than the
// result.
type Stop struct {
	Cell        int     `json:"cell"`        // number of the cell
	Figure      string  `json:"figure"`      // name of the figure
	Repetitions int     `json:"repetitions"` // counted repetitions at the last look
	Looks       int     `json:"looks"`       // looks up to the most repetitions; 0: figure not available
	Look        int     `json:"look"`        // the last look, from 1
	Level       float64 `json:"level"`       // confidence level of the result: 0.95
	Confidence  float64 `json:"confidence"`  // level of each look: at least 1 − (1 − level)/looks
	Median      float64 `json:"median"`      // median at the last look
	// Low and High are the bounds of the interval at the last look; absent: too few repetitions.
	Low     *float64 `json:"low,omitempty"`
	High    *float64 `json:"high,omitempty"`
	Percent float64  `json:"percent"` // requested half-width, in percent of the median
	Narrow  bool     `json:"narrow"`  // goal reached; false: repetitions exhausted
}

// Stop records why a cell gets no more repetitions.
func (w *Writer) Stop(s Stop) { w.put(entry{Stop: &s}) }
