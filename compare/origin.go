package compare

import (
	"slices"

	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Methods of figures that come from no source of the record.
const (
	byClock  = "clock"
	byTokens = "tokens_by_engine" // tokens, or how many there were, as the engine gives them
)

// origin follows from the method, except for what is filled of a KV cache: that is tokens × the bytes of one, whoever
// multiplies.
func (f *Figure) origin() record.Origin {
	switch {
	case f.Name == figure.KVUsed, f.Name == figure.KVCacheUsed:
		return record.OriginCalculated
	case f.Reported:
		return record.OriginReported
	}
	switch f.Method {
	case ByTensors:
		return record.OriginFileSize
	case ByFormula, ByDifference:
		return record.OriginCalculated
	case EngineLog, apiPS, serverMethod, byTokens:
		return record.OriginReported
	}
	return record.OriginMeasured
}

// arithmetic tells figures that vary only as much as what they were worked out from: an interval would claim a
// measurement.
func (f *Figure) arithmetic() bool {
	return f.Origin == record.OriginFileSize || f.Origin == record.OriginCalculated && f.Method != ByDifference
}

// From is the origin with the method, as people read it; empty where there is no value.
func (f Figure) From() string {
	words := string(f.Origin)
	if f.Origin == record.OriginReported {
		words += " by the engine"
	}
	switch {
	case words == "", f.Method == "", f.Origin == record.OriginFileSize, f.Name == figure.KVUsed,
		f.Name == figure.KVCacheUsed:
		return words
	}
	return words + " (" + f.Method + ")"
}

// sampled names what read the figures of memory that do not say so.
func sampled(figures []Figure, attempts []*record.Attempt) []Figure {
	rss := record.MethodStatm
	if len(attempts) > 0 {
		rss = rssMethod(attempts[0])
	}
	for i := range figures {
		switch f := &figures[i]; {
		case f.Method != "":
		case slices.Contains([]string{figure.PeakRSS, figure.BaselineRSS, figure.PostWarmupRSS,
			figure.IncreaseRSS}, f.Name):
			f.Method = rss
		default:
			f.Method = record.MethodSmapsRollup
		}
	}
	return figures
}
