package explain

// This file has every sentence about two cells: what is concluded about a figure of both, how their outputs compare,
// and why they are not compared, or with which reservation. The texts are formats for fmt. Package verdict fills in
// those about figures, package parity those about outputs, and package compare the reasons.

// Outcome is how texts name the outcome of a comparison.
type Outcome struct {
	Called   string // in a table
	Headline string // in an answer, where no side is named
	Pairs    string // behind a number of pairs
}

// Outcomes are the outcomes of a comparison of figures, by the codes of package verdict.
var Outcomes = map[string]Outcome{
	"different":        {Called: "different"},
	"too-small":        {"under %s%%", "Practically equal", "without a difference"},
	"no-difference":    {"no difference", "No difference", "without a difference"},
	"too-noisy":        {"not settled", "Too noisy to tell", "too noisy to tell"},
	"too-few-launches": {"too few launches", "Too few launches to tell", "with too few launches to tell"},
	"not-comparable":   {"not comparable", "Not comparable here", "not comparable"},
}

// Phrases are the words of an answer for one figure.
type Phrases struct {
	Name, Unit     string
	Sure           string // the figure, where the answer says how sure it is
	Verb, Together string // before a cell's value; together: under traffic
	More           string // what the larger side does
	Share, Times   string // by how much it does so, as a share or a number; and the other side
	Less           string // what the smaller side does, as a share; and the other side
	Ratio          string // both sides with a number and its interval
	Same           string // the figure of sides without a difference, in a title
	BestOf         string // the better extreme, in a title
	Factor         string // behind "2.1 times"
	Least, Most    string // names of the extremes
	Best           string // of the better extreme
}

// The figures of an answer.
var (
	Memory = Phrases{Name: "Memory", Unit: "MiB", Sure: "peak memory", Verb: "peaks at", Together: "peaks at",
		More: "uses more memory", Share: "uses %s more memory than %s", Times: "uses %s times the memory of %s",
		Less: "uses %s less memory than %s", Ratio: "%s uses %s times the memory of %s%s", Same: "memory",
		BestOf: "%s uses the least memory",
		Factor: "the memory", Least: "Least", Most: "most", Best: "Least"}
	Speed = Phrases{Name: "Speed", Unit: "tokens/s", Sure: "speed", Verb: "decodes", Together: "serves all requests at",
		More: "is faster", Share: "is %s faster than %s", Times: "is %s times as fast as %s", Factor: "as fast",
		Less: "is %s slower than %s", Ratio: "%s decodes %s times as fast as %s%s", Same: "speed",
		BestOf: "%s is the fastest",
		Least:  "Slowest", Most: "fastest", Best: "Fastest"}
)

// A figure of two cells in an answer: headlines, and what completes them.
const (
	MoreThan     = "%s than %s" // Phrases.More
	MoreMiB      = "uses %s MiB more than %s"
	AtLeastMore  = "%s uses at least %s MiB more than %s"
	ChangeFromTo = " (from %s to %s, 95%% CI %s to %s)"
	NoneAbove    = "No difference above %s can be seen"
	WithPrompts  = ", with prompts of %s"
	PartlyShared = ", but other programs share up to %s of what %s uses, which is left out in part"
	BothValues   = "%s %s, %s %s"
	BothShort    = "%s against %s %s."
	OfCells      = "%s %s in %d cells."
	NotAlike     = ". Not alike: %s"
	WhyNot       = ". Not comparable: %s"

	TooFewForInterval = " (%d launches: too few for an interval)"
	TooFewOfSides     = " (%d and %d launches: too few for an interval)"
)

// A title.
const (
	BuildSum        = "%s (sha256 %s)"
	SameBuild       = "%s (both sha256 %s)"
	EachAlternating = " each, alternating" // 12 launches
	TitleSame       = "%s %s the same"     // speed and memory are
	TitleBound      = "%s in %s"           // 4% in speed
	TitleNone       = "%s and %s: no difference above %s"

	TitleSlowest = "%s is the slowest of %d"
	TitleFastest = "%s is the fastest of %d"

	TitleFailed    = "%s has a %s %s %s than %s" // of a gate's figure that the answer has no question about
	TitleFailedCPU = "%s needs %s more CPU time per token than %s"

	TitleHigher  = "%s is %s higher than in the baseline run %s"
	TitleLower   = "%s is %s lower than in the baseline run %s"
	TitleNoWorse = "No figure is worse than in the baseline run %s by more than its tolerance"
)

