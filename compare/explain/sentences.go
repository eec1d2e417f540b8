package explain

import (
	"fmt"

	"llmparity/internal/record"
)

// Codes of warnings.
const (
	BusyMachine   = "busy-machine"
	CachedPrompt  = "cached-prompt"
	Differ        = "launches-differ"
	FewRuns       = "too-few-runs"
	Ledger        = "ledger-uncertain"
	NoIDs         = "no-token-ids"
	OneAtATime    = "one-at-a-time"
	Others        = "shared-with-others"
	Outside       = "shared-outside"
	Pieces        = "pieces"
	PromptCache   = "prompt-cache"
	Random        = "not-deterministic"
	Reused        = "reused"
	SamplerCost   = "sampler-cost"
	StolenTime    = "stolen-time"
	StopsAtEnd    = "stops-at-end"
	UnevenSpread  = "uneven-spread"
	UnknownCache  = "unknown-cache" // written as PromptCache
	Outliers      = "outliers"
	Trend         = "trend"
	NoisyFigure   = "noisy"
	ClockBackward = "clock-backwards"
)

// Sentence is what is said of a code, and what a reader can do about it.
type Sentence struct {
	Text string // for fmt
	Do   string
}

// sentences are by code.
var sentences = map[string]Sentence{
	BusyMachine: {"times are those of a machine that was not quiet: %s", "end what else runs, and measure again"},
	CachedPrompt: {"%s of %s prompt tokens came from a cache: prefill and the time to the first token are of the rest",
		"switch the cache of prompts off"},
	ClockBackward: {"that of launch %d is left out: by the record it ended before it began",
		"see whether the machine's clock was set"},
	Differ: {"its launches did not all run the same: %s", "measure again with one version on one device"},
	FewRuns: {"%d counted, no interval: a 95 %% interval of the median takes %d launches",
		"measure with more repetitions"},
	Ledger: {"in %d of %d launches WebGPU told of errors that could be about several objects (up to %g): the ledger " +
		"may hold what was never granted, and be too high", "go by total PSS"},
	NoIDs:       {"no token ids: compared by text", ""},
	NoisyFigure: {"launches vary by %.0f %%", "quiet the machine, or measure with more repetitions"},
	OneAtATime:  {"%s", "let the engine have several requests at a time"},
	Others: {"%s MiB of its resident memory are shared with processes that are not the engine's: PSS counts a part " +
		"of them", "end what else maps the engine's files"},
	Outliers: {"%d of %d far from the median, the farthest %s %s (attempt %d)", "see what else that launch met"},
	Outside: {"total PSS (%s) differs by %s MiB between %s, RSS by %s: programs outside, such as another browser, " +
		"shared files with some of them, and figures of PSS are off by as much", "end other browsers"},
	Pieces: {"it tells of pieces of text and counts tokens itself: the times of its first and last token are those " +
		"of pieces", ""},
	PromptCache: {"its cache of prompts can't be switched off; no token is known to have come from it", ""},
	Random:      {"%s", "ask for temperature 0 and one thread"},
	Reused: {"%d repetitions are requests in %s and share its luck: intervals over them say nothing of another launch",
		"let each repetition have a launch of its own"},
	SamplerCost: {"reading took %s %% of a core while the engine worked, which it may have missed",
		"sample less often"},
	StolenTime: {"a hypervisor gave %s %% of the processors to other machines while launches of %s ran, and %s %% " +
		"while those of %s did (medians, p = %.2g): neighbours slow a machine by more than that",
		"measure both sides in turns, or on a machine of your own"},
	StopsAtEnd: {"it stops where the model ends a text: lengths may differ", ""},
	Trend: {"%+.2g %s from each launch to the next (Theil-Sen; Mann-Kendall p = %.2g): launches are not alike",
		"let the machine warm up, and measure with more repetitions"},
	UnevenSpread: {"%s: then equal medians are called different oftener than one time in twenty",
		"measure with more repetitions"},
	UnknownCache: {"its cache of prompts can't be switched off and does not tell what came from it: there is no " +
		"prefill, and times to the first token may be those of a part of the prompt", "let each request have a launch of its own"},
}

// Warning says the sentence of a code.
func Warning(code string, args ...any) record.Warning {
	w := record.Warning{Code: code, Text: fmt.Sprintf(sentences[code].Text, args...)}
	if code == UnknownCache {
		w.Code = PromptCache
	}
	return w
}
