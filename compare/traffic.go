package compare

import "fmt"

// Names of what requests of a traffic take, of which each launch has percentiles: Percentile(Queueing, 0.99) is a figure's name.
const (
	OfTTFT   = "ttft"     // from when a request was due until its first token
	Queueing = "queueing" // from when it was due until it was sent
	OfITL    = "itl"      // between its tokens
	TPOT     = "tpot"     // of each of its tokens behind the first
	E2E      = "e2e"      // from when it was due until it had returned
)

// Names of what all requests of a launch come to.
const (
	AggregateTPS = "aggregate_tps"
	RequestRate  = "requests_per_s"
	Goodput      = "goodput"       // requests/s that keep the goal
	GoodShare    = "goodput_share" // of all requests
)

// Percentile is the name of a figure: that which a share of a launch's requests (of their gaps, for OfITL) are not above.
func Percentile(of string, share float64) string { return fmt.Sprintf("%s_p%g", of, 100*share) }

// Load is what a launch's requests came to together, where there are several.
type Load struct {
	Figures []Figure   `json:"figures"`
	Kinds   []KindLoad `json:"kinds,omitempty"` // of a mix, each alone
}

// KindLoad is what requests of one kind came to, among the others.
type KindLoad struct {
	Kind    string   `json:"kind"`
	Figures []Figure `json:"figures"`
}
