package resolve

import (
	"testing"

	"llmparity/internal/bench/plan"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

func TestModelWithoutContextNeedsOne(t *testing.T) {
	m := models.Model{Model: record.Model{Name: "silent"}}
	if err := chooseContext(&plan.Plan{Context: plan.Unsaid}, &m); fault.Of(err) != fault.Usage {
		t.Error(err)
	}
}
