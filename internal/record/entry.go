package record

import (
	"time"

	"llmparity/internal/fault"
)

// entry is a line of journal.jsonl: exactly one of the pointers is set.
type entry struct {
	T       int64       `json:"t_ns"`
	Time    string      `json:"time"`
	Attempt int         `json:"attempt,omitempty"`
	Cell    *Cell       `json:"cell,omitempty"`
	Begin   *Beginning  `json:"begin,omitempty"`
	Source  *sourceLine `json:"source,omitempty"`
	Phase   *phaseLine  `json:"phase,omitempty"`
	Span    *spanLine   `json:"span,omitempty"`
	Request *requestRow `json:"request,omitempty"`
	Event   *Event      `json:"event,omitempty"`
	Warning *Warning    `json:"warning,omitempty"`
	End     *endEntry   `json:"end,omitempty"`
	// Of cells, before their first launch.
	Prediction *Prediction `json:"prediction,omitempty"`
	Risk       *Risk       `json:"risk,omitempty"`
	Done       *doneEntry  `json:"done,omitempty"`
	Resumed    *Resumed    `json:"resumed,omitempty"`
	Stop       *Stop       `json:"stop,omitempty"`
	// Index is what earlier versions wrote, of the lines before it. Nothing reads it.
	Index *map[string]any `json:"index,omitempty"`
}

type sourceLine struct {
	ID int `json:"id"`
	Source
}

type phaseLine struct {
	Name  Phase `json:"name"`
	Begin int64 `json:"begin_ns"`
	End   int64 `json:"end_ns"`
}

type spanLine struct {
	Request int    `json:"request,omitempty"` // 0: a stage of the load
	Name    string `json:"name"`
	Begin   int64  `json:"begin_ns"`
	End     int64  `json:"end_ns"`
	How     string `json:"how,omitempty"`
}

func (s *spanLine) named() NamedSpan { return NamedSpan{s.Name, s.Begin, s.End, s.How} }

type requestRow struct {
	ID           int                `json:"id"`
	Phase        Phase              `json:"phase"`
	Sent         int64              `json:"sent_ns"`
	Returned     int64              `json:"returned_ns"`
	PromptIDs    []int              `json:"prompt_ids"`
	PromptTokens int                `json:"prompt_tokens,omitempty"`
	Generated    int                `json:"generated,omitempty"`
	CachedTokens *int               `json:"cached_tokens,omitempty"` // nil: untold
	Tokens       int                `json:"tokens"`                  // rows of tokens.csv
	Text         string             `json:"text"`
	Finish       string             `json:"finish"`
	Reported     map[string]float64 `json:"reported,omitempty"`
	Slot
}

// request is what a reader finds of it, but for its tokens and spans.
func (r *requestRow) request() *Request {
	cached := CacheUnknown
	if r.CachedTokens != nil {
		cached = *r.CachedTokens
	}
	return &Request{ID: r.ID, Phase: r.Phase, SentNS: r.Sent, ReturnedNS: r.Returned, PromptIDs: r.PromptIDs,
		PromptTokens: r.PromptTokens, Generated: r.Generated, CachedTokens: cached, Text: r.Text, Finish: r.Finish,
		Reported: r.Reported, Slot: r.Slot}
}

type endEntry struct {
	Status Status `json:"status"`
	Class  Class  `json:"class,omitempty"`
	Error  string `json:"error,omitempty"`
	// Fault is the class of the error, by which a refusal has its exit code.
	Fault fault.Kind `json:"fault,omitempty"`
	Cost  Cost       `json:"cost"`
	// Stolen is the processors' time, in seconds, that a hypervisor gave to other machines meanwhile.
	Stolen *float64 `json:"stolen_seconds,omitempty"`
	// Tokens is where the attempt's rows of tokens.csv are: the first byte, and how many there are.
	Tokens []int64 `json:"tokens_rows,omitempty"`
}

type doneEntry struct {
	Status Status `json:"status"`
}

// The columns of the CSV files. Readers find columns by name, so that new ones may follow.
var (
	sampleColumns = []string{"timestamp", "label", "pid", "rss_mb", "vms_mb", "t_ns", "read_ns", "source", "cell",
		"attempt",
		"role", "pss_mb", "uss_mb", "swap_mb", "hwm_mb", "edge"}
	totalColumns = []string{"timestamp", "label", "method", "processes", "rss_sum_mb", "vms_sum_mb", "pss_mb", "uss_mb",
		"swap_mb", "t_ns", "read_ns", "cell", "attempt", "pss_read_mb", "pss_low_mb", "pss_high_mb"}
	metricColumns = []string{"timestamp", "label", "name", "value", "t_ns", "read_ns", "source", "cell", "attempt",
		"role",
		"edge"}
	tokenColumns = []string{"cell", "attempt", "request", "index", "id", "t_ns"}
)

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

const timestampLayout = "2006-01-02T15:04:05.000000Z07:00"

// clock turns times into nanoseconds since the run's zero. Times that carry a monotonic reading are subtracted by it.
// A run that was resumed has a zero that this process never saw: its wall-clock time is kept beside it.
type clock struct {
	zero time.Time // by the monotonic clock
	wall time.Time // what people call it
}

func (c clock) ns(t time.Time) int64 { return int64(t.Sub(c.zero)) }

// stamp is wall-clock time as it was at zero plus the monotonic difference, so that rows never go backwards when
// somebody sets the machine's clock.
func (c clock) stamp(t time.Time) string { return string(c.appendStamp(nil, t)) }

func (c clock) appendStamp(line []byte, t time.Time) []byte {
	return c.wall.Add(t.Sub(c.zero)).AppendFormat(line, timestampLayout)
}
