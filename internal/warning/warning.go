// Package warning has the table of warnings: what could change a conclusion. Everything else that a program remarks is
// a note.
//
// Records keep the codes that engines, samplers and runs give their remarks, so that old ones stay readable. The table
// maps those codes to the few that reports show.
package warning

import "slices"

// Codes that other packages name; the table has all.
const (
	ScoresDiffer     = "scores-differ"
	LaunchFailed     = "launch-failed"
	TooFewLaunches   = "too-few-launches"
	BusyMachine      = "busy-machine"
	WideInterval     = "wide-interval"
	Unsteady         = "unsteady"
	UnevenSpread     = "uneven-spread"
	SharedLaunch     = "shared-launch"
	NotDeterministic = "not-deterministic"
	NoOutput         = "no-output"
	LaunchesDiffer   = "launches-differ"
	PromptCache      = "prompt-cache"
	TokenTimes       = "token-times"
	Clock            = "clock"
	MemoryShared     = "memory-shared"
	MemoryUncertain  = "memory-uncertain"
	SamplerCost      = "sampler-cost"
	Spinning         = "spinning-threads"
	Traffic          = "traffic"
	Perplexity       = "perplexity"
)

// Row is a warning: its code, what it means, and what to do.
type Row struct {
	Code, Means, Do string
	// Records are the codes in records that are shown as this warning.
	Records []string
}

