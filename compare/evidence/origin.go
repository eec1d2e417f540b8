package evidence

import (
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// EngineLog is the method of sizes in an engine's log; AskedPS that of Ollama's answer to /api/ps.
const (
	EngineLog = "engine_log"
	AskedPS   = "api_ps"
)

// Methods of a component beside those of sources.
const (
	ByTensors    = "tensors"    // sizes of the tensors in the model's file
	ByFormula    = "formula"    // arithmetic from the engine's settings
	ByDifference = "difference" // the rest of the whole
)

// Methods of figures that come from no source of the record.
const (
	ByClock  = "clock"
	ByTokens = "tokens_by_engine" // tokens or their number, as the engine reports them
)

// origin follows from the method. The filled part of a KV cache is always calculated: tokens × bytes per token.
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

// Arithmetic tells figures without an interval: they were calculated, not measured.
func (f *Figure) Arithmetic() bool {
	return f.Origin == record.OriginFileSize || f.Origin == record.OriginCalculated && f.Method != ByDifference
}

// From is the origin with the method, for people; empty without a value.
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

// ServerMethod is that of figures which a server reports while it works.
const ServerMethod = "server_metrics"
