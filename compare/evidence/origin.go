package evidence

import (
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// EngineLog is the method of sizes that an engine tells of itself, in its log; apiPS of what Ollama answers when it is
// asked.
const (
	EngineLog = "engine_log"
	AskedPS   = "api_ps"
)

// Methods of a component beside those of sources.
const (
	ByTensors    = "tensors"    // the sizes of the tensors in the model's file; nobody read what the engine holds
	ByFormula    = "formula"    // our arithmetic, from what the engine says of its set-up
	ByDifference = "difference" // what is left of the whole
)

// Methods of figures that come from no source of the record.
const (
	ByClock  = "clock"
	ByTokens = "tokens_by_engine" // tokens, or how many there were, as the engine gives them
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
	case EngineLog, AskedPS, ServerMethod, ByTokens:
		return record.OriginReported
	}
	return record.OriginMeasured
}

// Arithmetic tells figures that vary only as much as what they were worked out from: an interval would claim a
// measurement.
func (f *Figure) Arithmetic() bool {
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

// ServerMethod is that of figures which a server tells of itself while it works. Nobody measured them.
const ServerMethod = "server_metrics"
