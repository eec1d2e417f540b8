package openai_test

import (
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/native/openai"
	"llmparity/native/openai/openaitest"
)

// TestConformance runs the suite against a llama-server that was started by somebody else.
func TestConformance(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	c.New = func(t *testing.T) engine.Engine {
		return openai.New(openai.Config{URL: openaitest.Llama(t, c.Model.Path, "-np", "2", "-c", "2048",
			"--metrics").URL})
	}
	enginetest.Run(t, c)
}