// A figure of many pairs of cells in an answer.
const (
	BothPairs       = "both pairs"
	EitherPair      = "either pair"
	AllPairs        = "all %d pairs"
	AnyPair         = "any of %d pairs"
	SomePairs       = "%d of %d pairs"
	InPairs         = "%s in %s"
	MoreInPairs     = "%s %s than %s in %s"
	TimesOfPairs    = "%s times %s" // Phrases.Factor
	MiBOfPairs      = "%s MiB more"
	MeanOfPairs     = "geometric mean %s times%s"
	OtherWay        = "%d pair goes the other way"
	OtherWays       = "%d pairs go the other way"
	PairOutcome     = "%d pair %s" // Outcome.Pairs
	PairsOutcome    = "%d pairs %s"
	PairsInTables   = "%d more pairs are in the tables"
	SidesAnd        = "%s and %s: %s"
	ExtremesOfCells = "%s of %d cells: %s, %s; %s: %s, %s"
)

// The perplexities of two forms of a model in an answer.
const (
	PerplexityFew    = "Too few windows to tell"
	PerplexityOf     = "%s: perplexity %s %s" // in a headline
	PerplexityFrom   = "Against %s: %s, 95%% CI %s to %s"
	PerplexityAlone  = "Perplexity of %s is %s of that of %s; %s"
	PerplexityChange = ": perplexity changes by %s to %s from %s to %s"
	PerplexityHigher = "%s has a perplexity %s higher than %s%s"
	PerplexityLower  = "%s has a perplexity %s lower than %s%s"
)

// A figure of two cells with its test: the verdict in the JSON, and in the list of differences.
const (
	Medians         = "%s: %s for %s and %s for %s"
	LaunchesOfSides = "n = %d and %d"
	IsSignificant   = ", significantly different"
	TimesThat       = "%s of %s is %s times that of %s%s"
	UnderMinEffect  = "; significant, but under %s%%"
	TestAndLaunches = " (%s, %s)"
	VaryDifferently = "; their launches vary differently, which makes this more likely by chance"
	TooFewToCompare = "; too few launches to compare (%s)"
	TooFewReused    = "; too few launches to compare (%d and %d): repetitions in one launch are not independent"
	NotSignificant  = "; no significant difference (p = %.2g, %s%s)"
	NeedsLaunches   = "; launches vary by %.0f%%, so a change of 10%% needs %s%d launches a side to be seen"
	Over            = "over "
	InParentheses   = " (%s)"
	MarkedUnlike    = " [not alike: %s]"
	PBelow          = "p < %.0e"
	PIs             = "p = %.2g"

	OverPairs          = "%s over %d pairs of cells (%s)"
	LeftOut            = ", %d left out"
	MeanTimesThat      = "that of %s is %s times that of %s in the geometric mean%s"
	MeanTooFew         = "too few launches of %s and %s to compare"
	MeanNotSignificant = "no significant difference between %s and %s (p = %.2g)"
)

// A figure of two cells in the table of the answer.
const (
	TableTimes = "%s times"
	TableEnds  = "%s to %s"
	TableBelow = "within ±%s"
	TableNoCI  = "no interval"
	TableCI    = " (%.3g%% CI)"
)

