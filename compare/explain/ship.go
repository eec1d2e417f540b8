package explain

// This file has the sentences about forms of one model: which to ship, and where.

// ShipBy are headlines by what decided, with the form.
var ShipBy = map[string]string{
	"memory-and-quality":   "%s, by memory and quality",
	"download-and-quality": "%s, by download and quality",
	"quality":              "Keep %s",
	"memory":               "%s, by memory alone",
	"download":             "%s, by download alone",
}

// What to ship.
const (
	ShipNone        = "No form stands out"
	ShipKeeps       = "Perplexity is within %s of %s's: %s."
	ShipPeaks       = "It peaks at %s MiB in %s, the least of the forms that qualify."
	ShipPeaksLeast  = "It peaks at %s MiB in %s, the least of all forms."
	ShipSameMemory  = "No difference in memory from other forms that qualify was found."
	ShipChange      = "%s (95%% CI %s to %s)"
	ShipOnly        = "%s; %s" // a headline, and what is not known of quality
	ShipUnscored    = "quality was not measured"
	ShipScore       = "Run with --quality quick."
	ShipNotKnown    = "quality is not known"
	ShipPartly      = "No two forms were scored completely in one engine. Resume the run."
	ShipMeaningless = "The perplexity is meaningless."
	ShipTooFew      = "%d windows of a text were scored, and a paired interval needs %d: run with --quality quick."
	ShipSmallest    = "No form is smaller than %s."
	ShipAlike       = "The forms differ neither in memory nor in download size."
	// the bound, then forms with their changes
	ShipUndecided = "Not decided whether perplexity rises by more than %s: %s. --quality builtin scores more windows."

	ShipSavesMiB      = "%s saves %s MiB%s against %s"
	ShipSavesDownload = "%s is %s MiB less to download than %s"
	ShipNeedsMiB      = ", needs %s MiB more memory"
	ShipAndCosts      = " and costs %s more perplexity%s."
)

// A title: the form is smaller than the reference form, and what that costs.
const (
	ShipSmaller    = "%s is %s than %s"
	ShipTimes      = "%s times smaller"
	ShipShare      = "%s smaller"
	ShipNotSmaller = "not smaller"
	ShipLarger     = "%s larger"
	ShipCost       = "for %s more perplexity"
	ShipAndCost    = "with %s more perplexity"
	ShipGain       = "with %s less perplexity"
	ShipNoCost     = "with no change of perplexity above %s"
	ShipCostUnsure = "with a change of perplexity of %s that has no interval"
	ShipNoQuality  = "; quality is not known"
	ShipTitleNone  = "No smaller download keeps %s's perplexity within %s"
)

// Browser or native.
const (
	PlaceMore        = "%s MiB more %s"
	PlaceMoreAtLeast = "At least %s MiB more %s"
	PlaceBrowser     = "in the browser"
	PlaceNative      = "natively"
	PlaceAlike       = "No difference in memory above %s"
	PlaceUnknown     = "The difference in memory is not known"
	PlacePeaks       = "%s peaks at %s in %s, %s in %s."
	PlaceSpeeds      = "It decodes %s in the browser, %s natively."
	PlaceNeedsGPU    = "Speed on your users' GPUs is not known here: WebGPU ran on the CPU. " +
		"`llmparity reproduce %s --out on-a-gpu.yaml` writes the plan; `llmparity run on-a-gpu.yaml` on a machine with a GPU answers it."
)

// By how much memory grows with the context.
const (
	GrowthSlope   = "%s: %s %s a token"
	GrowthNone    = "No growth of %s with the context detected"
	GrowthDiffers = "Growth differs between %s"
)
