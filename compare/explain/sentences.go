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
	TooFew        = Remark{warning.TooFewLaunches, "too few counted launches (%d); a 95%% CI of the median needs %d"}
	WideInterval  = Remark{warning.WideInterval, "varies by %.0f%% between launches (robust SD)"}
	Outliers      = Remark{warning.Unsteady, "%d of %d launches %s far from the median, the farthest %s (launch %d of %d)"}
	Trend         = Remark{warning.Unsteady, "drifts by %+.2g %s a launch (Theil-Sen; Mann-Kendall p = %.2g)"}
	UnevenSpread  = Remark{warning.UnevenSpread, "%s; p can be too small"}
	SharedLaunch  = Remark{warning.SharedLaunch, "%d repetitions ran in %s; intervals do not show how launches vary"}
	NoRate        = Remark{warning.TokenTimes, "is not known in %d of %d launches: %s"}
	ScoresDiffer  = Remark{warning.ScoresDiffer, "%s and %s: %s"}
	Random        = Remark{warning.NotDeterministic, "%s"}
	Differ        = Remark{warning.LaunchesDiffer, "launches differ: %s"}
	CachedPrompt  = Remark{warning.PromptCache, "%s of %s prompt tokens came from a cache; prefill and time to first token cover only the other tokens"}
	UnknownCache  = Remark{warning.PromptCache, "the prompt cache is always on and does not report its hits; prefill is not known"}
	CacheOn       = Remark{"prompt-cache-on", "the prompt cache is always on; the engine reported no hits"}
	Pieces        = Remark{warning.TokenTimes, "the engine reports pieces of text; the times of the first and last token are those of pieces"}
	NoIDs         = Remark{"no-token-ids", "the engine reports no token ids; outputs are compared as text"}
	NoOutput      = Remark{warning.NoOutput, "the engine reports no token ids and no text; its output is compared with nothing"}
	Underflow     = Remark{warning.Perplexity, "%d of %d log-probabilities are too small for the engine to report; perplexity leaves them out and is too low"}
	PositionsOut  = Remark{warning.Perplexity, "%d of %d tokens are left out: one engine's log-probability is too small to report"}
	Meaningless   = Remark{warning.Perplexity, "is meaningless: above %d, the size of the vocabulary, so uniform guesses would be better"}
	StopsAtEnd    = Remark{"stops-at-end", "the engine stops at the end of a text; lengths of outputs may differ"}
	OneAtATime    = Remark{warning.Traffic, "%s"}
	ClockBackward = Remark{warning.Clock, "a launch (attempt %d of the journal) is left out: it ended before it began"}
	Ledger        = Remark{warning.MemoryUncertain, "in %d of %d launches WebGPU reported errors (up to %g) that may concern several " +
		"objects; the ledger may be too high"}
	Others = Remark{warning.MemoryShared, "other programs share %s MiB of the engine's memory; " +
		"PSS splits it between all programs, so the engine's peak reads low"}
	Outside = Remark{warning.MemoryShared, "total PSS (%s) differs by %s MiB between %s, and RSS by %s MiB; other programs, " +
		"such as a browser, shared files with some of these %[3]s"}
	Unreached   = Remark{"until-ci", "%s"}
	Spinning    = Remark{warning.Spinning, "%d threads, but %g of %d cores were free: threads that wait for others spin, which counts as CPU time"}
	SamplerCost = Remark{warning.SamplerCost, "sampling used %s%% of a core; speeds may be slightly low"}
)

// Remarks of one code in one line.
const (
	FiguresOfCells = "%d figures %s (%s)"
	MayChange      = " may change a conclusion"
	GateAllows     = " that the gate allows for"
	AndOthers      = "%s and %d more"
)

// FiguresThat say by code what is the matter with figures.
var FiguresThat = map[string]string{
	warning.WideInterval: "vary by more than 10% between launches",
	warning.Unsteady:     "drift from launch to launch, or have launches far from the others",
	warning.UnevenSpread: "vary much more on one side",
}

// With fills in the sentence.
func (r Remark) With(args ...any) record.Warning {
	return record.Warning{Code: r.Code, Text: fmt.Sprintf(r.Text, args...)}
}

// Reason is why cells are not compared, or what to know when they are: its code, its sentence as a format for fmt, and
// the sentence for many pairs of cells whose values differ.
type Reason struct{ Code, Text, Many string }

// The reasons of a result.
var (
	NoCell          = Reason{"no-cell", "nothing to compare: the run has no cell", ""}
	OneEngine       = Reason{"one-engine", "nothing to compare: %s is the only engine", ""}
	Unpaired        = Reason{"unpaired", "%s of run %s not compared with run %s, the baseline run: %s", ""}
	OtherMaker      = Reason{"kernels", "kernels of %s: %s's, not %s's: %s", ""}
	GivenKernels    = Reason{"kernels", "kernels of %s: unknown, because the model library was given: %s", ""}
	UsualKernels    = Reason{"kernels", "kernels of %s: %s", ""}
	Comparable      = Reason{"comparable", "ratios compare the same model, prompt and request on the same class of device", ""}
	OtherPrompts    = Reason{"comparable", "ratios compare the same model and request on the same class of device, but prompts of %s", ""}
	Marked          = Reason{"marked", "ratios marked ≠ compare cells that are not alike%s", ""}
	IncreasesDiffer = Reason{"increase",
		"memory increase is the whole peak for %s, because this engine had no process before the load of the model; for %s, memory increase is what the load added", ""}
	ForeignRows = Reason{"foreign-rows",
		"%s: imported, with unknown model, prompt and device; --allow-different gives ratios", ""}
	NoPartner = Reason{"no-partner", "%s: not compared; no other engine ran the same model and prompt", ""}
)

// The reasons why an answer may not be quoted.
var (
	ScoresRefuted = Reason{"scores", "an engine's scores are further apart than rounding explains", ""}
	OnTheCPU      = Reason{"webgpu-on-cpu", "WebGPU ran on the CPU", ""}
	LaunchesLost  = Reason{"launches-lost", "%s", ""}
	Unfinished    = Reason{"unfinished", "the run has not ended", ""}
	OnRequest     = Reason{"not-alike", "cells that are not alike are compared, because --allow-different asked for it", ""}
	OtherWeights  = Reason{"weights", "the engines have other weights of the model", ""}
	FewLaunches   = Reason{"few-launches", "too few launches for an interval, which takes %d", ""}
	FewForSlope   = Reason{"few-for-slope", "too few launches for an interval of the slope", ""}
	PromptsDiffer = Reason{"prompts", "%s and %s did not have the same prompt tokens", ""}
	Unrepeatable  = Reason{"not-repeatable", "%s does not give the same output in every %s", ""}
	OutputsDiffer = Reason{"outputs", "the outputs of %s and %s differ, and rounding is not known to be the reason", ""}
	FewPeaks      = Reason{"few-peaks", "the peak memory (PSS) is known for %d of %d %s of %s", ""}
	FewSpeeds     = Reason{"few-speeds", "the speed is known for %d of %d %s of %s", ""}
	PeakReadsLow  = Reason{"memory-shared", "other programs shared memory with an engine, so its peak reads low", ""}
	WideIntervals = Reason{"wide-interval", "too noisy, the interval reaches %s from the median", ""}
	Undecided     = Reason{"too-noisy", "launches vary too much to tell the difference", ""}
)
