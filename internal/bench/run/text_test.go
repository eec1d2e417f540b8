package run_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
)

// All engines score the text of the first native engine that reports token ids and runs, unless the plan names one.
func TestTextOf(t *testing.T) {
	for _, c := range []struct {
		engines              string
		refused, asked, want string
		fault                string
	}{
		{engines: "webllm llamacpp", want: "llamacpp"},
		{engines: "webllm ollama llamacpp-oneshot llamacpp", want: "llamacpp"},
		{engines: "webllm llamacpp", refused: "llamacpp", want: "webllm"},
		{engines: "webllm ollama", want: "webllm"},
		{engines: "webllm llamacpp", asked: "webllm", want: "webllm"},
		{engines: "webllm ollama", asked: "ollama", fault: "it does not report token ids"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var all []engine.Engine
			for _, name := range strings.Fields(c.engines) {
				e := opinionated(name, 1, 2, 3, 4)
				e.caps.TokenIDs = name == "webllm" || name == "llamacpp"
				if name == c.refused {
					e.absent = errAbsent
				}
				all = append(all, e)
			}
			o := options(t, all...)
			p, err := plan.Parse([]byte("name: p\nmodel: m\nengines: ["+strings.ReplaceAll(c.engines, " ", ", ")+
				"]\nprompts: [p]\nmax_tokens: 4\ncontext: 16\nparity: true\ncheck: false\nrepetitions: 1\n"), "p", kinds.All...)
			check.Err(t, err)
			o.Plan, o.Plan.TextOf = p, c.asked
			o.Optional = func(name string) bool { return name == c.refused }
			if c.fault != "" {
				if _, err := execute(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("%s of %s: %v", c.asked, c.engines, err)
				}
				return
			}
			r := whole(t, o)
			got := map[string]bool{}
			for _, s := range r.Scorings {
				got[r.CellByID(s.Scoring.Reference).Engine] = true
			}
			if !got[c.want] || len(got) != 1 {
				t.Errorf("%s, text of %q: %v, want %s", c.engines, c.asked, got, c.want)
			}
		})
	}
}