// The outputs of two cells: the verdict.
const (
	OutputNotCompared = "not compared: %s"
	OutputRandom      = "tokens are random at temperature %g"
	OutputDrawn       = "tokens are drawn at random"
	OutputNoRequest   = "no counted launch of %s returned a request"
	OutputNoTokens    = "%s returned no tokens"
	OutputMute        = "%s reports no token ids and no text"

	OutputSameIDs    = "identical: %d of %d token ids"
	OutputShorterIDs = "identical as far as both go: %d token ids"
	OutputDiffersAt  = "different from token %d on: %s"
	OutputTokens     = "id %d and id %d; %d of %d token ids agree before it"

	OutputSameText    = "identical text"
	OutputShorterText = "identical text as far as both go: %d bytes"
	OutputOtherText   = "different text after %d bytes"

	OutputNoIDs      = "; %s reports no token ids"
	OutputEnded      = "; %s ended after %d%s (%s), %s after %d (%s)"
	OutputTokenUnit  = " tokens"
	OutputNoReason   = "no reason given"
	OutputUnverified = "; weights not verified: %s"
	OutputUnstable   = "; the requests of %s differ, so this compares one of them"
	OutputTokenized  = "; the prompt was tokenized differently"

	PromptUnknown = "not known"
	PromptSame    = "the same %d prompt token ids"
	PromptDiffers = "different from prompt token %d on: %d and %d ids"
)

// The first difference of two outputs: how close a tie the two tokens were.
const (
	TieApart     = "there the top two are %s apart"
	TieFor       = "%s for %s"
	TieAgain     = " (scored again, %s prefers %d)"
	TieBelow     = " (%d is %s%s below the most likely token for %s)"
	TieAtLeast   = "at least "
	TieExplained = ": %s it (up to %s)"
	TieTooWide   = ": more than %s (up to %s)"
	TieKernel    = "; the kernel with which %s merges a prompt's chunks of %d tokens lacks a barrier (docs/findings/merge-state.md)"

	TiePrompts    = "the prompt was tokenized differently, so the contexts differ"
	TieUnscored   = "neither engine scored a text"
	TieOtherTexts = "the scored text differs before that token"
)

// The scores of two cells, or of a cell and the reference implementation.
const (
	ScoresNotChecked = "scores not checked"
	ScoresAbsent     = "scores not checked: %s"
	ScoresSame       = "the same scores at %d positions"
	ScoresWithin     = "same scores: at most %s apart at %d positions (%s)"
	ScoresBeyond     = "scores up to %s apart: more than %s (%s)"

	ScoresExplained   = "%s up to %s"
	ScoresByYardstick = "%s up to %s, as a rounding step moves this model by %s"
	ScoresExplains    = "%s explains"
	ScoresExplain     = "%s explain"

	ScoresFailed     = "%s could not score: %s"
	ScoresItFailed   = "it could not score: %s"
	ScoresTexts      = "they scored different texts"
	ScoresUnreported = "%s reports no log-probabilities of a given text"
	ScoresWeights    = "the engines have other weights"

	ForcedNeither = "neither engine scored a text; use --parity"
	ForcedNoIDs   = "%s reports no token ids"
	ForcedNone    = "%s scored none"
	ForcedPrompts = "they scored the texts of different prompts"
)

// The outputs of pairs of cells in an answer.
const (
	AnswerNotCompared  = "Not compared"
	AnswerSame         = "Same tokens"
	AnswerSameText     = "Same text"
	AnswerSameScores   = "Same tokens, same scores"
	AnswerOtherScores  = "Same tokens, other scores"
	AnswerSameIn       = "Same tokens in %d of %d pairs"
	AnswerInAll        = "%s in all %d pairs"
	AnswerInBoth       = "%s in both pairs"
	AnswerDiffers      = "Different"
	AnswerDiffersAt    = "Different from token %d"
	AnswerPairs        = "%d of %d pairs generated identical %s from %s"
	AnswerOthers       = ", but not %s"
	AnswerWith         = "%s with %s"
	AnswerMore         = "%d more"
	AnswerAllPairs     = "All %d pairs generated identical %s from %s"
	AnswerText         = "%s and %s: %s"
	AnswerTokens       = "%s and %s generated the same %d tokens, id by id, from %s"
	AnswerLine         = "%d of %d tokens; %s."
	AnswerNats         = "log-probabilities within %s"
	AnswerNoNats       = "the same log-probabilities"
	AnswerScores       = "; %s and %s: %s"
	AnswerScoresOfSome = "; %s, in %d of %d pairs"

	FromWeights    = "the same weights and prompt"
	FromModel      = "the same model and prompt"
	FromUnverified = "the same prompt and unverified weights of the same name"
	ByTokens       = "tokens"
	ByText         = "text"
	ByBoth         = "output (%d by tokens, %d by text)"

	TiesOfPairs   = "; of %d that differ, rounding explains %d"
	TiesSomeKnown = "; of %d that differ, rounding explains %d, and %d are not known"
)

