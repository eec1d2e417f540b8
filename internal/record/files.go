package record

// Names of the files in a run folder.
const (
	MetaFile    = "run.json"
	planFile    = "plan.yaml"
	envFile     = "environment.json"
	JournalFile = "journal.jsonl"
	samplesFile = "samples.csv"
	totalsFile  = "totals.csv"
	tokensFile  = "tokens.csv"
	metricsFile = "metrics.csv"
	scoresFile  = "scores.csv"
	lockFile    = ".lock"
	piecesFile  = "pieces.json" // maps token ids to their texts. It is optional: outputs are compared by ids
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
	toJournal: {JournalFile, nil},
}
