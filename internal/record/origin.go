package record

// Origin says how a figure was obtained.
type Origin string

// The origins. Measured is what a sampler or a clock read, and what follows from such readings alone, as a difference
// or a rate does.
const (
	OriginMeasured   Origin = "measured"
	OriginReported   Origin = "reported"   // by the engine or its server, of itself
	OriginCalculated Origin = "calculated" // by arithmetic from a model's shape, or from figures of several origins
	OriginFileSize   Origin = "file size"
	OriginPredicted  Origin = "predicted" // before the first launch
)
