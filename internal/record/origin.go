package record

// Origin says how a figure was obtained.
type Origin string

// The origins. Differences and rates of measured figures are measured, too.
const (
	OriginMeasured   Origin = "measured"   // by a sampler or a clock
	OriginReported   Origin = "reported"   // by the engine or its server
	OriginCalculated Origin = "calculated" // from the model's shape, or from figures of several origins
	OriginFileSize   Origin = "file size"
	OriginPredicted  Origin = "predicted" // before the first launch
)
