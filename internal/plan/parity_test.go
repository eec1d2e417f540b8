package plan_test

import (
	"strings"
	"testing"

	"llmparity/assets/plans"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
)

func TestAPlanSaysWhatIsScored(t *testing.T) {
	for text, want := range map[string]int{"parity: true\n": plan.ScoreAll, "parity: false\n": plan.ScoreNothing,
		"": plan.ScoreDiffering} {
		p, err := plan.Parse([]byte(text+string(plans.Default)), "p.yaml", kinds.All...)
		if err != nil || p.Scores() != want {
			t.Errorf("%q: %d, %v", text, p.Scores(), err)
		}
	}
	if p, err := plan.Parse([]byte("reference: webllm\n"+string(plans.Default)), "p.yaml", kinds.All...); err != nil ||
		p.Reference != "webllm" {
		t.Errorf("%+v, %v", p, err)
	}
	_, err := plan.Parse([]byte("reference: weblm\n"+string(plans.Default)), "p.yaml", kinds.All...)
	if err == nil || !strings.Contains(err.Error(),
		"p.yaml line 1: reference: \"weblm\" is none of the engines (webllm, llamacpp)") {
		t.Errorf("a reference that is no engine of the plan's: %v", err)
	}
}
