package plan

// In which order a setup's cells take their turns.
const (
	Interleaved = "interleaved" // every cell once, then every cell again: what drifts meets all alike; a plan that says nothing gets it
	Shuffled    = "shuffled"    // like that, in an order of its own each time, by the plan's seed
	Grouped     = "grouped"     // a cell's repetitions, one after another
)

// UntilCI has cells repeated until a figure is known well enough.
type UntilCI struct {
	Percent float64 `yaml:"width"`                     // the 95 % interval reaches no further from the median than so much of it: 5%
	Figure  string  `yaml:"figure,omitempty"`          // empty: decode_tps
	Most    int     `yaml:"max_repetitions,omitempty"` // 0: ten times repetitions
}
