package plan

// Traffic is how requests come where cells measure more than one each. Clients of a closed loop, or the requests of a batch, are axes too:
// concurrency, batch_sizes.
type Traffic struct {
	Loop        string   `yaml:"loop,omitempty"`        // closed, open, batch; empty: open where there is a rate, else closed
	Concurrency int      `yaml:"concurrency,omitempty"` // clients; of a batch, its requests; of an open loop, the most that may wait and run
	Requests    int      `yaml:"requests,omitempty"`    // of all clients together; 0: four of each
	Arrivals    string   `yaml:"arrivals,omitempty"`    // of an open loop: constant, poisson; empty: poisson
	Rate        float64  `yaml:"rate,omitempty"`        // of an open loop, in requests a second
	StartDelay  Duration `yaml:"start_delay,omitempty"` // from one client's first request to the next one's
	Ramp        Duration `yaml:"ramp,omitempty"`        // in which an open loop comes to its rate
	Seed        uint64   `yaml:"seed,omitempty"`        // 0: the plan's
	Turns       int      `yaml:"turns,omitempty"`       // of a conversation
	Mix         []Kind   `yaml:"mix,omitempty"`         // kinds of requests, where they are not all alike
	Goal        *Goal    `yaml:"goal,omitempty"`
}

// Kind is requests that are alike, among others that are not.
type Kind struct {
	Name        string  `yaml:"name"`
	Share       float64 `yaml:"share,omitempty"` // of all requests; 0 in all: equal shares
	Prompt      string  `yaml:"prompt,omitempty"`
	InputTokens int     `yaml:"input_length,omitempty"`  // in place of a prompt
	MaxTokens   int     `yaml:"output_length,omitempty"` // 0: the cell's
}

// Goal is what a request must keep to be counted as a good one.
type Goal struct {
	TTFTms float64 `yaml:"ttft_ms,omitempty"`
	TPOTms float64 `yaml:"tpot_ms,omitempty"`
	E2Ems  float64 `yaml:"e2e_ms,omitempty"`
}
