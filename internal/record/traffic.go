package record

// Traffic is how requests come where a launch measures more than one text: all that is needed to send the same ones
// again.
type Traffic struct {
	Loop string `json:"loop"` // ClosedLoop, OpenLoop, Batch
	// clients of a closed loop; requests of a batch; the most of an open loop that are sent and not yet answered, 0:
	// any
	Concurrency int     `json:"concurrency"`
	Requests    int     `json:"requests"`              // of all clients together
	Arrivals    string  `json:"arrivals,omitempty"`    // of an open loop: Constant, Poisson, TraceArrivals
	Rate        float64 `json:"rate,omitempty"`        // of an open loop, in requests a second
	StartDelay  float64 `json:"start_delay,omitempty"` // in seconds, from one client's first request to the next one's
	Ramp        float64 `json:"ramp,omitempty"`        // in seconds, in which an open loop comes to its rate
	Seed        uint64  `json:"seed"`
	// of a conversation: each prompt begins with all that was said before; 0: there are none
	Turns int `json:"turns,omitempty"`
	// Mix is the kinds of requests where they are not all alike; empty: each has the cell's prompt and number of
	// tokens.
	Mix   []Kind    `json:"mix,omitempty"`
	Trace []Arrival `json:"trace,omitempty"` // the requests that a trace says, in order
	Goal  *Goal     `json:"goal,omitempty"`
}

// Arrival is a request of a trace.
type Arrival struct {
	At          float64 `json:"at"` // in seconds from the first one's
	InputTokens int     `json:"input_tokens"`
	MaxTokens   int     `json:"max_tokens"`
}

// Loops, and how the requests of an open one come.
const (
	ClosedLoop = "closed" // a client asks again when it was answered
	OpenLoop   = "open"   // requests come at their times, whether or not others were answered
	Batch      = "batch"  // all are sent in the same moment
	Constant   = "constant"
	Poisson    = "poisson"
	// TraceArrivals are those of a trace.
	TraceArrivals = "trace"
)

// Kind is requests that are alike, among others that are not: short ones beside long ones.
type Kind struct {
	Name        string  `json:"name"`
	Share       float64 `json:"share"` // of all requests
	Prompt      string  `json:"prompt"`
	InputTokens int     `json:"input_tokens,omitempty"` // asked for; 0: the prompt is a text that was given
	MaxTokens   int     `json:"max_tokens"`
}

// Goal is what a request must keep to be counted as a good one; 0: anything will do.
type Goal struct {
	TTFTms float64 `json:"ttft_ms,omitempty"`
	TPOTms float64 `json:"tpot_ms,omitempty"`
	E2Ems  float64 `json:"e2e_ms,omitempty"`
}

// Slot is where in a traffic a request stands. Its zero value is that of a request that is alone.
type Slot struct {
	// when it was to be sent; what it waited until it was is queueing; 0: when it was sent
	Due int64 `json:"due_ns,omitempty"`
	// how long it was sent after it was due and had a place: our own doing, no engine's
	Late   int64  `json:"late_ns,omitempty"`
	Client int    `json:"client,omitempty"` // from 1
	Kind   string `json:"kind,omitempty"`
	Turn   int    `json:"turn,omitempty"` // from 1
}