// Table has all warnings. Those that are most likely to change a conclusion come first.
var Table = []Row{
	{ScoresDiffer, "The engine's log-probabilities of the score check's text lie further from those of the reference " +
		"implementation, or of another engine with the same weights, than rounding explains.",
		"Find the wrong kernel, weight or setting. [Parity](../explanation/parity.md) has the tolerances.", nil},
	{LaunchFailed, "A launch or a request failed, was interrupted or timed out. Statistics leave out what " +
		"failed, so the figures describe only the launches that succeeded.",
		"Read the error and the log, then repeat with `--resume --retry-failed`.",
		[]string{"launch-interrupted", "run-failed", "run-interrupted", "cell-timeout", "request-failed"}},
	{Perplexity, "Log-probabilities are missing because they are too small for the engine to report, or the perplexity is above the size " +
		"of the vocabulary. The first makes perplexity too low. The second says that the model does not know the text's language, or " +
		"that its weights or kernels are broken.",
		"Use a text that the model can know, and check its weights. Compare engines by the score check instead.", nil},
	{TooFewLaunches, "A cell has fewer than six counted launches. The medians of this cell have no confidence interval.",
		"Use `--repetitions 6` or more.", nil},
	{NoOutput, "The engine generated tokens, but reported neither their ids nor their text. Whether it generates what other " +
		"engines do is not known.",
		"Report ids or text with each token.", nil},
	{MemoryShared, "Other programs share files with the engine, or the engine's processes also work for other programs. PSS " +
		"then counts only a share of the memory that programs have in common.",
		"Close other browsers and servers, and measure again.", []string{"attached", "program-shared"}},
	{BusyMachine, "Other programs, or other guests of the host, used the processor. Times are longer and rates are " +
		"lower than on a quiet machine.",
		"Close other programs and measure again. On a shared host, use `--against`, which alternates launches of both sides.",
		[]string{"noisy-machine"}},
	{"throttled", "The processor's clock was limited, or the clock's limit or governor changed during the run.",
		"Let the machine cool down, set the governor to performance, and measure again.",
		[]string{"governor-changed", "frequency-limit-changed"}},
	{WideInterval, "A figure varies by more than 10% between launches. Small differences cannot be seen.",
		"Use more repetitions, or `--until-ci 5%`.", nil},
	{Unsteady, "A figure drifts from launch to launch, or some launches are far from the others.",
		"Add warm-up launches, find out which other programs ran, and measure again.", nil},
	{UnevenSpread, "One side varies much more than the other. The test for differences then reports a difference between equal medians " +
		"more often than 1 time in 20.",
		"Use more repetitions on both sides.", nil},
	{SharedLaunch, "Repetitions ran in the same launch. Intervals do not show how launches vary.",
		"Use `--isolation launch`.", nil},
	{NotDeterministic, "Launches of one cell generated different tokens. A difference between engines may be chance.",
		"Use temperature 0 and one thread.", nil},
	{LaunchesDiffer, "Launches of one cell did not run under the same conditions: another version, device, machine, or " +
		"a restarted engine.",
		"Measure again with the same engine version on the same device.",
		[]string{"resumed-elsewhere", "runner-restarted", "runner-renewed"}},
	{"setting-ignored", "The engine did not run with a setting that was requested, such as the context window, the KV " +
		"cache dtype, the GPU, the WebGPU adapter or a cold start.",
		"Request a setting that the engine supports, or take the difference into account when you compare.",
		[]string{"context-differs", "slots-differ", "field-refused", "not-cold", "not-warm",
			"fallback", "device-differs", "other-adapter", "library-for-another-adapter"}},
	{"weights-differ", "The weights or the arithmetic are not the same on both sides, or the weights could not be verified.",
		"Use the same model file on both sides.", []string{"weights-unverified", "engines-differ"}},
	{PromptCache, "Some tokens of the prompt came, or may have come, from a cache. Prefill and the time to first token then " +
		"cover only the tokens that were not cached.",
		"Turn the prompt cache off, or use a launch for each request.",
		[]string{"cached-prompt", "cache-suspected", "cache-untold", "cache-unknown"}},
	{TokenTimes, "The engine reports pieces of text, or several tokens at once. Times of single tokens are not exact.",
		"Compare total times, or use an engine that reports tokens one by one.",
		[]string{"several-per-piece", "no-usage", "burst", "tokens-at-once", "held-back-tokens", "ids-lost"}},
	{"output-length", "The engine did not generate as many tokens as requested, or engine and client count differently.",
		"Compare rates, not total times.",
		[]string{"counts-differ", "length", "input-length", "cut-stream", "no-reason"}},
	{Clock, "The clocks of engine and llmparity disagree, or the system's time was set during the run.",
		"Check time synchronization, and measure again.",
		[]string{"clock-drift", "clock-set-back", "clock-backwards", "times-differ"}},
	{"memory-unread", "Memory of some processes could not be read, or was not read at the same time. Totals may be too low.",
		"Run as the user who owns the processes.",
		[]string{"unreadable-source", "memory-unseen", "server-not-sampled", "runner-unseen", "attached-elsewhere",
			"readings-apart"}},
	{MemoryUncertain, "Memory figures can be off: the WebGPU ledger may count memory that was never allocated, the baseline had " +
		"not settled, or the kernel reclaimed idle memory.",
		"Use the peak, not the increase. Turn the kernel's reclaim off, or keep launches shorter than its idle time.", []string{"baseline-not-settled", "memory-reclaimed"}},
	{SamplerCost, "Sampling used more than 2% of a core while the engine worked. Speeds may be slightly low.",
		"Sample less often.", nil},
	{Spinning, "An engine has more threads than cores were free. Threads that wait for others spin, and the CPU time includes " +
		"that. No gate judges it.",
		"Use fewer threads (`--threads`), or close other programs.", nil},
	{"already-running", "The server or browser was running before the launch. Other clients, other models or a model " +
		"loaded earlier may affect time and memory.",
		"Let llmparity start the engine, or make sure that nobody else uses it.",
		[]string{"already-loaded", "left-behind", "slot-unsure", "attached-flags", "attached-profile", "by-hand"}},
	{"profiled", "A profiler ran. Times and memory are not comparable with those of launches without a profiler.",
		"Measure again without profiling.", nil},
	{Traffic, "Requests were sent late or were served one at a time, or each turn of a conversation computed the earlier turns again.",
		"Lower the load, or give the engine more slots.", []string{"load-late", "turns-recomputed"}},
	{"incomplete-record", "Part of the record is missing or was written by a newer version.",
		"Read the record with the version of llmparity that wrote it, or measure again.",
		[]string{"cut", "readings-missing", "tokens-missing", "scores-missing", "newer-schema"}},
}

// Notes has the codes of notes, what records remark that changes no conclusion. A code in neither table is a note, too.
var Notes = []string{"behind-end", "foreign-rows", "library-of-our-own", "made-again", "many-labels", "no-attribution",
	"no-cpu-energy", "no-log", "no-token-ids", "not-profiled", "not-scored", "not-utf-8",
	"page-exception", "peak-not-reset", "pieces", "profile", "prompt-cache-on", "sizes-untold", "start-repeated",
	"stops-at-end", "too-many-names", "unanswered-source", "unreadable-gpu", "until-ci", "warmup-repeated"}

// Of finds the warning that a code of a record is shown as; false for a note.
func Of(code string) (Row, bool) {
	for _, r := range Table {
		if r.Code == code || slices.Contains(r.Records, code) {
			return r, true
		}
	}
	return Row{}, false
}

// Rank is the place of a warning's code in the table.
func Rank(code string) int {
	return slices.IndexFunc(Table, func(r Row) bool { return r.Code == code })
}
