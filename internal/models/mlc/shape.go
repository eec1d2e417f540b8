package mlc

import (
	"strconv"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/modellib"
)

// Shape returns what a model library for a GGUF must be compiled for.
func Shape(f *gguf.File, options Options) (modellib.Shape, error) {
	m, err := describe(f, options)
	return m.shape, err
}

func (m model) shaped(options Options) (modellib.Shape, error) {
	l := m.architecture
	window := options.ContextWindow
	switch {
	case window == 0:
		window = l.ContextLength
	case window < 0 || window > l.ContextLength:
		return modellib.Shape{}, fault.New(fault.Usage, "choose a smaller context window",
			"context window %d is out of range: model %s supports 1 to %d (its context_length)", window, m.file.Name, l.ContextLength)
	}
	chunk := options.PrefillChunk
	switch {
	case chunk == 0:
		chunk = min(defaultChunk, window)
	case chunk < 0 || chunk > window:
		return modellib.Shape{}, fault.New(fault.Usage, "choose a smaller prefill chunk",
			"prefill chunk %d is out of range: 1 to the context window of %d", chunk, window)
	}
	s := modellib.Shape{
		ModelType: l.Name, HiddenSize: l.EmbeddingLength, IntermediateSize: l.FeedForwardLength,
		NumHiddenLayers: l.BlockCount, NumAttentionHeads: l.HeadCount, NumKeyValueHeads: l.HeadCountKV,
		HeadDim: l.HeadDim, VocabSize: l.VocabSize, RopeTheta: decimal(l.RopeBase), RMSNormEps: decimal(l.RMSEpsilon),
		AttentionBias: l.AttentionBias, TieWordEmbeddings: l.Tied, ContextWindowSize: window, PrefillChunkSize: chunk,
		DType: m.dtype.Torch,
	}
	if options.KVDType != s.DType {
		s.KVDType = options.KVDType
	}
	t := l.Traits()
	s.QKNorm, s.PostNorms, s.GELU, s.EmbeddingScale = t.QKNorm, t.PostNorms, t.GELU, l.EmbeddingScale()
	s.AttnLogitSoftcapping, s.FinalLogitSoftcapping = decimal(l.AttentionCap), decimal(l.OutputCap)
	if scalar := l.QueryScalar(); scalar != l.HeadDim {
		s.QueryPreAttnScalar = float64(scalar)
	}
	positions(&s, l)
	s.WeightTypes, s.Quantization = typesOf(m.file, params(l), options, m.dtype)
	return s, nil
}

// positions fills in what depends on positions: rotation and windows.
func positions(s *modellib.Shape, l gguf.Architecture) {
	factors, magnitude := l.Factors(s.ContextWindowSize)
	for _, factor := range factors {
		s.RopeFactors = append(s.RopeFactors, decimal(factor))
	}
	if magnitude != 1 {
		s.RopeAttentionFactor = decimal(magnitude)
	}
	s.RotaryDim, s.RopeLocalTheta = l.RotaryDim, decimal(l.LocalBase)
	if l.SlidingWindow < s.ContextWindowSize { // otherwise it has no effect
		s.SlidingWindowSize = l.SlidingWindow
	}
	if s.SlidingWindowSize > 0 || s.RopeLocalTheta > 0 {
		s.LocalLayers = l.LocalLayers
	}
}

// decimal returns the shortest decimal for a float32: 1e-05 instead of 9.999999747378752e-06.
func decimal(v float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', -1, 32), 64)
	if err != nil {
		return v
	}
	return short
}