// The outputs of two cells in a table.
const (
	TableNotCompared  = "not compared"
	TableTextDiffers  = "text differs from byte %d on"
	TableShorterText  = "same text as far as both go"
	TableSameText     = "same text"
	TableAgreed       = "%d of %d"
	TableApart        = "%d of %d, %s apart"
	TableForced       = "forced: %d of %d"
	TableSelfUnknown  = "not known"
	TableSelfSame     = "%d the same"
	TableSelfDiffers  = "differs from itself"
	TableDiffersToken = "differs from token %d"
	TableDiffersByte  = "differs from byte %d"
	TableInPart       = "in part"
	TableAsText       = "as text"
	TableIdentical    = "%s identical"
)

// SameDevice labels engines in browsers that compute with different libraries on one adapter.
const SameDevice = "same device, other shaders"

// The reasons of pairs of cells. They name engines, so that many pairs share a sentence.
var (
	NoLaunch       = Reason{"no-launch", "no launch of %s counts", ""}
	NoDevice       = Reason{"no-device", "%s did not report its device", ""}
	DeviceUnknown  = Reason{"device-unknown", "%s reported an unknown class of device (%q)", ""}
	LaunchesDiffer = Reason{"launches-differ", "launches of %s differ: %s", "launches differ"}

	WeightsUnverified = Reason{"weights-unverified", "weights of %s are not verified: only the model's name is known", ""}
	SoftwareGPU       = Reason{"webgpu-on-cpu",
		"WebGPU ran on the CPU (%s), so this is not a browser-versus-native comparison", ""}
	DevicesDiffer  = Reason{"device-class", "%s ran on %s, %s on %s", "devices differ"}
	ForeignUnknown = Reason{"foreign-rows", "model, prompt and device of %s are not known", ""}

	WeightsCompared = Reason{"weights", "weights: %s", ""}

	BothSoftware = Reason{"both-on-cpu", "WebGPU ran on the CPU on both sides: ratios say nothing about a GPU", ""}
	OtherShaders = Reason{"other-shaders", SameDevice + ": %s computes with %s, %s with %s, on %s", SameDevice}
	// of engines on a software adapter
	SoftwareSpeeds = Reason{"speed-on-cpu",
		"speed is not compared: shaders are written for GPUs, and %s runs them on the CPU", ""}
	MemoryShared = Reason{"memory-shared", "memory is not compared: %s: %s", "memory is not compared: other programs share it"}
	CachesDiffer = Reason{"prompt-cache", "time to first token and prefill are not compared: prompt cache %s for %s, %s for %s",
		"time to first token and prefill are not compared: prompt caches differ"}
	LoadsDiffer = Reason{"load-per-request",
		"load time and time to first token are not compared: %s loads the model for each request", ""}
	TrafficCaveat = Reason{"one-at-a-time", "%s: %s", "requests were served one at a time"}
	PiecesDiffer  = Reason{"pieces-of-text", "times of tokens are not quite alike: %s reports pieces of text, the first of which " +
		"may hold several tokens", ""}
	DeviceNames     = Reason{"device-name", "device differs: %s and %s", "devices differ"}
	DeviceOrigin    = Reason{"device-origin", "the device of %s (%s) is %s", ""}
	ValuesDiffer    = Reason{"", "%s differs: %%s and %%s", "%s differs"} // of an axis or setting: its name is the code
	LengthsDiffer   = Reason{"length", "lengths differ: %s and %s tokens", ""}
	NoPSS           = Reason{"no-pss", "no PSS was read, and RSS counts shared pages twice", ""}
	BaselinesDiffer = Reason{"increase", "one memory increase is the whole peak; the other is measured from a baseline", ""}
)
