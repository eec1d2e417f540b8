package record

import (
	"time"

	"llmparity/internal/kit/fault"
)

// entry is a line of journal.jsonl: exactly one of the pointers is set.
type entry struct {
	T          int64       `json:"t_ns"`              // nanoseconds since the start of the run
	Time       string      `json:"time"`              // the same as wall-clock time
	Attempt    int         `json:"attempt,omitempty"` // number of the attempt
	Cell       *Cell       `json:"cell,omitempty"`
	Begin      *Beginning  `json:"begin,omitempty"`
	Source     *sourceLine `json:"source,omitempty"`
	Phase      *PhaseSpan  `json:"phase,omitempty"`
	Span       *spanLine   `json:"span,omitempty"`
	Request    *requestRow `json:"request,omitempty"`
	Event      *Event      `json:"event,omitempty"`
	Warning    *Warning    `json:"warning,omitempty"`
	End        *endEntry   `json:"end,omitempty"`
	Prediction *Prediction `json:"prediction,omitempty"`
	Risk       *Risk       `json:"risk,omitempty"`
	Done       *doneEntry  `json:"done,omitempty"`
	Resumed    *Resumed    `json:"resumed,omitempty"`
	Stop       *Stop       `json:"stop,omitempty"`
}

type sourceLine struct {
	ID int `json:"id"` // number of the source
	Source
}

type spanLine struct {
	Request int `json:"request,omitempty"` // number of the request; absent: a load stage
	NamedSpan
}

type requestRow struct {
	Request
	CachedTokens *int `json:"cached_tokens,omitempty"` // prompt tokens from a cache; absent: unknown
	Tokens       int  `json:"tokens"`                  // number of rows in tokens.csv
}

// request returns the request as a reader finds it, without tokens and spans.
func (r *requestRow) request() *Request {
	q := r.Request
	q.tokens = r.Tokens
	if q.CachedTokens = CacheUnknown; r.CachedTokens != nil {
		q.CachedTokens = *r.CachedTokens
	}
	return &q
}

type endEntry struct {
	Status Status     `json:"status"`                   // ok, failed, interrupted or refused
	Class  Class      `json:"class,omitempty"`          // class of the failure
	Error  string     `json:"error,omitempty"`          // error message
	Fault  fault.Kind `json:"fault,omitempty"`          // class of the error of a refused launch; decides the exit code
	Cost   Cost       `json:"cost"`                     // cost of sampling
	Stolen *float64   `json:"stolen_seconds,omitempty"` // CPU time that a hypervisor gave to other machines, in seconds
	Tokens []int64    `json:"tokens_rows,omitempty"`    // first byte and length of its rows in tokens.csv
}

type doneEntry struct {
	Status Status `json:"status"`
}

// Names of the files in a run folder.
const (
	metaFile    = "run.json"
	planFile    = "plan.yaml"
	envFile     = "environment.json"
	journalFile = "journal.jsonl"
	samplesFile = "samples.csv"
	totalsFile  = "totals.csv"
	tokensFile  = "tokens.csv"
	metricsFile = "metrics.csv"
	scoresFile  = "scores.csv"
	lockFile    = ".lock"
	logsDir     = "logs"
)

// The files that only grow. The journal is the last: rows reach the disk before the lines about them.
const (
	toSamples = iota
	toTotals
	toTokens
	toMetrics
	toScores
	toJournal
)

// growing has the name of each such file and its columns. Readers find columns by name, so later versions may append
// some.
var growing = [...]struct {
	name    string
	columns []string
}{
	toSamples: {samplesFile, []string{"timestamp", "label", "pid", "rss_mb", "vms_mb", "t_ns", "read_ns", "source",
		"cell", "attempt", "role", "pss_mb", "uss_mb", "swap_mb", "hwm_mb", "edge"}},
	toTotals: {totalsFile, []string{"timestamp", "label", "method", "processes", "rss_sum_mb", "vms_sum_mb", "pss_mb",
		"uss_mb", "swap_mb", "t_ns", "read_ns", "cell", "attempt", "pss_read_mb", "pss_low_mb", "pss_high_mb"}},
	toTokens: {tokensFile, []string{"cell", "attempt", "request", "index", "id", "t_ns"}},
	toMetrics: {metricsFile, []string{"timestamp", "label", "name", "value", "t_ns", "read_ns", "source", "cell",
		"attempt", "role", "edge"}},
	// rank is 0 for a forced token that is not among the likeliest; logprob is empty if the engine can't report it.
	toScores:  {scoresFile, []string{"cell", "attempt", "position", "rank", "id", "logprob", "forced"}},
	toJournal: {journalFile, nil},
}

const timestampLayout = "2006-01-02T15:04:05.000000Z07:00"

// clock converts times to nanoseconds since the start of the run, by their monotonic reading.
type clock struct {
	zero time.Time // start of the run on this process's monotonic clock
	wall time.Time // start of the run by the wall clock
}

func (c clock) ns(t time.Time) int64 { return int64(t.Sub(c.zero)) }

// stamp appends the wall-clock time at the start plus the monotonic difference, so rows never go backwards when
// somebody sets the clock.
func (c clock) stamp(line []byte, t time.Time) []byte {
	return c.wall.Add(t.Sub(c.zero)).AppendFormat(line, timestampLayout)
}
