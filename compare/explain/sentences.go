package explain

import (
	"fmt"

	"llmparity/internal/record"
	"llmparity/internal/warning"
)

// Remark is a warning or a note of a comparison: its code, and its sentence as a format for fmt.
type Remark struct{ Code, Text string }

// The remarks of a comparison. Codes that the table of warnings does not have are notes.
var (
	BusyMachine = Remark{warning.BusyMachine, "the machine was busy: %s"}
	StolenTime  = Remark{warning.BusyMachine, "the host gave %s%% of the processor time to other guests during launches of %s, " +
		"and %s%% during those of %s (medians, p = %.2g)"}
	LaunchFailed  = Remark{warning.LaunchFailed, "%s"}
	TooFew        = Remark{warning.TooFewLaunches, "%d counted, no interval: a 95%% CI of the median needs %d launches"}
	WideInterval  = Remark{warning.WideInterval, "varies by %.0f%% between launches"}
	Outliers      = Remark{warning.Unsteady, "%d of %d launches far from the median, the farthest %s (attempt %d)"}
	Trend         = Remark{warning.Unsteady, "drifts by %+.2g %s a launch (Theil-Sen; Mann-Kendall p = %.2g)"}
	UnevenSpread  = Remark{warning.UnevenSpread, "%s; p can be too small"}
	SharedLaunch  = Remark{warning.SharedLaunch, "%d repetitions ran in %s; intervals do not show how launches vary"}
	Random        = Remark{warning.NotDeterministic, "%s"}
	Differ        = Remark{warning.LaunchesDiffer, "launches differ: %s"}
	CachedPrompt  = Remark{warning.PromptCache, "%s of %s prompt tokens came from a cache; prefill and time to first token cover the rest"}
	UnknownCache  = Remark{warning.PromptCache, "the prompt cache is always on and does not report its hits; prefill is not known"}
	CacheOn       = Remark{"prompt-cache-on", "the prompt cache is always on; it reported no hits"}
	Pieces        = Remark{warning.TokenTimes, "reports pieces of text; the times of the first and last token are those of pieces"}
	NoIDs         = Remark{"no-token-ids", "reports no token ids; outputs are compared as text"}
	StopsAtEnd    = Remark{"stops-at-end", "stops at the end of a text; lengths may differ"}
	OneAtATime    = Remark{warning.Traffic, "%s"}
	ClockBackward = Remark{warning.Clock, "attempt %d is left out: it ended before it began"}
	Ledger        = Remark{warning.MemoryUncertain, "in %d of %d launches WebGPU reported errors (up to %g) that may concern several " +
		"objects; the ledger may be too high"}
	Others  = Remark{warning.MemoryShared, "%s MiB of its resident memory is shared with other programs; PSS counts only a part of it"}
	Outside = Remark{warning.MemoryShared, "total PSS (%s) differs by %s MiB between %s, RSS by %s; other programs, such as a " +
		"browser, shared files with some of them"}
	SamplerCost = Remark{warning.SamplerCost, "sampling used %s%% of a core; speeds may be slightly low"}
)

// With fills in the sentence.
func (r Remark) With(args ...any) record.Warning {
	return record.Warning{Code: r.Code, Text: fmt.Sprintf(r.Text, args...)}
}
