package record

import (
	"crypto/sha256"
	"encoding/hex"
)

// Traffic describes how the requests of a launch arrive, completely enough to send the same ones again.
type Traffic struct {
	Loop string `json:"loop"` // closed, open or batch
	// Concurrency is the number of clients of a closed loop, the requests of a batch, or the most requests of an open
	// loop in flight; 0: no limit.
	Concurrency int     `json:"concurrency"`
	Requests    int     `json:"requests"`              // number of requests
	Arrivals    string  `json:"arrivals,omitempty"`    // of an open loop: constant, poisson or trace
	Rate        float64 `json:"rate,omitempty"`        // of an open loop, in requests per second
	StartDelay  float64 `json:"start_delay,omitempty"` // seconds between the starts of two clients
	Ramp        float64 `json:"ramp,omitempty"`        // seconds until an open loop reaches its rate
	Seed        uint64  `json:"seed"`                  // seed of the random numbers
	// Turns is the number of turns of a conversation, in which each prompt begins with all earlier ones; absent: none.
	Turns int `json:"turns,omitempty"`
	// Mix lists the kinds of requests; absent: each has the cell's prompt and number of tokens.
	Mix   []Kind    `json:"mix,omitempty"`
	Trace []Arrival `json:"trace,omitempty"` // requests of a trace, in order
	Goal  *Goal     `json:"goal,omitempty"`
}

// Arrival is a request of a trace.
type Arrival struct {
	At          float64 `json:"at"`           // seconds after the first request
	InputTokens int     `json:"input_tokens"` // prompt length, in tokens
	MaxTokens   int     `json:"max_tokens"`   // most tokens to generate
}

// Values of Traffic.Loop and Traffic.Arrivals.
const (
	ClosedLoop    = "closed" // a client sends its next request after an answer
	OpenLoop      = "open"   // requests are sent on schedule
	Batch         = "batch"  // all requests are sent at once
	Constant      = "constant"
	Poisson       = "poisson"
	TraceArrivals = "trace" // as in a trace
)

// Kind is one kind of requests in a mix, such as short ones.
type Kind struct {
	Name        string  `json:"name"`
	Share       float64 `json:"share"`                  // share of all requests
	Prompt      string  `json:"prompt"`                 // text of the prompt
	InputTokens int     `json:"input_tokens,omitempty"` // requested prompt length in tokens; absent: a given text
	MaxTokens   int     `json:"max_tokens"`             // most tokens to generate
}

// Goal has the limits that a request must meet to count for goodput. An absent value means no limit.
type Goal struct {
	TTFTms float64 `json:"ttft_ms,omitempty" yaml:"ttft_ms,omitempty"` // maximum time to first token, in milliseconds
	TPOTms float64 `json:"tpot_ms,omitempty" yaml:"tpot_ms,omitempty"` // maximum time per output token, in milliseconds
	E2Ems  float64 `json:"e2e_ms,omitempty" yaml:"e2e_ms,omitempty"`   // maximum time of the whole request, in milliseconds
}

// Slot is the position of a request in a traffic; zero for a single request.
type Slot struct {
	// Due is when the request was to be sent, in nanoseconds since the start of the run; until it is sent, it queues.
	// Absent: when it was sent.
	Due int64 `json:"due_ns,omitempty"`
	// Late is how long it was sent after it was due and had a place, in nanoseconds: a delay of ours, not the engine's.
	Late   int64  `json:"late_ns,omitempty"`
	Client int    `json:"client,omitempty"` // number of the client, from 1
	Kind   string `json:"kind,omitempty"`   // name of its kind
	Turn   int    `json:"turn,omitempty"`   // number of the turn, from 1
	// PromptHash is the beginning of the SHA-256 of the prompt's text, because engines may report no ids of it.
	PromptHash string `json:"prompt_hash,omitempty"`
}

// HashOf returns a request's PromptHash.
func HashOf(prompt string) string {
	sum := sha256.Sum256([]byte(prompt))
	return hex.EncodeToString(sum[:8])
}
