package main

import (
	"strings"
	"testing"

	"llmparity/internal/plan"
)

// The reference is the first native engine that tells ids, unless a plan names one.
func TestReference(t *testing.T) {
	for _, c := range []struct {
		engines         []string
		asked, want     string
		faultOfTheAsked string
	}{
		{engines: []string{"webllm", "llamacpp"}, want: "llamacpp"},
		{engines: []string{"webllm", "ollama", "llamacpp-oneshot", "llamacpp"}, want: "llamacpp"},
		{engines: []string{"webllm", "ollama"}, want: "webllm"},
		{engines: []string{"ollama"}, want: "ollama"},
		{engines: []string{"webllm", "llamacpp"}, asked: "webllm", want: "webllm"},
		{engines: []string{"webllm", "ollama"}, asked: "ollama", want: "ollama",
			faultOfTheAsked: "it tells no token ids"},
	} {
		f := &runFlags{}
		p := plan.Plan{Engines: c.engines, Reference: c.asked}
		if got := f.referenceOf(p); got != c.want {
			t.Errorf("%v, asked for %q: %s, want %s", c.engines, c.asked, got, c.want)
		}
		err := f.referenceFault(p)
		if (err != nil) != (c.faultOfTheAsked != "") || err != nil &&
			!strings.Contains(err.Error(), c.faultOfTheAsked) {
			t.Errorf("%v, asked for %q: %v", c.engines, c.asked, err)
		}
	}
}
