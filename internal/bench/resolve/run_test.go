package resolve

import (
	"strings"
	"testing"

	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

type named struct {
	engine.Engine
	name string
	ids  bool
}

func (n named) Name() string      { return n.name }
func (n named) Caps() engine.Caps { return engine.Caps{TokenIDs: n.ids} }

// The reference is the first native engine that reports token ids and runs, unless the plan names one.
func TestReference(t *testing.T) {
	const webllm, llamacpp, ollama = "webllm", "llamacpp", "ollama"
	for _, c := range []struct {
		engines              string
		refused, asked, want string
		fault                string
	}{
		{engines: "webllm llamacpp", want: llamacpp},
		{engines: "webllm ollama llamacpp-oneshot llamacpp", want: llamacpp},
		{engines: "webllm llamacpp", refused: llamacpp, want: webllm},
		{engines: "webllm ollama", want: webllm},
		{engines: "ollama", want: ollama},
		{engines: "webllm llamacpp", asked: webllm, want: webllm},
		{engines: "webllm ollama", asked: ollama, want: ollama, fault: "it does not report token ids"},
	} {
		s := &Setup{Setup: plan.Setup{Plan: plan.Plan{Reference: c.asked}}, launch: &launch{set: &set{}}}
		p := &Plan{Setups: []*Setup{s}}
		for at, name := range strings.Fields(c.engines) {
			s.launch.set.engines = append(s.launch.set.engines, Engine{Planned: name,
				Kind:   &engine.Kind{Browser: name == webllm},
				Engine: named{name: name, ids: name == webllm || name == llamacpp}})
			cell := Cell{Setup: s, at: at}
			if name == c.refused {
				cell.Verdict.Answer = engine.Refused
			}
			p.Cells = append(p.Cells, cell)
		}
		got, err := p.reference(s)
		if got != c.want || (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s, reference %q: %s, want %s (%v)", c.engines, c.asked, got, c.want, err)
		}
	}
}

func TestModelWithoutContextNeedsOne(t *testing.T) {
	m := models.Model{Model: record.Model{Name: "silent"}}
	if err := chooseContext(&plan.Plan{Context: plan.Unsaid}, &m); fault.Of(err) != fault.Usage {
		t.Error(err)
	}
}
